"""Guards at the start of a thread function → bounds of the loops over threads.

A kernel whose shape does not divide begins with a bounds check such as `first + thread_id.x < n`.
As a branch in the loop over threads, it prevents vectorization on machines without masked stores.
As a bound of the loop it costs nothing: the threads with work are those with
`thread_id.x < n - first`. A guard is removed from the thread function if a thread that fails it
does nothing else, and if it bounds one thread id from above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.chips import MAX_BLOCK_THREADS, MAX_GRID
from aotc.mlir import ir
from aotc.ops import create
from aotc.targets.cpu import build

# llvm.icmp's predicates.
_SLT, _SLE, _SGT, _SGE, _ULT, _ULE, _UGT, _UGE = range(2, 10)
_NEGATED = {
    _SLT: _SGE,
    _SGE: _SLT,
    _SLE: _SGT,
    _SGT: _SLE,
    _ULT: _UGE,
    _UGE: _ULT,
    _ULE: _UGT,
    _UGT: _ULE,
}
_SWAPPED = {_SLT: _SGT, _SGT: _SLT, _SLE: _SGE, _SGE: _SLE}
_SWAPPED |= {_ULT: _UGT, _UGT: _ULT, _ULE: _UGE, _UGE: _ULE}

# Operations that may precede a guard: they have no effect in a thread that the guard stops.
_WITHOUT_TRACE = frozenset(
    "llvm." + name
    for name in (
        "mlir.constant mlir.zero mlir.undef mlir.poison mlir.addressof add sub mul and or xor shl "
        "lshr ashr icmp fcmp select getelementptr load extractvalue insertvalue alloca zext sext "
        "trunc ptrtoint inttoptr bitcast fadd fsub fmul fdiv fneg fpext fptrunc sitofp uitofp "
        "fptosi fptoui intr.smax intr.smin intr.umax intr.umin intr.abs"
    ).split()
)
# The largest ids and sizes on any GPU: thread_id, block_id, grid_dim, block_dim.
_LARGEST_ID = (*[MAX_BLOCK_THREADS - 1] * 3, *MAX_GRID, *MAX_GRID, *[MAX_BLOCK_THREADS] * 3)
# Operations from which a bound may be computed in the block function, as they cannot trap.
_COMPUTED = frozenset({"llvm.add", "llvm.sub", "llvm.mul", "llvm.intr.smax", "llvm.intr.smin"})
_I64_MAX = (1 << 63) - 1


class Bound(Struct, frozen=True):
    """A thread has work only if its id plus `offsets` is less than (or equal to) `limit`."""

    offsets: tuple[Any, ...]
    limit: Any
    includes_limit: bool
    is_unsigned: bool

    def build_count(self, size: Any, arguments: Mapping[int, Any]) -> Any:
        """The number of threads from id 0 on that have work, at most `size`: an i64 at the current
        insertion point.

        `arguments` maps the numbers of the thread function's arguments to their values.
        """
        limit = _build(self.limit, arguments)
        if self.is_unsigned:
            # As a signed number a large limit would be negative, but ids are not negative.
            is_large = build.compare(build.SLT, limit, build.number(0))
            limit = create(
                "llvm.select", [is_large, build.number(_I64_MAX), limit], [limit.type]
            ).result
        count = limit
        for offset in self.offsets:
            # Saturates: a limit close to the largest number does not limit.
            taken = _build(offset, arguments)
            count = create("llvm.intr.ssub.sat", [count, taken], [count.type]).result
        if self.includes_limit:
            count = create("llvm.intr.sadd.sat", [count, build.number(1)], [count.type]).result
        # With a negative count, the loop has no iteration.
        return build.smaller(count, size)


def take_guards(function: Any, first_id: int) -> dict[int, list[Bound]]:
    """Removes guards from a thread function; returns their bounds by dimension (x is 0).

    Arguments `first_id` to `first_id + 2` are the thread's id.
    """
    bounds: dict[int, list[Bound]] = {0: [], 1: [], 2: []}
    block = function.regions[0].blocks[0]
    while True:
        operations = ops.operations_in(block)
        branch = operations.pop()
        if branch.name != "llvm.cond_br" or any(op.name not in _WITHOUT_TRACE for op in operations):
            return bounds
        onward, other = branch.successors
        must_hold = True
        if _ends(onward):
            onward, other, must_hold = other, onward, False
        if not _ends(other) or _ends(onward) or len(list(onward.predecessors)) != 1:
            return bounds
        for condition in _conjuncts(branch.operands[0], "llvm.and" if must_hold else "llvm.or"):
            found = _bound(condition, must_hold, first_id)
            if found is not None:
                dimension, bound = found
                bounds[dimension].append(bound)
                _replace_part(branch, condition, must_hold)
        block = onward


def _ends(block: Any) -> bool:
    """Whether only the function's end follows `block`."""
    seen = 0
    while True:
        operations = ops.operations_in(block)
        if len(operations) != 1 or seen > 8:
            return False
        if operations[0].name == "llvm.return":
            return True
        if operations[0].name != "llvm.br":
            return False
        block = operations[0].successors[0]
        seen += 1


def _conjuncts(condition: Any, joint: str) -> list[Any]:
    """The conditions that are combined to `condition` by `joint` (llvm.and or llvm.or)."""
    owner = condition.owner
    if isinstance(owner, ir.Block) or owner.name != joint:
        return [condition]
    return [part for operand in owner.operands for part in _conjuncts(operand, joint)]


