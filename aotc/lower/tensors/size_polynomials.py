"""Sizes as polynomials of the sizes of an entry's arguments.

Equal sizes have equal polynomials, and bounds of sizes follow from bounds of the arguments' sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

DIVIDED, LEAST, GREATEST = "arith.divsi", "arith.minsi", "arith.maxsi"
FLOOR_DIVIDED = "arith.floordivsi"
# The recursion limit for operands of computed atoms.
_DEPTH = 4
# Numbers of merged quotients are less, far from the end of 64 bits.
_MOST_OF_QUOTIENTS = 1 << 31


class ArgumentSize(Struct, frozen=True):
    """The size of an entry's argument along a dimension."""

    argument: int
    dimension: int


class Computed(Struct, frozen=True):
    """The result of a binary operation."""

    name: str
    operands: tuple[Polynomial, Polynomial]


class Other(Struct, frozen=True):
    """A number of which nothing is known. With a dimension, it is a size of a tensor. `number` is
    its identity."""

    number: int
    value: Any
    dimension: int | None = None


Atom = ArgumentSize | Computed | Other
Monomial = frozenset[tuple[Atom, int]]
_NONE: Monomial = frozenset()


class Polynomial(Struct, frozen=True):
    """The coefficient of each monomial. The empty monomial has the constant term."""

    coefficients: frozenset[tuple[Monomial, int]]

    @staticmethod
    def of(coefficients: Mapping[Monomial, int]) -> Polynomial:
        """The polynomial with these coefficients; monomials with coefficient 0 are dropped."""
        return Polynomial(
            frozenset(
                (one, coefficient) for one, coefficient in coefficients.items() if coefficient
            )
        )

    @staticmethod
    def number(value: int) -> Polynomial:
        """The constant polynomial."""
        return Polynomial.of({_NONE: value})

    @staticmethod
    def atom(atom: Atom) -> Polynomial:
        """The polynomial that is a single atom."""
        return Polynomial.of({frozenset([(atom, 1)]): 1})

    def known(self) -> int | None:
        """The value if the polynomial is constant; otherwise None."""
        if not self.coefficients:
            return 0
        (monomial, coefficient), *others = self.coefficients
        return coefficient if monomial == _NONE and not others else None

    def plus(self, other: Polynomial, times: int = 1) -> Polynomial:
        """The sum of this polynomial and `times` the other one."""
        total = Counter(dict(self.coefficients))
        for monomial, coefficient in other.coefficients:
            total[monomial] += times * coefficient
        return Polynomial.of(total)

    def minus(self, other: Polynomial) -> Polynomial:
        return self.plus(other, -1)

    def times(self, other: Polynomial) -> Polynomial:
        """The product of two polynomials."""
        total: Counter[Monomial] = Counter()
        for one, coefficient in self.coefficients:
            for another, times in other.coefficients:
                powers = Counter(dict(one))
                for atom, power in another:
                    powers[atom] += power
                total[frozenset(powers.items())] += coefficient * times
        return Polynomial.of(total)

    def divided_by(self, other: Polynomial) -> Polynomial | None:
        """The quotient; None for a division by a sum, or one with a remainder."""
        if len(other.coefficients) != 1:
            return None
        ((divisor, number),) = other.coefficients
        total = {}
        for monomial, coefficient in self.coefficients:
            powers = Counter(dict(monomial))
            powers.subtract(dict(divisor))
            if coefficient % number or min(powers.values(), default=0) < 0:
                return None
            total[frozenset((one, power) for one, power in powers.items() if power)] = (
                coefficient // number
            )
        return Polynomial.of(total)

    def atoms(self) -> set[Atom]:
        """The atoms of the polynomial, including those of the operands of computed atoms."""
        found: set[Atom] = set()
        for monomial, _ in self.coefficients:
            for atom, _ in monomial:
                found.add(atom)
                if isinstance(atom, Computed):
                    found.update(*(operand.atoms() for operand in atom.operands))
        return found


_ZERO = Polynomial.number(0)


def text_of(polynomial: Polynomial, names: Sequence[str] = ()) -> str:
    """The polynomial as text for messages; `names` are those of the arguments."""
    words = [
        "*".join(
            [str(coefficient)] * (coefficient != 1 or not atoms)
            + [_text(one, names) for one in atoms]
        )
        for atoms, coefficient in in_order(polynomial)
    ]
    return " + ".join(words) or "0"


