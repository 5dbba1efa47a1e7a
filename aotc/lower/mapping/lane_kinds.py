"""Classifies the values of a loop's body for vectorization across columns.

The columns are adjacent along the loop's last dimension. The classification also determines whether
the whole body can be vectorized.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from aotc import ops
from aotc.analysis.effects import Access, access_of, is_division, is_pure
from aotc.lower.mapping.columns import Columns
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of

# A value is uniform (the same for all columns), or a vector. For an index that grows with the
# column, the kind is its stride per column.
UNIFORM, VECTOR = 0, -1
# The kind of `select(condition, index, 0)`, where the condition says whether a column has an
# element to load.
_SELECTED = -2
# The largest stride of loads. At stride 2, half of the loaded elements are dropped.
_MOST_STRIDE = 2


class PaddedLoad(Struct, frozen=True):
    """A load at `select(condition, index, 0)` whose result is only used where the condition holds.
    `indices` are those without the select."""

    condition: Any
    indices: tuple[Any, ...]


class Kinds(Struct):
    """The kinds of values that are not uniform.

    `padded`: result → load of a padded buffer. `strides`: the strides of vector accesses.
    `has_guards`: whether a vector load is padded along dimensions other than the columns.
    `gathers`: whether elements of a row may be loaded at indices that are vectors.
    """

    of: dict[Any, int] = field(default_factory=dict)
    padded: dict[Any, PaddedLoad] = field(default_factory=dict)
    strides: set[int] = field(default_factory=set)
    has_guards: bool = False
    gathers: bool = False
    _selects: dict[Any, Any] = field(default_factory=dict)

    def __getitem__(self, value: Any) -> int:
        return self.of.get(value, UNIFORM)

    def add(self, columns: Columns) -> bool:
        """Classifies the values of a loop's body. Returns whether all of it can be vectorized."""
        if ops.known_index(columns.bounds[-1][2]) != 1:
            return False
        self.of[columns.variables[-1]] = 1
        return self._add_all(columns.body)

    def _add_all(self, operations: Sequence[Any]) -> bool:
        return all(self._add(operation) for operation in operations)

    def _add(self, operation: Any) -> bool:
        if operation.name == "scf.for":
            return self._add_loop(operation)
        access = access_of(operation)
        kind = self._of_operation(operation) if access is None else self._of_access(access)
        if kind is None:
            return False
        if kind != UNIFORM:
            self.of.update(dict.fromkeys(operation.results, kind))
        return True

    def _add_loop(self, loop: Any) -> bool:
        """Classifies a loop with the same iterations for all columns."""
        bounds, carried = list(loop.operands)[:3], list(loop.operands)[3:]
        values = [*carried, *loop.results]
        is_plain = isinstance(bounds[0].type, ir.IndexType) and "unsignedCmp" not in loop.attributes
        if not is_plain or any(self[bound] != UNIFORM for bound in bounds):
            return False
        if not all(_is_element(value.type) and self[value] >= VECTOR for value in values):
            return False
        block = loop.regions[0].blocks[0]
        self.of.update(dict.fromkeys([*list(block.arguments)[1:], *loop.results], VECTOR))
        end = ops.terminator(block)
        return self._add_all(body_of(loop)) and all(self[v] >= VECTOR for v in end.operands)

    # --- Operations on values ---

    def _of_operation(self, operation: Any) -> int | None:
        if not is_pure(operation):
            return None
        found = [self[operand] for operand in operation.operands]
        if all(kind == UNIFORM for kind in found):
            # It is not executed for columns that do not exist.
            return UNIFORM
        if isinstance(operation.results[0].type, ir.IndexType):
            kind = self._of_index(operation, found)
            if kind is not None:
                return kind
        types = [value.type for value in (*operation.operands, *operation.results)]
        is_of_one = operation.name.startswith(("arith.", "math.")) and len(operation.results) == 1
        is_elementwise = is_of_one and not is_division(operation) and min(found) >= VECTOR
        return VECTOR if is_elementwise and all(map(_is_element, types)) else None

    def _of_index(self, operation: Any, found: Sequence[int]) -> int | None:
        """The kind of an index that remains a scalar."""
        if operation.name == "arith.select":
            return self._of_selected(operation)
        if min(found) < UNIFORM:
            return None
        if operation.name == "arith.addi" and UNIFORM in found:
            return max(found)
        if operation.name == "arith.subi" and found[1] == UNIFORM:
            return found[0]
        if operation.name == "arith.muli" and UNIFORM in found:
            factors = [ops.known_index(operand) for operand in operation.operands]
            known = [f for f, kind in zip(factors, found, strict=True) if kind == UNIFORM]
            if known[0] is not None and known[0] > 0:
                return max(found) * known[0]
        return None

    def _of_selected(self, select: Any) -> int | None:
        condition, index, _ = select.operands
        users = [use.owner.operation for use in select.results[0].uses]
        if self[index] < UNIFORM or any(user.name != "memref.load" for user in users):
            return None
        self._selects[select.results[0]] = condition, index
        return _SELECTED

    # --- Accesses ---

    def _of_access(self, access: Access) -> int | None:
        kinds = [self[index] for index in access.indices]
        if _SELECTED in kinds:
            return self._of_padded(access)
        if access.writes and self[access.operation.operands[0]] < VECTOR:
            return None
        if all(kind == UNIFORM for kind in kinds):
            return None if access.writes else UNIFORM
        self.has_guards |= not access.writes and any(
            _guards(index, access.operation.results[0]) for index in access.indices
        )
        return self._of_neighbours(access, access.indices)

    def _of_padded(self, access: Access) -> int | None:
        if access.writes:
            return None
        found = [self._selects.get(index) for index in access.indices]
        conditions = {one[0] for one in found if one is not None}
        indices = tuple(
            index if one is None else one[1]
            for index, one in zip(access.indices, found, strict=True)
        )
        result = access.operation.results[0]
        if len(conditions) != 1 or self._of_neighbours(access, indices) is None:
            return None
        (condition,) = conditions
        for use in result.uses:
            user = use.owner.operation
            is_selected = user.name == "arith.select" and user.operands[0] == condition
            if not is_selected or use.operand_number != 1:
                return None
        self.padded[result] = PaddedLoad(condition, indices)
        return VECTOR

    def _of_neighbours(self, access: Access, indices: Sequence[Any]) -> int | None:
        *outer, last = [self[index] for index in indices]
        most = 1 if access.writes else _MOST_STRIDE
        is_gathered = last == VECTOR and self.gathers and not access.writes
        if any(kind != UNIFORM for kind in outer) or not (1 <= last <= most or is_gathered):
            return None
        if not is_row_of_elements(access.memref):
            return None
        if not is_gathered:
            self.strides.add(last)
        return VECTOR


