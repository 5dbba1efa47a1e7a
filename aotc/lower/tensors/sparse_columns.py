"""Makes the columns of a sparse-dense matmul parallel, with each element's sum carried by a loop.

The sparsifier walks a sparse row, and adds each stored element's contribution to all columns of the
result: the columns are the innermost loop. After this rewrite, the columns are parallel like the
rows, and the loop along the sparse row carries the sum. Adjacent columns are then adjacent threads,
or a vector, and read adjacent elements of the dense matrix. The order of the additions does not
change.

In a matrix of blocks, the same is done for the rows of a block: the sparsifier walks a row of
blocks, and adds to each row of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir

_PURE = ("arith.", "math.", "llvm.extractvalue")


class _RowSum(Struct, frozen=True):
    """The loops and accesses of a sum.

    `rows` is the parallel loop, `row` the loop along a sparse row in it, and `columns` the loop in
    that. `columns` loads an element, adds to it, possibly in a loop, and stores it.
    """

    rows: Any
    row: Any
    columns: Any
    load: Any
    store: Any

    @property
    def column(self) -> Any:
        return self.columns.regions[0].blocks[0].arguments[0]


def separate_columns(rows: Any) -> None:
    """Changes a parallel loop of the sparsifier if it has this form."""
    found = _find(rows)
    if found is not None:
        _rewrite(found)


def _find(rows: Any) -> _RowSum | None:
    row = _only_loop(rows)
    columns = None if row is None else _only_loop(row)
    if row is None or columns is None or any(len(loop.results) for loop in (rows, row, columns)):
        return None
    *body, _ = ops.content(columns)
    stores = [op for op in body if op.name == "memref.store"]
    loads = [op for op in body if op.name == "memref.load"]
    if len(stores) != 1 or not all(op in stores or _only_reads(op) for op in body):
        return None
    (store,) = stores
    _, target, *places = store.operands
    own = [load for load in loads if load.operands[0] == target]
    if len(own) != 1 or list(own[0].operands)[1:] != places:
        return None
    found = _RowSum(rows, row, columns, own[0], store)
    is_for_itself = any(_is_of_column(place, found) for place in places) and all(
        _is_of_column(place, found) or ops.is_made_outside(place, row) for place in places
    )
    bounds_are_known = all(ops.is_made_outside(value, rows) for value in columns.operands)
    reads = (op for op in ops.find(rows, "memref.load") if op != own[0])
    is_read = any(read.operands[0] == target for read in reads)
    is_own = ops.is_made_outside(target, rows) and not is_read
    return found if is_for_itself and bounds_are_known and is_own else None


def _only_reads(operation: Any) -> bool:
    """Whether the operation, including the body of a loop, has no effects other than reads."""
    if operation.name == "scf.for":
        return all(map(_only_reads, ops.content(operation)[:-1]))
    return operation.name == "memref.load" or _is_pure(operation)


def _is_of_column(place: Any, found: _RowSum) -> bool:
    """Whether the index is the column, or the column plus the first row of a block."""
    if place == found.column:
        return True
    total = ops.defining(place)
    if total is None or total.name != "arith.addi" or found.column not in total.operands:
        return False
    return any(ops.is_made_outside(term, found.row) for term in total.operands)


def _only_loop(loop: Any) -> Any | None:
    """The loop that is last in the body of another, after operations without effects; None if there
    is none."""
    *body, _ = ops.content(loop)
    if not body or body[-1].name != "scf.for":
        return None
    is_effect_free = all(op.name == "memref.load" or _is_pure(op) for op in body[:-1])
    return body[-1] if is_effect_free else None


def _is_pure(operation: Any) -> bool:
    return bool(operation.name.startswith(_PURE)) and not len(operation.regions)


def _rewrite(found: _RowSum) -> None:
    lower, upper, step, _ = ops.operand_groups(found.rows)
    of_columns = found.columns.operands
    bounds = [[*one, last] for one, last in zip((lower, upper, step), of_columns, strict=True)]
    count = len(bounds[0])
    with found.rows.location, ir.InsertionPoint(found.rows):
        segments = ir.DenseI32ArrayAttr.get([count, count, count, 0])
        attributes = {"operandSegmentSizes": segments}
        operands = [value for one in bounds for value in one]
        new = ops.create("scf.parallel", operands, [], attributes, regions=1)
        block = new.regions[0].blocks.append(*[ir.IndexType.get()] * count)
        *variables, column = block.arguments
        with ir.InsertionPoint(block):
            _fill(found, variables, column)
            ops.create("scf.reduce")
    ops.erase(found.rows)


def _fill(found: _RowSum, variables: Sequence[Any], column: Any) -> None:
    _move(ops.content(found.rows)[:-2], found.rows, variables)
    found.column.replace_all_uses_with(column)
    _, target, *places = found.store.operands
    places = [_recompute_index(place, column) for place in places]
    type_ = found.load.results[0].type
    begin = ops.load(target, places)
    row = ops.create("scf.for", [*found.row.operands, begin], [type_], regions=1)
    inner = row.regions[0].blocks.append(ir.IndexType.get(), type_)
    variable, total = inner.arguments
    with ir.InsertionPoint(inner):
        _move(ops.content(found.row)[:-2], found.row, [variable])
        found.load.results[0].replace_all_uses_with(total)
        *body, _ = ops.content(found.columns)
        _move([op for op in body if op not in (found.load, found.store)], found.columns, [column])
        ops.create("scf.yield", [found.store.operands[0]])
    ops.create("memref.store", [row.results[0], target, *places])


def _recompute_index(place: Any, column: Any) -> Any:
    """The index, recomputed before the loop along the row if it is in a block."""
    total = ops.defining(place)
    if total is None or total.name != "arith.addi" or column not in total.operands:
        return place
    return ops.index_op(total.name, *total.operands)


def _move(operations: Sequence[Any], loop: Any, variables: Sequence[Any]) -> None:
    """Moves operations to the insertion point, and replaces the variables of their loop."""
    arguments = loop.regions[0].blocks[0].arguments
    for argument, variable in zip(arguments, variables, strict=True):
        argument.replace_all_uses_with(variable)
    place = ir.InsertionPoint.current
    for operation in operations:
        operation.detach_from_parent()
        place.insert(operation)
