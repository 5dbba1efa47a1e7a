"""Lowers assignments to rows in torch-mlir's torch dialect to loops over the rows.

`x[:, rows] = y` and `index_copy` select whole rows of a tensor by one 1-D index. torch-mlir would
make an index of all their elements, to be sorted. Here a loop writes the elements. If a row is
selected several times, only the last one is written, so the result is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.frontends.torch_mlir.dialect import builtin_type, known_tensor, load_casts

# The most rows that may be selected: each is compared with all that follow it.
_MOST_ROWS = 1024
_INTEGERS = {"si32": "i32", "si64": "i64"}


def assign_rows(module: Any) -> None:
    """Lowers those assignments in a module of the torch dialect whose sizes are known, in place."""
    from torch_mlir import ir

    with module.context, ir.Location.unknown():
        found = [
            (put, rows)
            for put in ops.find(module.operation, "torch.aten.index_put")
            if (rows := _rows_of(put)) is not None
        ]
        if found:
            load_casts(module.context)
        for put, rows in found:
            _replace(ir, put, rows)


class _Rows(Struct, frozen=True):
    """An assignment to rows: the dimension of the rows, their number, the value of their index and
    its element type, and the shapes of the tensor and of the assigned values."""

    dimension: int
    count: int
    places: Any
    index: str
    shape: tuple[int, ...]
    values: tuple[int, ...]


def _rows_of(put: Any) -> _Rows | None:
    """None for an assignment to other elements, or with sizes that are not known."""
    tensor, values = (known_tensor(put.operands[i]) for i in (0, 2))
    listed, accumulate = ops.defining(put.operands[1]), ops.defining(put.operands[3])
    if tensor is None or values is None or listed is None or accumulate is None:
        return None
    if listed.name != "torch.prim.ListConstruct" or accumulate.name != "torch.constant.bool":
        return None
    named = [(i, one) for i, one in enumerate(listed.operands) if str(one.type) != "!torch.none"]
    if len(named) != 1 or "true" in str(accumulate.attributes["value"]):
        return None
    ((dimension, places),) = named
    index = known_tensor(places)
    if index is None or len(index[0]) != 1 or index[1] not in _INTEGERS:
        return None
    if index[0][0] > _MOST_ROWS:
        return None
    shape, element = tensor
    assigned = (*shape[:dimension], index[0][0], *shape[dimension + 1 :])
    beside = assigned[len(assigned) - len(values[0]) :]
    fits = len(values[0]) <= len(assigned) and all(
        size in (1, whole) for size, whole in zip(values[0], beside, strict=True)
    )
    if not fits or 0 in (*shape, *assigned) or values[1] != element or "<" in element:
        return None
    return _Rows(dimension, index[0][0], places, _INTEGERS[index[1]], shape, values[0])


def _replace(ir: Any, put: Any, rows: _Rows) -> None:
    given = (put.operands[0], rows.places, put.operands[2])
    builtin = [ir.Type.parse(builtin_type(value.type)) for value in given]
    parsed = ir.Module.parse(_text(rows, builtin))
    (function,) = ops.find(parsed.operation, "func.func")
    with put.location, ir.InsertionPoint(put):
        operands = [
            ops.unary("torch_c.to_builtin_tensor", value, type_)
            for value, type_ in zip(given, builtin, strict=True)
        ]
        stand_in = ops.create("builtin.unrealized_conversion_cast", operands, [builtin[0]])
        result = ops.unary("torch_c.from_builtin_tensor", stand_in.result, put.results[0].type)
    ops.replace(put, [result])
    ops.replace_by_body(stand_in, function.regions[0].blocks[0], operands)
    ops.erase(stand_in)


def _text(rows: _Rows, types: Sequence[Any]) -> str:
    """The text of a function of the tensor, the index and the assigned values."""
    tensor, _, values = types
    rank = len(rows.shape)
    loops = [f"%d{of}" for of in range(rank)]
    counts = [str(rows.count if of == rows.dimension else n) for of, n in enumerate(rows.shape)]
    row = loops[rows.dimension]
    read = [
        "%c0" if n == 1 else loop
        for n, loop in zip(rows.values, loops[rank - len(rows.values) :], strict=True)
    ]
    place = ["%to" if of == rows.dimension else loop for of, loop in enumerate(loops)]
    part = f"tensor<{'x'.join(['?', *'1' * (rank - 1), str(tensor.element_type)])}>"
    slice_ = (
        f"[{', '.join(place)}] [{', '.join(['%length', *'1' * (rank - 1)])}] "
        f"[{', '.join('1' * rank)}]"
    )
    before, key = _keys_of_several(rows, types[1], row)
    if rows.count == 1:
        # A tensor with one element would be computed on the host, which would have to wait for the
        # index.
        before, key = (
            "",
            f"{_key_lines(rows, types[1], '%c0')}\n%length = arith.addi %c0, %c1 : index",
        )
    return f"""
