"""Operations of tensor cores, and those that load and store their operands → code of single lanes.

`MATRICES` is the table. The layout of a `!gpu.mma_matrix` over the lanes is opaque to programs;
here it is row-major, see `fragments.RowMajorFragment`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aotc.mlir import ir
from aotc.ops import binary, constant, create, enumerator, unary
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import element_address, to_i64
from aotc.targets.cpu.expand.async_copies import ASYNC_COPIES
from aotc.targets.cpu.expand.matmul import (
    accumulator_type,
    convert,
    multiply,
    place_multiplicands,
    prepare,
)
from aotc.targets.cpu.expand.matrix_types import Matrix, former_matrices
from aotc.targets.cpu.expand.mma import MMA
from aotc.targets.cpu.sizes import size_of
from aotc.targets.cpu.synchronize import WARP_SLOTS, warp_sync

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids


def _own_place(matrix: Matrix, ids: Ids) -> tuple[Any, Any]:
    """The row and the column of this lane's first element, as i64. The others follow in the row."""
    first = build.multiply(to_i64(ids.lane), build.number(matrix.layout.count))
    columns = build.number(matrix.layout.columns)
    return build.divide(first, columns), build.remainder(first, columns)


def _addresses(operation: Any, memref: Any, indices: list[Any], ids: Ids) -> list[Any]:
    """The addresses of this lane's elements of a matrix in memory: of the first one if they are
    contiguous, else of each."""
    (matrix,) = former_matrices(operation)
    base = element_address(memref, indices)
    size = size_of(matrix.vector.element_type).bytes
    pitch = build.number(size * ir.IntegerAttr(operation.attributes["leadDimension"]).value)
    row, column = _own_place(matrix, ids)

    def address(outer: Any, inner: Any) -> Any:
        offset = build.multiply(inner, build.number(size))
        return build.at(base, build.add(build.multiply(outer, pitch), offset))

    if not _is_transposed(operation):
        return [address(row, column)]
    return [
        address(build.add(column, build.number(element)), row)
        for element in range(matrix.layout.count)
    ]


def _is_transposed(operation: Any) -> bool:
    return "transpose" in operation.attributes


def _load_matrix(operation: Any, ids: Ids) -> None:
    memref, *indices = operation.operands
    vector = operation.results[0].type
    addresses = _addresses(operation, memref, indices, ids)
    # An element of a memref is aligned, but a row of a matrix need not be.
    alignment = size_of(vector.element_type).bytes
    if _is_transposed(operation):
        elements = [
            build.load(address, vector.element_type, alignment=alignment) for address in addresses
        ]
        value = create("vector.from_elements", elements, [vector]).result
    else:
        value = build.load(addresses[0], vector, alignment=alignment)
    operation.results[0].replace_all_uses_with(value)


def _store_matrix(operation: Any, ids: Ids) -> None:
    value, memref, *indices = operation.operands
    addresses = _addresses(operation, memref, indices, ids)
    alignment = size_of(value.type.element_type).bytes
    if not _is_transposed(operation):
        build.store(value, addresses[0], alignment=alignment)
        return
    for number, address in enumerate(addresses):
        element = create(
            "llvm.extractelement", [value, build.number(number)], [value.type.element_type]
        ).result
        build.store(element, address, alignment=alignment)


def _compute(operation: Any, ids: Ids) -> None:
    """D = A * B + C. The attributes say how A and B were loaded, which does not matter here."""
    a_value, b_value, c_value = operation.operands
    a_matrix, b_matrix, c_matrix, _ = former_matrices(operation)
    element = a_value.type.element_type
    m, n, k = c_matrix.layout.rows, c_matrix.layout.columns, a_matrix.layout.columns
    a, b = place_multiplicands(ids.slots, WARP_SLOTS, element, m, n, k)
    lane = to_i64(ids.lane)
    # Waits for lanes that still read an earlier operand here.
    warp_sync()
    for multiplicand, matrix, value in ((a, a_matrix, a_value), (b, b_matrix, b_value)):
        # Row-major in memory and over the lanes: the lanes' elements are consecutive.
        part = matrix.layout.count * multiplicand.element_bytes
        address = build.at(multiplicand.address, build.multiply(lane, build.number(part)))
        build.store(prepare(value, multiplicand.element), address, alignment=part)
    warp_sync()
    row, column = _own_place(c_matrix, ids)
    (total,) = multiply(
        a,
        b,
        [build.at(a.address, build.multiply(row, build.number(a.offset((1, 0)))))],
        build.at(b.address, build.multiply(column, build.number(b.offset((0, 1))))),
        [convert(c_value, accumulator_type(element))],
        is_unsigned=a_matrix.is_unsigned,
    )
    result = operation.results[0]
    result.replace_all_uses_with(convert(total, result.type.element_type))


def _constant_matrix(operation: Any, _: Ids) -> None:
    result = operation.results[0]
    result.replace_all_uses_with(unary("vector.broadcast", operation.operands[0], result.type))


def _elementwise(operation: Any, _: Ids) -> None:
    # #gpu<mma_element_wise addf>
    kind = enumerator(operation.attributes["opType"])
    result = operation.results[0]
    operands = list(operation.operands)
    if kind == "negates":
        value = binary("arith.subi", constant(result.type, 0), operands[0])
    else:
        value = create(_ELEMENTWISE[kind], operands, [result.type]).result
    result.replace_all_uses_with(value)


# Kinds that are a single operation of arith.
_ELEMENTWISE = {
    "addf": "arith.addf",
    "mulf": "arith.mulf",
    "subf": "arith.subf",
    # As on a GPU, a NaN is propagated.
    "maxf": "arith.maximumf",
    "minf": "arith.minimumf",
    "divf": "arith.divf",
    "addi": "arith.addi",
    "muli": "arith.muli",
    "subi": "arith.subi",
    "divs": "arith.divsi",
    "divu": "arith.divui",
    "negatef": "arith.negf",
    "extf": "arith.extf",
    "truncf": "arith.truncf",
}


def _extract_thread_local(operation: Any, _: Ids) -> None:
    matrix, index = operation.operands
    result = operation.results[0]
    value = create("llvm.extractelement", [matrix, to_i64(index)], [result.type]).result
    result.replace_all_uses_with(value)


def _insert_thread_local(operation: Any, _: Ids) -> None:
    element, matrix, index = operation.operands
    value = create("llvm.insertelement", [matrix, element, to_i64(index)], [matrix.type]).result
    operation.results[0].replace_all_uses_with(value)


MATRICES: dict[str, Callable[[Any, Ids], None]] = {
    "gpu.subgroup_mma_load_matrix": _load_matrix,
    "gpu.subgroup_mma_store_matrix": _store_matrix,
    "gpu.subgroup_mma_compute": _compute,
    "gpu.subgroup_mma_constant_matrix": _constant_matrix,
    "gpu.subgroup_mma_elementwise": _elementwise,
    "gpu.subgroup_mma_extract_thread_local": _extract_thread_local,
    "gpu.subgroup_mma_insert_thread_local": _insert_thread_local,
    **MMA,
    **ASYNC_COPIES,
}
