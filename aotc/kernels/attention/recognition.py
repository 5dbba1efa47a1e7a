"""Recognizes softmax(scale · Q · Kᵀ + masks) · V in linalg on tensors.

Matching begins at the second matmul and steps backward, element by element (`elements`). The
matmul's first factor must be exp(s - max s) / sum exp(s - max s), for scores s along the reduction
loop of the matmul. The scores must be the first matmul, times constants and numbers of each head,
plus masks. Any other step ends the match. Casts may occur anywhere, as front ends insert them in
several places.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.generics import has_reduction
from aotc.kernels.attention.combined_mask import Replacement
from aotc.kernels.attention.elements import (
    Constant,
    Counter,
    Element,
    Expression,
    Index,
    Operation,
    Reader,
    Reduction,
    renamed_place,
)
from aotc.kernels.attention.factors import Factor, flows_into, may_be_multiplied
from aotc.kernels.attention.operands import (
    BATCH,
    KEY,
    OF_16_BITS,
    QUERY,
    Operand,
    batch_of,
    batch_of_rows,
    is_narrow,
    operand_of,
    operand_with_rows_first,
    paged_operand,
    result_of,
    row_of,
    row_operand,
    shared_operand,
)

_CASTS = ("extf", "truncf")
_INDEX_CASTS = ("index_cast", "index_castui", "extsi", "extui", "trunci")
_BATCH, _QUERY, _KEY, _COLUMN = BATCH, QUERY, KEY, "d"
_MOST_STEPS = 64
# The predicates of arith.cmpi: the relation, and whether it is signed.
_COMPARISONS = {
    "cmpi 2": ("<", True),
    "cmpi 3": ("<=", True),
    "cmpi 4": (">", True),
    "cmpi 5": (">=", True),
    "cmpi 6": ("<", False),
    "cmpi 7": ("<=", False),
    "cmpi 8": (">", False),
    "cmpi 9": (">=", False),
}
_TRANSPOSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_AT_ONE = {"<": "<=", ">=": ">"}
_FLOAT_EQUAL = "cmpf 1"


class Found(Struct):
    """Attention in a module.

    `result`: the tensor that is replaced. `scores`: the result of the first matmul.
    `masked_rows_are_zero`: rows of O whose scores are all -infinity are 0, not NaN. `masks`: the
    elements that are added to a score, in terms of batch, query and key. `group`: see `Attention`.
    `replacements`: the replacements of scores, the last one first, if there are no masks.
    `factor`: the tensor that scores are multiplied by before masks are added.
    """

    result: Operand
    q: Operand
    k: Operand
    v: Operand
    scores: Any
    scale: float
    causal: bool
    masked_rows_are_zero: bool
    masks: tuple[Element, ...]
    group: int
    replacements: tuple[Replacement, ...]
    factor: Factor | None


class _Scores(Struct, frozen=True):
    """The parts of scores: the matmul Q · Kᵀ and its tensor, its factors, whether the scores are
    causal, and the masks that are added to them or replace them."""

    product: Reduction
    tensor: Any
    scale: float = 1.0
    causal: bool = False
    masks: tuple[Element, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    factor: Factor | None = None


class _NotAttentionError(Exception):
    """The operations are not attention."""


def recognise_attention(product: Any) -> Found | None:
    """The attention whose second matmul, P · V, is `product`, a `linalg.generic`; None if there is
    none."""
    for has_one_row, has_pages in ((False, False), (True, True), (True, False)):
        try:
            return _Recognition(has_one_row=has_one_row, has_pages=has_pages).found(product)
        except _NotAttentionError:
            pass
    return None


class _Recognition:
    """Matches one form of attention. `has_one_row`: Q has one row in each matrix, which is no
    dimension. `has_pages`: K and V are in the pages of a cache."""

    def __init__(self, *, has_one_row: bool, has_pages: bool) -> None:
        self.reader, self.has_one_row, self.has_pages = Reader(), has_one_row, has_pages

    def found(self, product: Any) -> Found:
        if not has_reduction(product) or len(product.results) != 1:
            raise _NotAttentionError
        result = product.results[0]
        if not is_narrow(result):
            raise _NotAttentionError
        batch = (batch_of_rows if self.has_one_row else batch_of)(result.type)
        if batch is None:
            raise _NotAttentionError
        self.batch = batch
        rows = () if self.has_one_row else (_QUERY,)
        index: Index = (*batch, *rows, _COLUMN)
        terms, values = self._product(Element(result, index), _KEY)
        # The order of the factors is checked by matching them.
        v, factor = self._operand(values, _KEY, _COLUMN)
        if factor != 1.0:
            raise _NotAttentionError
        scores, is_safe = self._softmax(terms)
        return self._with_scores(product, scores, v, is_safe=is_safe)

    def _with_scores(self, product: Any, scores: Expression, v: Operand, *, is_safe: bool) -> Found:
        parts = self._parts(scores, 0)
        if not is_narrow(parts.tensor):
            raise _NotAttentionError
        first, second = self._factors(parts.product)
        symbol = parts.product.symbol
        q, q_scale = self._operand(first, "" if self.has_one_row else _QUERY, symbol)
        k, k_scale = self._operand(second, _KEY, symbol)
        scale = parts.scale * q_scale * k_scale
        if not (0 < scale < math.inf):
            raise _NotAttentionError
        if (k.group, k.pages) != (v.group, v.pages) or (parts.causal and self.has_one_row):
            raise _NotAttentionError
        result = row_of(product) if self.has_one_row else result_of(product)
        group = k.group if self.has_one_row else 0
        factor = None if parts.factor is None else self._in_front(first, parts)
        masks = (parts.causal, is_safe, parts.masks)
        rest = (group, parts.replacements, factor)
        return Found(result, q, k, v, parts.tensor, scale, *masks, *rest)

    def _in_front(self, q: Expression, parts: _Scores) -> Factor:
        """The factor with an element of Q that can be multiplied by it instead: nothing else reads
        it, or what is made of it up to the multiplication."""
        factor = parts.factor
        assert factor is not None
        product = ops.defining(parts.tensor)
        if not flows_into(parts.tensor, ops.enclosing(factor.multiplication, "linalg.generic")):
            raise _NotAttentionError
        places = {place for place in factor.element.index if place != 0}
        row = "" if self.has_one_row else _QUERY
        for element in reversed(self._steps(q)):
            column = element.index[-1]
            if not isinstance(column, str) or not places <= set(element.index):
                continue
            if (
                may_be_multiplied(element.tensor, factor.multiplication)
                and flows_into(element.tensor, product)
                and self._operand_at(element, row, column) is not None
            ):
                return replace(factor, q=element)
        raise _NotAttentionError

    def _parts(self, scores: Expression, depth: int) -> _Scores:
        """The parts of scores: the first matmul, times factors, plus masks."""
        if depth > _MOST_STEPS:
            raise _NotAttentionError
        steps = self._steps(scores)
        scores = self._through_casts(scores)
        if isinstance(scores, Reduction):
            if not steps:
                raise _NotAttentionError
            return _Scores(scores, steps[-1].tensor)
        if not isinstance(scores, Operation):
            raise _NotAttentionError
        if (factor := _factor(scores)) is not None:
            parts = self._parts(scores.operands[_position_of_value(scores)], depth + 1)
            # The kernels do not scale masks and replacements, and causality needs scores of
            # -infinity.
            if parts.masks or parts.replacements or (parts.causal and factor <= 0):
                raise _NotAttentionError
            return replace(parts, scale=parts.scale * factor)
        if scores.name == "mulf":
            return self._with_factor(scores, depth)
        if scores.name not in ("addf", "select"):
            raise _NotAttentionError
        try:
            return replace(self._parts(self._unmasked(scores), depth + 1), causal=True)
        except _NotAttentionError:
            if scores.name != "addf":
                return self._with_replacement(scores, depth)
        return self._with_mask(scores, depth)

    def _with_factor(self, product: Operation, depth: int) -> _Scores:
        """The parts of scores that are multiplied by a tensor that depends on the batch alone, and
        with `has_one_row` on the query, too."""
        for position, factor in ((0, product.operands[1]), (1, product.operands[0])):
            found = next(filter(_is_of_batch, self._steps(factor)), None)
            if found is None:
                continue
            parts = self._parts(product.operands[position], depth + 1)
            # Masks would be multiplied, too.
            if parts.masks or parts.replacements or parts.causal or parts.factor is not None:
                raise _NotAttentionError
            made = product.operation.results[0].type
            if not {str(made), str(found.tensor.type.element_type)} <= {*OF_16_BITS, "f32"}:
                raise _NotAttentionError
            return replace(parts, factor=Factor(found, product.operation, position))
        raise _NotAttentionError

    def _with_replacement(self, select: Operation, depth: int) -> _Scores:
        """The parts of scores that a select replaces by a constant, depending on a tensor."""
        condition, first, second = select.operands
        for value, scores, is_kept_where_true in ((second, first, True), (first, second, False)):
            number = self._through_casts(value)
            if not isinstance(number, Constant):
                continue
            parts = self._parts(scores, depth + 1)
            before = self._through_casts(scores)
            if parts.causal and isinstance(before, Operation) and before.name == "select":
                # A replacement after a causal mask also replaces the scores that it masked, so
                # causality must be matched as a replacement.
                parts = self._with_replacement(before, depth + 1)
            element = self._condition(condition)
            if element is None or parts.masks or parts.causal:
                raise _NotAttentionError
            replacement = Replacement(
                element, number.value, select.operation.results[0].type, is_kept_where_true
            )
            if any(one.type != replacement.type for one in parts.replacements):
                raise _NotAttentionError
            return replace(parts, replacements=(replacement, *parts.replacements))
        raise _NotAttentionError

    def _condition(self, condition: Expression) -> Element | None:
        """The earliest tensor of i1 that the condition is read from, and that has an element for
        each key in a row; None if there is none."""
        found = None
        for element in self._steps(condition, casts=()):
            outer, last = element.index[:-1], element.index[-1:]
            is_mask = last == (_KEY,) and all(_is_outer(place) for place in outer)
            if is_mask and str(element.tensor.type.element_type) == "i1":
                found = element
        return found

    def _with_mask(self, sum_: Operation, depth: int) -> _Scores:
        for scores, mask in (sum_.operands, sum_.operands[::-1]):
            try:
                parts = self._parts(scores, depth + 1)
            except _NotAttentionError:
                continue
            found = self._mask(mask)
            if found is None or parts.replacements:
                raise _NotAttentionError
            return replace(parts, masks=(*parts.masks, found))
        raise _NotAttentionError

    def _mask(self, mask: Expression) -> Element | None:
        """The earliest tensor that the mask is read from, and that has an element for each key in a
        row; None if there is none."""
        found = None
        # Roundings of the mask are not skipped, as they change its value: -1e9 is -infinity in f16.
        for element in self._steps(mask, casts=("extf",)):
            is_float = str(element.tensor.type.element_type) in ("f16", "bf16", "f32")
            outer, last = element.index[:-1], element.index[-1:]
            if is_float and last == (_KEY,) and all(_is_outer(place) for place in outer):
                found = element
        return found

    # --- Softmax -------------------------------------------------------------------------

    def _softmax(self, terms: Expression) -> tuple[Expression, bool]:
        """The scores, and whether rows whose keys are all masked become 0."""
        terms = self._through_casts(terms)
        safe = None
        if isinstance(terms, Operation) and terms.name == "select":
            condition, zero, terms = terms.operands
            if not self._is(zero, 0.0):
                raise _NotAttentionError
            safe = self._masked_row(condition)
            terms = self._through_casts(terms)
        exponential, total = self._operands(terms, "divf")
        scores = self._scores_of(exponential, _KEY)
        reduction = self._reduction(total, "addf", 0.0)
        again = self._scores_of(reduction.operand, reduction.symbol)
        if not self._is_same(again, scores, reduction.symbol):
            raise _NotAttentionError
        if safe is not None and not self._is_same(safe[0], scores, safe[1]):
            raise _NotAttentionError
        return scores, safe is not None

    def _scores_of(self, exponential: Expression, symbol: str) -> Expression:
        """The scores s of exp(s - max s)."""
        (difference,) = self._operands(exponential, "exp")
        scores, largest = self._operands(difference, "subf")
        largest = self._through_casts(largest)
        if not isinstance(largest, Reduction) or largest.name not in ("maximumf", "maxnumf"):
            raise _NotAttentionError
        start = self._through_casts(largest.start)
        if not isinstance(start, Constant) or not (
            start.value == -math.inf or (math.isnan(start.value) and largest.name == "maxnumf")
        ):
            raise _NotAttentionError
        if not self._is_same(largest.operand, scores, largest.symbol, symbol):
            raise _NotAttentionError
        return scores

    def _masked_row(self, condition: Expression) -> tuple[Expression, str]:
        """The scores s and their loop, for the condition that all s are -infinity."""
        reduction = self._reduction(condition, "andi", 1.0)
        comparison = self._through_casts(reduction.operand)
        if not isinstance(comparison, Operation) or comparison.name != _FLOAT_EQUAL:
            raise _NotAttentionError
        scores, least = comparison.operands
        if not self._is(least, -math.inf):
            raise _NotAttentionError
        return scores, reduction.symbol

    # --- Masks ---------------------------------------------------------------------------

    def _unmasked(self, operation: Operation) -> Expression:
        """The scores s without a causal mask. The mask is an addition, s + (0 where the query
        attends to the key, else -infinity), or a select of s or -infinity."""
        if operation.name == "select":
            seen, masked = self._choices(operation)
            if not self._is(masked, -math.inf):
                raise _NotAttentionError
            return seen
        for scores, mask in (operation.operands, operation.operands[::-1]):
            mask = self._through_casts(mask)
            if isinstance(mask, Operation) and mask.name == "select":
                seen, masked = self._choices(mask)
                if self._is(seen, 0.0) and self._is(masked, -math.inf):
                    return scores
        raise _NotAttentionError

    def _choices(self, select: Operation) -> tuple[Expression, Expression]:
        """The values of a select where a causal query attends to the key, and where it does not."""
        condition, one, other = select.operands
        return (one, other) if self._is_key_up_to_query(condition) else (other, one)

    def _is_key_up_to_query(self, condition: Expression) -> bool:
        """Whether the condition is key <= query. False if it is key > query."""
        condition = self._through_casts(condition)
        if not isinstance(condition, Operation) or len(condition.operands) != 2:
            raise _NotAttentionError
        left, right = condition.operands
        if condition.name in ("andi", "xori"):
            for one, other in ((left, right), (right, left)):
                if self._is_true(one):
                    return self._is_key_up_to_query(other) == (condition.name == "andi")
            raise _NotAttentionError
        if condition.name not in _COMPARISONS:
            raise _NotAttentionError
        how, is_signed = _COMPARISONS[condition.name]
        left, right = (self._through_casts(one, _INDEX_CASTS) for one in (left, right))
        if isinstance(left, Operation) and left.name == "subi" and is_signed:
            # x < 1 is x <= 0, and x >= 1 is x > 0.
            if self._is_number(right, 1) and how in _AT_ONE:
                how = _AT_ONE[how]
            elif not self._is_number(right, 0):
                raise _NotAttentionError
            left, right = (self._through_casts(one, _INDEX_CASTS) for one in left.operands)
        if (left, right) == (Counter(_QUERY), Counter(_KEY)):
            how = _TRANSPOSED[how]
        elif (left, right) != (Counter(_KEY), Counter(_QUERY)):
            raise _NotAttentionError
        if how not in ("<=", ">"):
            raise _NotAttentionError
        return how == "<="

    def _is_number(self, expression: Expression, value: int) -> bool:
        return isinstance(expression, Constant) and expression.value == value

    def _is_true(self, condition: Expression) -> bool:
        value = self._through_casts(condition)
        return isinstance(value, Constant) and value.value != 0.0

    # --- Matmuls -------------------------------------------------------------------------

    def _product(self, element: Element, symbol: str) -> tuple[Expression, Expression]:
        """The factors of the matmul that computes the element, with `symbol` for its reduction
        loop."""
        reduction = self._reduction(element, "addf", 0.0)
        first, second = self._factors(reduction)
        renamed = tuple(_renamed(one, reduction.symbol, symbol) for one in (first, second))
        return renamed[0], renamed[1]

    def _factors(self, reduction: Reduction) -> tuple[Expression, Expression]:
        if reduction.name != "addf" or not self._is(reduction.start, 0.0):
            raise _NotAttentionError
        first, second = self._operands(reduction.operand, "mulf")
        return first, second

    def _operand(self, expression: Expression, row: str, column: str) -> tuple[Operand, float]:
        """The earliest tensor that a factor is read from and that a kernel can read in place, and
        the constant that it is multiplied by. Without a `row`, each matrix has one row. Tensors of
        16-bit elements are preferred to their conversions to and from f32."""
        scale, found, has_16_bits = 1.0, None, False
        for _ in range(_MOST_STEPS):
            if isinstance(expression, Element):
                operand = self._operand_at(expression, row, column)
                is_16_bits = str(expression.tensor.type.element_type) in OF_16_BITS
                if operand is not None and (is_16_bits or not has_16_bits):
                    found, has_16_bits = (operand, scale), is_16_bits
                before = self.reader.step(expression)
                if before is None:
                    break
                expression = before
            elif isinstance(expression, Operation) and expression.name in _CASTS:
                (expression,) = expression.operands
            elif isinstance(expression, Operation) and (factor := _factor(expression)) is not None:
                scale *= factor
                expression = expression.operands[_position_of_value(expression)]
            else:
                break
        if found is None:
            raise _NotAttentionError
        return found

    def _operand_at(self, element: Element, row: str, column: str) -> Operand | None:
        if not row:
            return row_operand(element, column)
        if self.has_pages:
            return paged_operand(element, row, column)
        if self.has_one_row:
            return shared_operand(element, row, column)
        found = operand_of(element, row, column, is_batched=bool(self.batch))
        if found is None and self.batch:
            return operand_with_rows_first(element, row, column)
        return found

    # --- Expressions ---------------------------------------------------------------------

    def _through_casts(self, expression: Expression, casts: tuple[str, ...] = _CASTS) -> Expression:
        """The expression before casts. Elements are replaced by the expressions that compute
        them."""
        for _ in range(_MOST_STEPS):
            if isinstance(expression, Element):
                before = self.reader.step(expression)
                if before is None:
                    return expression
                expression = before
            elif isinstance(expression, Operation) and expression.name in casts:
                (expression,) = expression.operands
            else:
                return expression
        raise _NotAttentionError

    def _operands(self, expression: Expression, name: str) -> tuple[Expression, ...]:
        expression = self._through_casts(expression)
        if not isinstance(expression, Operation) or expression.name != name:
            raise _NotAttentionError
        return expression.operands

    def _reduction(self, expression: Expression, name: str, start: float) -> Reduction:
        expression = self._through_casts(expression)
        if (
            not isinstance(expression, Reduction)
            or expression.name != name
            or not self._is(expression.start, start)
        ):
            raise _NotAttentionError
        return expression

    def _is(self, expression: Expression, value: float) -> bool:
        expression = self._through_casts(expression)
        return isinstance(expression, Constant) and (
            expression.value == value or (value == 1.0 and expression.value == -1.0)
        )

    def _is_same(self, one: Expression, other: Expression, symbol: str, to: str = _KEY) -> bool:
        """Whether two expressions are the same element up to casts, after the loop `symbol` of the
        first one is renamed to `to`."""
        ones, others = self._steps(_renamed(one, symbol, to)), self._steps(other)
        return any(left.is_same(right) for left in ones for right in others)

    def _steps(self, expression: Expression, casts: Collection[str] = _CASTS) -> list[Element]:
        """The elements that an expression is equal to, up to casts, from the last one backward."""
        found: list[Element] = []
        for _ in range(_MOST_STEPS):
            if isinstance(expression, Element):
                found.append(expression)
                before = self.reader.step(expression)
                if before is None or isinstance(before, Reduction):
                    break
                expression = before
            elif isinstance(expression, Operation) and expression.name in casts:
                (expression,) = expression.operands
            else:
                break
        return found


def _factor(operation: Operation) -> float | None:
    """The constant that the operation multiplies by (for a division, the inverse of the divisor);
    else None."""
    if operation.name == "mulf":
        numbers = (_number(one) for one in operation.operands)
        return next((number for number in numbers if number is not None), None)
    if operation.name == "divf":
        divisor = _number(operation.operands[1])
        return 1.0 / divisor if divisor else None
    return None


def _number(expression: Expression) -> float | None:
    """The value of a constant or of its cast; None for another expression."""
    if isinstance(expression, Operation) and expression.name in _CASTS:
        (expression,) = expression.operands
    return expression.value if isinstance(expression, Constant) else None


def _position_of_value(operation: Operation) -> int:
    """The index of the operand that is not the constant, in an operation with a constant factor."""
    return 0 if _number(operation.operands[0]) is None else 1


def _renamed(expression: Expression, symbol: str, to: str) -> Expression:
    """The expression with the loop `symbol` renamed."""
    if isinstance(expression, Element):
        return Element(
            expression.tensor, tuple(renamed_place(one, symbol, to) for one in expression.index)
        )
    if isinstance(expression, Counter):
        return Counter(renamed_place(expression.place, symbol, to))
    if isinstance(expression, Operation):
        operands = tuple(_renamed(one, symbol, to) for one in expression.operands)
        return Operation(expression.name, operands, expression.operation)
    return expression


def _is_of_batch(element: Element) -> bool:
    """Whether an element is the same for all queries and keys of a matrix."""
    return all(_is_outer(place) and place != _QUERY for place in element.index)


def _is_outer(place: Any) -> bool:
    """Whether a mask may have this index in front of the key: the batch or a part of it, the query,
    or 0."""
    if isinstance(place, tuple):
        part, of, _ = place
        return part in ("high", "low") and (
            of == _BATCH or (isinstance(of, tuple) and _is_outer(of))
        )
    return place in (_BATCH, _QUERY, 0)