func.func @rows(%given: {tensor}, %index: {types[1]}, %values: {values}) -> {tensor} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant {rows.count} : index
  %zero = arith.constant 0 : i64
  %size = arith.constant {rows.shape[rows.dimension]} : i64
  %last = arith.constant {rows.shape[rows.dimension] - 1} : i64
  %true = arith.constant true
  {before}
  %made = scf.forall ({", ".join(loops)}) in ({", ".join(counts)}) shared_outs(%shared = %given)
      -> ({tensor}) {{
    {key}
    // In bounds even if the assertion has failed.
    %some = arith.minui %key, %last : i64
    %to = arith.index_cast %some : i64 to index
    %value = tensor.extract %values[{", ".join(read)}] : {values}
    %slice = tensor.extract_slice %shared{slice_} : {tensor} to {part}
    %whole = scf.for %one = %c0 to %length step %c1 iter_args(%into = %slice) -> ({part}) {{
      %put = tensor.insert %value into %into[{", ".join(["%one", *["%c0"] * (rank - 1)])}] : {part}
      scf.yield %put : {part}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole into %shared{slice_} : {part} into {tensor}
    }}
  }}
  return %made : {tensor}
}}
"""


def _key_lines(rows: _Rows, index: Any, position: str) -> str:
    """Lines that define %key, the index of a row counted from the start."""
    wide = "arith.extsi %read : i32 to i64"
    if rows.index == "i64":
        wide = "arith.addi %read, %zero : i64"
    return f"""%read = tensor.extract %index[{position}] : {index}
    %wide = {wide}
    %is_negative = arith.cmpi slt, %wide, %zero : i64
    %added = arith.addi %wide, %size : i64
    %key = arith.select %is_negative, %added, %wide : i64
    %is_within = arith.cmpi ult, %key, %size : i64
    cf.assert %is_within, "an index is out of bounds\""""


def _keys_of_several(rows: _Rows, index: Any, row: str) -> tuple[str, str]:
    """Returns the text before the loop, and the lines in it that define %key and %length. %length
    is 0 for a row that is selected again later."""
    keys, flags = f"tensor<{rows.count}xi64>", f"tensor<{rows.count}xi1>"
    generic = (
        'linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}'
    )
    before = f"""%none = tensor.empty() : {keys}
  %keys = {generic} outs(%none : {keys}) {{
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    {_key_lines(rows, index, "%i")}
    linalg.yield %key : i64
  }} -> {keys}
  %no = tensor.empty() : {flags}
  %is_last = {generic} outs(%no : {flags}) {{
  ^bb0(%out: i1):
    %i = linalg.index 0 : index
    %own = tensor.extract %keys[%i] : {keys}
    %next = arith.addi %i, %c1 : index
    %flag = scf.for %j = %next to %count step %c1 iter_args(%so_far = %true) -> (i1) {{
      %other = tensor.extract %keys[%j] : {keys}
      %is_other = arith.cmpi ne, %other, %own : i64
      %both = arith.andi %so_far, %is_other : i1
      scf.yield %both : i1
    }}
    linalg.yield %flag : i1
  }} -> {flags}"""
    key = f"""%key = tensor.extract %keys[{row}] : {keys}
    %flag = tensor.extract %is_last[{row}] : {flags}
    %length = arith.select %flag, %c1, %c0 : index"""
    return before, key
