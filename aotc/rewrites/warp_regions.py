"""`gpu.warp_execute_on_lane_0` → a branch of lane 0, and shuffles of its operands and results.

A distributed vector (`vector<4xf32>` in each of 32 lanes for one `vector<128xf32>` of lane 0) is
gathered from all lanes before the branch, and scattered to them afterwards. A value with the same
type inside and outside is lane 0's.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.input.source import Source, input_error
from aotc.mlir import ir

_NAME = "gpu.warp_execute_on_lane_0"
_EQ = 0  # arith.cmpi's number
_SHUFFLED_BY_INDEX = "#gpu<shuffle_mode idx>"


def expand_warp_regions(source: Source) -> None:
    """Changes the module in place. Raises InputError for types that no shuffle supports."""
    module = source.module
    with module.context:
        # Inner regions first, so that no region contains another one when it is expanded.
        for region in reversed(ops.find(module.operation, _NAME)):
            _check(source, region)
            with region.location, ir.InsertionPoint(region):
                _expand(region)
            ops.erase(region)


def _check(source: Source, region: Any) -> None:
    block = region.regions[0].blocks[0]
    pairs = [
        *zip(list(region.operands)[1:], block.arguments, strict=True),
        *zip(region.results, ops.terminator(block).operands, strict=True),
    ]
    for own, whole in pairs:
        element = ops.element_type(own.type)
        is_number = isinstance(element, ir.IntegerType | ir.FloatType | ir.IndexType)
        if is_number and (own.type == whole.type or _dimension(own.type, whole.type) is not None):
            continue
        what = f"a {own.type} of a {whole.type}"
        said = (
            f"{_NAME} with {what} is not supported: lanes exchange numbers, and vectors that are "
            "distributed along one dimension."
        )
        raise input_error(source, [(region.location, said)])


def _dimension(own: Any, whole: Any) -> int | None:
    """The dimension along which a vector is distributed; None if there is not exactly one."""
    differ = [i for i, (a, b) in enumerate(zip(own.shape, whole.shape, strict=True)) if a != b]
    return differ[0] if len(differ) == 1 else None


def _expand(region: Any) -> None:
    block = region.regions[0].blocks[0]
    lane, *given = region.operands
    lanes = ir.IntegerAttr(region.attributes["warp_size"]).value
    for argument, own in zip(block.arguments, given, strict=True):
        argument.replace_all_uses_with(_gathered(own, argument.type, lanes))
    ended = ops.terminator(block)
    results = list(ended.operands)
    types = [value.type for value in results]
    is_first = ops.compare(_EQ, lane, ops.constant_index(0))
    branch = ops.create("scf.if", [is_first], types, regions=2)
    first = branch.regions[0].blocks.append()
    with ir.InsertionPoint(first):
        end = ops.create("scf.yield", results)
    for operation in list(block.operations)[:-1]:
        operation.operation.move_before(end)
    if types:
        with ir.InsertionPoint(branch.regions[1].blocks.append()):
            ops.create("scf.yield", [ops.create("ub.poison", (), [one]).result for one in types])
    for result, whole in zip(region.results, branch.results, strict=True):
        result.replace_all_uses_with(_handed_out(whole, result.type, lane, lanes))


def _gathered(own: Any, whole: Any, lanes: int) -> Any:
    """The vector that is distributed over the lanes."""
    if own.type == whole:
        return own
    along = _dimension(own.type, whole)
    assert along is not None
    value = ops.create("ub.poison", (), [whole]).result
    for lane in range(lanes):
        part = _shuffled(own, lane, lanes)
        offsets = [lane * size if i == along else 0 for i, size in enumerate(own.type.shape)]
        attributes = {"offsets": _indices(offsets), "strides": _indices([1] * len(offsets))}
        value = ops.create("vector.insert_strided_slice", [part, value], [whole], attributes).result
    return value


def _handed_out(whole: Any, own: Any, lane: Any, lanes: int) -> Any:
    """Each lane's part of a vector that lane 0 has."""
    if own == whole.type:
        return _shuffled(whole, 0, lanes)
    along = _dimension(own, whole.type)
    assert along is not None
    value = None
    for number in range(lanes):
        offsets = [number * size if i == along else 0 for i, size in enumerate(own.shape)]
        attributes = {
            "offsets": _indices(offsets),
            "sizes": _indices(list(own.shape)),
            "strides": _indices([1] * len(offsets)),
        }
        part = ops.create("vector.extract_strided_slice", [whole], [own], attributes).result
        part = _shuffled(part, 0, lanes)
        if value is None:
            value = part
        else:
            is_own = ops.compare(_EQ, lane, ops.constant_index(number))
            value = ops.select(is_own, part, value)
    return value


def _indices(numbers: list[int]) -> Any:
    i64 = ops.integer(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, number) for number in numbers])


def _shuffled(value: Any, lane: int, lanes: int) -> Any:
    """The value of another lane."""
    type_ = value.type
    if isinstance(ops.element_type(type_), ir.IndexType):
        wide = ops.with_element_type(type_, ops.integer(64))
        moved = _shuffled(ops.unary("arith.index_cast", value, wide), lane, lanes)
        return ops.unary("arith.index_cast", moved, type_)
    is_flat = not isinstance(type_, ir.VectorType) or len(type_.shape) == 1
    if not is_flat:
        count = 1
        for size in type_.shape:
            count *= size
        value = ops.unary(
            "vector.shape_cast", value, ir.VectorType.get([count], type_.element_type)
        )
    i32, i1 = ops.integer(32), ops.integer(1)
    moved = ops.create(
        "gpu.shuffle",
        [value, ops.constant(i32, lane), ops.constant(i32, lanes)],
        [value.type, i1],
        {"mode": ir.Attribute.parse(_SHUFFLED_BY_INDEX)},
    ).results[0]
    return moved if is_flat else ops.unary("vector.shape_cast", moved, type_)
