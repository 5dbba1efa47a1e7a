"""The operations on integers, index and i1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from property.arithmetic import DTYPES, INTEGERS, UNSIGNED, Array, Table, unsigned
from property.program import INTEGER_BITS


def add_integers(table: Table) -> None:
    for type_ in INTEGERS:
        _add_integers(table, type_)
        if type_ != "index":
            _add_fixed_width_integers(table, type_)
    _add_booleans(table)


def _as_unsigned(function: Callable[..., Array], type_: str) -> Callable[..., Array]:
    def evaluate(*operands: Array) -> Array:
        found = function(*(unsigned(operand, type_) for operand in operands))
        return found.astype(UNSIGNED[type_]).view(DTYPES[type_])

    return evaluate


def _add_integers(table: Table, t: str) -> None:
    bits = INTEGER_BITS[t]

    def binary(name: str, evaluate: Callable[..., Array]) -> None:
        table.add(f"{name} {t}", t, (t, t), f"arith.{name} {{0}}, {{1}} : {t}", evaluate)

    binary("addi", np.add)
    binary("subi", np.subtract)
    binary("muli", np.multiply)
    binary("andi", np.bitwise_and)
    binary("ori", np.bitwise_or)
    binary("xori", np.bitwise_xor)
    binary("minsi", np.minimum)
    binary("maxsi", np.maximum)
    binary("minui", _as_unsigned(np.minimum, t))
    binary("maxui", _as_unsigned(np.maximum, t))

    def shift(name: str, evaluate: Callable[..., Array]) -> None:
        text = (
            f"$width = arith.constant {bits - 1} : {t}",
            f"$by = arith.andi {{1}}, $width : {t}",
            f"arith.{name} {{0}}, $by : {t}",
        )
        amount = DTYPES[t](bits - 1)
        table.add(f"{name} {t}", t, (t, t), text, lambda a, b: evaluate(a, b & amount))

    shift("shli", np.left_shift)
    shift("shrsi", np.right_shift)
    shift("shrui", _as_unsigned(np.right_shift, t))

    def divide(name: str, evaluate: Callable[..., Array]) -> None:
        # Odd and from 1 to 63: neither 0, nor -1, with which the smallest number overflows.
        text = (
            f"$low = arith.constant 62 : {t}",
            f"$one = arith.constant 1 : {t}",
            f"$even = arith.andi {{1}}, $low : {t}",
            f"$by = arith.ori $even, $one : {t}",
            f"arith.{name} {{0}}, $by : {t}",
        )
        low, one = DTYPES[t](62), DTYPES[t](1)
        table.add(f"{name} {t}", t, (t, t), text, lambda a, b: evaluate(a, b & low | one))

    for name, evaluate in _SIGNED_DIVISIONS.items():
        divide(name, evaluate)
    divide("divui", _as_unsigned(np.floor_divide, t))
    divide("remui", _as_unsigned(np.remainder, t))
    divide("ceildivui", _as_unsigned(_ceiling_quotient, t))
    for by in (3, -7, 16, 100):
        constant = f"$by = arith.constant {by} : {t}"
        for name, evaluate in _SIGNED_DIVISIONS.items():
            table.add(
                f"{name} {t} by {by}",
                t,
                (t,),
                (constant, f"arith.{name} {{0}}, $by : {t}"),
                lambda a, by=by, evaluate=evaluate: evaluate(a, DTYPES[t](by)),
            )
    # The remainder as it is: for positions, whose divisor is a size.
    table.add(
        f"modulo {t}",
        t,
        (t, t),
        f"arith.remui {{0}}, {{1}} : {t}",
        _as_unsigned(lambda a, b: np.remainder(a, np.maximum(b, 1)), t),
    )
    table.add(
        f"quotient {t}",
        t,
        (t, t),
        f"arith.divui {{0}}, {{1}} : {t}",
        _as_unsigned(lambda a, b: np.floor_divide(a, np.maximum(b, 1)), t),
    )
    table.add(f"select {t}", t, ("i1", t, t), f"arith.select {{0}}, {{1}}, {{2}} : {t}", np.where)
    for name, compare in _COMPARISONS.items():
        if name.startswith("u"):
            continue
        table.add(
            f"cmpi {name} {t}", "i1", (t, t), f"arith.cmpi {name}, {{0}}, {{1}} : {t}", compare
        )
    for name in ("ult", "ule", "ugt", "uge"):
        table.add(
            f"cmpi {name} {t}",
            "i1",
            (t, t),
            f"arith.cmpi {name}, {{0}}, {{1}} : {t}",
            lambda a, b, compare=_COMPARISONS[name]: compare(unsigned(a, t), unsigned(b, t)),
        )


def _truncating_quotient(a: Array, b: Array) -> Array:
    return (a - np.fmod(a, b)) // b


def _ceiling_quotient(a: Array, b: Array) -> Array:
    floor = a // b
    found: Array = floor + (floor * b != a).astype(floor.dtype)
    return found


_SIGNED_DIVISIONS: dict[str, Callable[..., Array]] = {
    "divsi": _truncating_quotient,
    "remsi": np.fmod,
    "floordivsi": np.floor_divide,
    "ceildivsi": _ceiling_quotient,
}
_COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "ult": np.less,
    "ule": np.less_equal,
    "ugt": np.greater,
    "uge": np.greater_equal,
}


def _add_fixed_width_integers(table: Table, t: str) -> None:
    """What arith and math have for signless integers, but not for index."""
    bits = INTEGER_BITS[t]

    def unary(name: str, evaluate: Callable[[Array], Array]) -> None:
        table.add(f"{name} {t}", t, (t,), f"math.{name} {{0}} : {t}", evaluate)

    unary("ctpop", lambda a: _bits(a, t).sum(0).astype(DTYPES[t]))
    unary("ctlz", lambda a: _leading_zeros(_bits(a, t)[::-1]).astype(DTYPES[t]))
    unary("cttz", lambda a: _leading_zeros(_bits(a, t)).astype(DTYPES[t]))
    unary("absi", np.abs)
    for name, is_signed in (("mulsi_extended", True), ("mului_extended", False)):
        table.add(
            f"{name} {t}",
            t,
            (t, t),
            (f"$low, $high = arith.{name} {{0}}, {{1}} : {t}", f"arith.xori $low, $high : {t}"),
            lambda a, b, is_signed=is_signed: _product_halves(a, b, t, bits, is_signed),
        )
    table.add(
        f"addui_extended {t}",
        t,
        (t, t),
        (
            f"$sum, $carry = arith.addui_extended {{0}}, {{1}} : {t}, i1",
            f"$wide = arith.extui $carry : i1 to {t}",
            f"arith.xori $sum, $wide : {t}",
        ),
        lambda a, b: (a + b) ^ (unsigned(a + b, t) < unsigned(a, t)).astype(DTYPES[t]),
    )
    vector = f"vector<4x{t}>"
    table.add(
        f"dot {t}",
        t,
        (t, t, t, t),
        (
            f"$a = vector.from_elements {{0}}, {{1}}, {{2}}, {{3}} : {vector}",
            f"$b = vector.from_elements {{3}}, {{0}}, {{1}}, {{1}} : {vector}",
            f"$c = arith.muli $a, $b : {vector}",
            f"vector.reduction <add>, $c : {vector} into {t}",
        ),
        lambda a, b, c, d: a * d + b * a + c * b + d * b,
    )


def _bits(array: Array, t: str) -> Array:
    """The bits of each element along a new first axis, the lowest first."""
    positions = np.arange(INTEGER_BITS[t], dtype=UNSIGNED[t])[:, None]
    found: Array = (unsigned(np.ascontiguousarray(array), t)[None, :] >> positions) & UNSIGNED[t](1)
    return found


def _leading_zeros(bits: Array) -> Array:
    return np.where(bits.any(0), bits.argmax(0), len(bits))


def _product_halves(a: Array, b: Array, t: str, bits: int, is_signed: bool) -> Array:
    """The lower half of the double-width product, xor its upper half."""
    if not is_signed:
        a, b = unsigned(a, t), unsigned(b, t)
    # In Python's integers: those of NumPy have no 128 bits.
    product = a.astype(object) * b.astype(object)
    halves = (product ^ (product >> bits)) & ((1 << bits) - 1)
    found: Array = halves.astype(UNSIGNED[t]).view(DTYPES[t])
    return found


def _add_booleans(table: Table) -> None:
    for name, evaluate in (
        ("andi", np.logical_and),
        ("ori", np.logical_or),
        ("xori", np.logical_xor),
    ):
        table.add(f"{name} i1", "i1", ("i1", "i1"), f"arith.{name} {{0}}, {{1}} : i1", evaluate)
    table.add("select i1", "i1", ("i1",) * 3, "arith.select {0}, {1}, {2} : i1", np.where)