def _guards(index: Any, loaded: Any) -> bool:
    """Whether the loaded value is only used where the condition of the index holds."""
    select = ops.defining(index)
    if select is None or select.name != "arith.select":
        return False
    users = [use.owner.operation for use in loaded.uses]
    condition = select.operands[0]
    return all(user.name == "arith.select" and user.operands[0] == condition for user in users)


def is_row_of_elements(memref: Any) -> bool:
    """Whether neighbours along a memref's last dimension can be a vector."""
    type_ = ir.MemRefType(memref.type)
    # An i1 takes a byte in memory, but a bit in a vector.
    is_stored = _is_element(type_.element_type) and type_.element_type != ops.integer(1)
    return is_stored and _is_contiguous_along(type_)


def _is_contiguous_along(type_: Any) -> bool:
    """Whether adjacent elements of a memref's last dimension are adjacent in memory."""
    if isinstance(type_.layout, ir.StridedLayoutAttr):
        return bool(type_.get_strides_and_offset()[0][-1] == 1)
    return bool(type_.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank)))


def _is_element(type_: Any) -> bool:
    floats = ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type
    return isinstance(type_, floats | ir.IndexType) or (
        isinstance(type_, ir.IntegerType) and type_.width in (1, 8, 16, 32, 64)
    )