def in_order(polynomial: Polynomial) -> list[tuple[list[Atom], int]]:
    """The atoms and coefficient of each monomial in a deterministic order, the constant term
    last."""
    found = [
        (sorted((atom for atom, power in monomial for _ in range(power)), key=_text), coefficient)
        for monomial, coefficient in polynomial.coefficients
    ]
    return sorted(found, key=lambda one: (not one[0], list(map(_text, one[0]))))


def _text(atom: Atom, names: Sequence[str] = ()) -> str:
    if isinstance(atom, ArgumentSize):
        name = names[atom.argument] if names else f"argument {atom.argument}"
        return f"{name}.shape[{atom.dimension}]"
    if isinstance(atom, Other):
        return f"value {atom.number}"
    operands = ", ".join(text_of(operand, names) for operand in atom.operands)
    return f"{atom.name.removeprefix('arith.').removesuffix('si')}({operands})"


class Facts:
    """Known equalities and bounds of the sizes of arguments."""

    def __init__(self) -> None:
        self._equal: dict[Atom, Polynomial] = {}
        self._least: dict[Atom, int] = {}
        self._greatest: dict[Atom, int] = {}

    def learn(self, predicate: str, left: Polynomial, right: Polynomial) -> None:
        """Records that the comparison of `left` and `right` holds, so that it need not be checked
        again."""
        difference = left.minus(right)
        unknown = [
            (one, coefficient) for one, coefficient in difference.coefficients if one != _NONE
        ]
        if predicate == "eq":
            self._learn_equal(difference)
        elif predicate == "sle" and len(unknown) == 1:
            ((monomial, coefficient),) = unknown
            rest = dict(difference.coefficients).get(_NONE, 0)
            atom = _only_atom(monomial)
            if atom is not None and coefficient == 1:
                self._greatest[atom] = min(-rest, self._greatest.get(atom, -rest))
            elif atom is not None and coefficient == -1:
                self._least[atom] = max(rest, self._least.get(atom, 0))

    def _learn_equal(self, difference: Polynomial) -> None:
        """Records an equality: the last argument size that can be isolated is replaced by the
        rest."""
        candidates = [
            (atom, coefficient)
            for monomial, coefficient in difference.coefficients
            if isinstance(atom := _only_atom(monomial), ArgumentSize) and abs(coefficient) == 1
        ]
        for atom, coefficient in sorted(
            candidates, key=lambda one: (one[0].argument, one[0].dimension), reverse=True
        ):
            rest = difference.minus(Polynomial.atom(atom).times(Polynomial.number(coefficient)))
            if atom not in rest.atoms():
                self._equal[atom] = rest.times(Polynomial.number(-coefficient))
                return

    def size(self, atom: ArgumentSize) -> Polynomial:
        """The polynomial that replaces a size."""
        found = self._equal.get(atom)
        return Polynomial.atom(atom) if found is None else self.simplified(found)

    def simplified(self, polynomial: Polynomial) -> Polynomial:
        """The polynomial with each argument size replaced by the polynomial that it is equal to."""
        if not any(atom in self._equal for atom in polynomial.atoms()):
            return polynomial
        total = Polynomial.number(0)
        for monomial, coefficient in polynomial.coefficients:
            product = Polynomial.number(coefficient)
            for atom, power in monomial:
                for _ in range(power):
                    product = product.times(self._simplified_atom(atom))
            total = total.plus(product)
        return total

    def _simplified_atom(self, atom: Atom) -> Polynomial:
        if isinstance(atom, ArgumentSize):
            return self.size(atom)
        if isinstance(atom, Computed):
            left, right = map(self.simplified, atom.operands)
            return self.computed(atom.name, left, right)
        return Polynomial.atom(atom)

    def computed(self, name: str, left: Polynomial, right: Polynomial) -> Polynomial:
        """The result of the operation, as a polynomial if possible; otherwise as a computed
        atom."""
        if name == GREATEST:
            return right.plus(self._positive_part(left.minus(right)))
        if name == LEAST:
            return left.minus(self._positive_part(left.minus(right)))
        if name in (DIVIDED, FLOOR_DIVIDED):
            divisor = right.known()
            quotient = left.divided_by(right)
            if quotient is not None:
                return quotient
            if divisor and divisor > 0:
                even, rest = self._parts(left, divisor)
                # arith.divsi rounds toward zero, arith.floordivsi rounds down.
                one = left if name == DIVIDED else rest
                if self.is_never_negative(one):
                    return even.plus(self._quotient(rest, divisor))
        return Polynomial.atom(Computed(name, (left, right)))

    def _quotient(self, left: Polynomial, divisor: int) -> Polynomial:
        """`left` / `divisor`, where no coefficient of `left` is negative. A quotient that is
        divided again, as sizes of convolutions with strides are, is one quotient:
        (x / a + c) / d = (x + c a) / (a d)."""
        known = left.known()
        if known is not None:
            return Polynomial.number(known // divisor)
        rest = dict(left.coefficients)
        number = rest.pop(_NONE, 0)
        ((monomial, coefficient), *more) = rest.items()
        atom = _only_atom(monomial)
        if coefficient == 1 and not more and isinstance(atom, Computed) and atom.name == DIVIDED:
            divided, by = atom.operands
            inner = by.known() or 0
            is_small = 0 < inner * max(number, divisor) < _MOST_OF_QUOTIENTS
            if is_small and self.is_never_negative(divided):
                whole = divided.plus(Polynomial.number(number * inner))
                return self.computed(DIVIDED, whole, Polynomial.number(inner * divisor))
        return Polynomial.atom(Computed(DIVIDED, (left, Polynomial.number(divisor))))

    def _positive_part(self, polynomial: Polynomial) -> Polynomial:
        """max(polynomial, 0), in terms of which maxima and minima of two polynomials are
        expressed."""
        opposite = _ZERO.minus(polynomial)
        if self.is_never_negative(polynomial):
            return polynomial
        if self.is_never_negative(opposite):
            return _ZERO
        # One of a difference and its negation is expressed by the other, so that the form is
        # unique.
        if text_of(opposite) < text_of(polynomial):
            return polynomial.plus(Polynomial.atom(Computed(GREATEST, (opposite, _ZERO))))
        return Polynomial.atom(Computed(GREATEST, (polynomial, _ZERO)))

    def _parts(self, left: Polynomial, divisor: int) -> tuple[Polynomial, Polynomial]:
        """(q, r) with left = d * q + r, where the coefficients of r are at least 0 and less than
        d."""
        even = Polynomial.of(
            {one: coefficient // divisor for one, coefficient in left.coefficients}
        )
        return even, left.minus(even.times(Polynomial.number(divisor)))

    def is_never_negative(self, polynomial: Polynomial, depth: int = _DEPTH) -> bool:
        """Whether the polynomial is known to be at least 0."""
        least = self._least_of(polynomial)
        if least is not None and least >= 0:
            return True
        for monomial, coefficient in polynomial.coefficients if depth else ():
            atom = _only_atom(monomial)
            if not isinstance(atom, Computed):
                continue
            rest = Polynomial.of({**dict(polynomial.coefficients), monomial: 0})
            left, right = atom.operands
            divisor = right.known()
            if atom.name == GREATEST:
                cases = (
                    self.is_never_negative(rest.plus(one, coefficient), depth - 1)
                    for one in atom.operands
                )
                if any(cases) if coefficient > 0 else all(cases):
                    return True
            elif atom.name == DIVIDED and divisor and divisor > 0 and coefficient % divisor == 0:
                # d * (n / d) is from n - d + 1 to n.
                bound = left if coefficient < 0 else left.minus(Polynomial.number(divisor - 1))
                if self.is_never_negative(rest.plus(bound, coefficient // divisor), depth - 1):
                    return True
        return False

    def _least_of(self, polynomial: Polynomial) -> int | None:
        total = 0
        for monomial, coefficient in polynomial.coefficients:
            bounds = [self._bounds(atom) for atom, _ in monomial]
            if any(least < 0 for least, _ in bounds):
                return None
            product = coefficient
            for (least, greatest), (_, power) in zip(bounds, monomial, strict=True):
                bound = least if coefficient > 0 else greatest
                if bound is None:
                    return None
                product *= bound**power
            total += product
        return total

    def _bounds(self, atom: Atom) -> tuple[int, int | None]:
        """The minimum and maximum of an atom: a minimum of -1 if it may be negative, None for no
        maximum."""
        if isinstance(atom, Other):
            return (-1 if atom.dimension is None else 0), None
        if isinstance(atom, ArgumentSize):
            return self._least.get(atom, 0), self._greatest.get(atom)
        signs = [self.is_never_negative(one, 1) for one in atom.operands]
        is_positive = any(signs) if atom.name == GREATEST else all(signs)
        return (0 if is_positive else -1), None


def _only_atom(monomial: Iterable[tuple[Atom, int]]) -> Atom | None:
    """The atom if the monomial is a single atom; None for products and constants."""
    found = list(monomial)
    return found[0][0] if len(found) == 1 and found[0][1] == 1 else None