def _replace_part(branch: Any, part: Any, value: bool) -> None:
    """Replaces `region` by `value` in the branch's condition; other users of it are not changed."""
    with ir.InsertionPoint(branch), branch.location:
        branch.operands[0] = _rebuilt(branch.operands[0], part, value)


def _rebuilt(condition: Any, part: Any, value: bool) -> Any:
    if condition == part:
        bit = ir.IntegerType.get_signless(1)
        return ir.Operation.create(
            "llvm.mlir.constant",
            results=[bit],
            attributes={"value": ir.IntegerAttr.get(bit, -1 if value else 0)},
        ).result
    owner = condition.owner
    if isinstance(owner, ir.Block) or owner.name != ("llvm.and" if value else "llvm.or"):
        return condition
    operands = [_rebuilt(operand, part, value) for operand in owner.operands]
    if all(new == old for new, old in zip(operands, owner.operands, strict=True)):
        return condition
    return ir.Operation.create(owner.name, results=[condition.type], operands=operands).result


def _bound(condition: Any, must_hold: bool, first_id: int) -> tuple[int, Bound] | None:
    """The dimension and the bound that a comparison expresses, or None."""
    comparison = condition.owner
    if isinstance(comparison, ir.Block) or comparison.name != "llvm.icmp":
        return None
    left, right = comparison.operands
    predicate = int(comparison.attributes["predicate"])
    if str(left.type) != "i64" or predicate not in _NEGATED:
        return None
    if not must_hold:
        predicate = _NEGATED[predicate]
    for bounded, limit, relation in ((left, right, predicate), (right, left, _SWAPPED[predicate])):
        if relation not in (_SLT, _SLE, _ULT, _ULE):
            continue
        addends = _addends(bounded)
        ids = [_thread_dimension(addend, first_id) for addend in addends]
        dimensions = [dimension for dimension in ids if dimension is not None]
        if len(dimensions) != 1:
            continue
        offsets = [a for a, dimension in zip(addends, ids, strict=True) if dimension is None]
        is_unsigned = relation in (_ULT, _ULE)
        first = _sum_range(offsets, first_id)
        # If the sum wrapped around, a guard would hold again for later threads.
        if first is None or (is_unsigned and first[0] < 0):
            continue
        if all(_is_known_before(value, dimensions[0], first_id) for value in (*offsets, limit)):
            bound = Bound(tuple(offsets), limit, relation in (_SLE, _ULE), is_unsigned)
            return dimensions[0], bound
    return None


def _addends(value: Any) -> list[Any]:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.add":
        return [value]
    return [addend for operand in owner.operands for addend in _addends(operand)]


def _argument_number(value: Any) -> int | None:
    """The number of the function's argument that the value is, or None. (A value that is a block
    argument here is one of the entry block.)"""
    if not isinstance(value.owner, ir.Block):
        return None
    entry = value.owner.region.blocks[0]
    return int(ir.BlockArgument(value).arg_number) if value.owner == entry else None


def _thread_dimension(value: Any, first_id: int) -> int | None:
    number = _argument_number(value)
    return number - first_id if number is not None and 0 <= number - first_id < 3 else None


def _is_known_before(value: Any, dimension: int, first_id: int) -> bool:
    """Whether a value can be computed before the loop over `dimension`, which is inside of the
    loops over the dimensions above it."""
    if str(value.type) != "i64":
        return False
    if isinstance(value.owner, ir.Block):
        own = _thread_dimension(value, first_id)
        return _argument_number(value) is not None and (own is None or own > dimension)
    if value.owner.name == "llvm.mlir.constant":
        return True
    return value.owner.name in _COMPUTED and all(
        _is_known_before(operand, dimension, first_id) for operand in value.owner.operands
    )


def _range(value: Any, first_id: int) -> tuple[int, int] | None:
    """The smallest and the largest value of an expression of ids, sizes and constants; None for any
    other value."""
    number = _argument_number(value)
    if number is not None:
        place = number - first_id
        return (0, _LARGEST_ID[place]) if 0 <= place < len(_LARGEST_ID) else None
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "llvm.mlir.constant":
        constant = int(ir.IntegerAttr(owner.attributes["value"]).value)
        return constant, constant
    if owner.name not in ("llvm.add", "llvm.sub", "llvm.mul"):
        return None
    ranges = [_range(operand, first_id) for operand in owner.operands]
    left, right = ranges
    if left is None or right is None:
        return None
    if owner.name == "llvm.add":
        corners = [left[0] + right[0], left[1] + right[1]]
    elif owner.name == "llvm.sub":
        corners = [left[0] - right[1], left[1] - right[0]]
    else:
        corners = [one * other for one in left for other in right]
    low, high = min(corners), max(corners)
    return _in_range(low, high)


def _sum_range(values: list[Any], first_id: int) -> tuple[int, int] | None:
    low = high = 0
    for value in values:
        found = _range(value, first_id)
        if found is None:
            return None
        low, high = low + found[0], high + found[1]
    return _in_range(low, high)


def _in_range(low: int, high: int) -> tuple[int, int] | None:
    # The half of the range, so that a thread id can be added without overflow.
    half = _I64_MAX // 2
    return (low, high) if low > -half and high < half else None


def _build(value: Any, arguments: Mapping[int, Any]) -> Any:
    number = _argument_number(value)
    if number is not None:
        return arguments[number]
    owner = value.owner
    if owner.name == "llvm.mlir.constant":
        return build.number(int(ir.IntegerAttr(owner.attributes["value"]).value))
    operands = [_build(operand, arguments) for operand in owner.operands]
    return create(owner.name, operands, [value.type]).result
