"""Types that only a GPU has (`!gpu.mma_matrix`, copy tokens) → types that a host has.

A `!gpu.mma_matrix` becomes the vector of the elements that one lane holds
(`fragments.RowMajorFragment`). The token of an asynchronous copy becomes an integer that is not
used. Operations that `matrix` expands get their former types as an attribute, as the vectors do not
have the matrices' shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc.mlir import ir
from aotc.ops import function_type, integer, set_function_type, walk
from aotc.targets.cpu.expand.fragments import (
    MMA_SHAPES,
    SPARSE_SHAPES,
    WMMA_SHAPES,
    RowMajorFragment,
    Shape,
)

# An attribute of gpu.subgroup_mma_* operations: the former types of operands, then of results.
_FORMER_TYPES = "aotc_former_types"

_MATRIX = re.compile(r'!gpu\.mma_matrix<(\d+)x(\d+)x(\w+), "(\w+)">')
_TOKEN = "!nvgpu.device.async.token"
_PREFIX = "gpu.subgroup_mma_"


class Matrix(Struct, frozen=True):
    """A `!gpu.mma_matrix`: its layout, and its element type in MLIR's syntax (`f16`, `si8`)."""

    layout: RowMajorFragment
    element: str

    @property
    def is_unsigned(self) -> bool:
        return self.element.startswith("ui")

    @property
    def vector(self) -> Any:
        """The type of a lane's elements. Arithmetic is on signless integers."""
        return ir.VectorType.get([self.layout.count], ir.Type.parse(self.element.lstrip("su")))


def read_matrix(type_: Any) -> Matrix | None:
    """The matrix that a type describes; None for any other type."""
    found = _MATRIX.fullmatch(str(type_))
    return (
        None if found is None else Matrix(RowMajorFragment(int(found[1]), int(found[2])), found[3])
    )


def former_matrices(operation: Any) -> list[Matrix]:
    """The former types of an operation's operands and results that were matrices."""
    types = operation.attributes[_FORMER_TYPES]
    matrices = [read_matrix(ir.TypeAttr(type_).value) for type_ in types]
    return [matrix for matrix in matrices if matrix is not None]


def replace_types(root: Any) -> None:
    """Rewrites the types of all values and functions under `root`.

    The IR does not verify until the operations are expanded.
    """
    operations = walk(root)
    for operation in operations:
        if operation.name.startswith(_PREFIX):
            types = [value.type for value in (*operation.operands, *operation.results)]
            operation.attributes[_FORMER_TYPES] = ir.ArrayAttr.get(
                [ir.TypeAttr.get(type_) for type_ in types]
            )
    for operation in operations:
        values = list(operation.results)
        for region in operation.regions:
            for block in region.blocks:
                values += block.arguments
        for value in values:
            new = _replaced(value.type)
            if new != value.type:
                value.set_type(new)
        if operation.name == "func.func":
            type_ = function_type(operation)
            set_function_type(
                operation, map(_replaced, type_.inputs), map(_replaced, type_.results)
            )


def _replaced(type_: Any) -> Any:
    """The type that replaces a type. Most types are not replaced."""
    matrix = read_matrix(type_)
    if matrix is not None:
        return matrix.vector
    return integer(32) if str(type_) == _TOKEN else type_


# Checks whether an operation can run, before anything is rewritten. The second argument is the one
# that `support` passes to every check.


def _check_matrices(operation: Any, _: dict[str, Any]) -> str | None:
    for value in [*operation.operands, *operation.results]:
        matrix = read_matrix(value.type)
        if matrix is not None and not matrix.layout.fits:
            shape = f"{matrix.layout.rows}x{matrix.layout.columns}"
            return f"no tensor core has matrices of {shape}x{matrix.element}"
    return None


def _check_constant(operation: Any, reached: dict[str, Any]) -> str | None:
    value = operation.operands[0].type
    if isinstance(value, ir.IntegerType) and not value.is_signless:
        return f"a constant of {value} has no CPU form"
    return _check_matrices(operation, reached)


def _check_thread_local(operation: Any, reached: dict[str, Any]) -> str | None:
    count = sum(isinstance(operand.type, ir.IndexType) for operand in operation.operands)
    if count != 1:
        return f"one index says which of a lane's elements is meant, not {count}"
    return _check_matrices(operation, reached)


def _check_compute(operation: Any, _: dict[str, Any]) -> str | None:
    matrices = [read_matrix(operand.type) for operand in operation.operands]
    a, b, c = (matrix for matrix in matrices if matrix is not None)
    m, n, k = c.layout.rows, c.layout.columns, a.layout.columns
    shapes = WMMA_SHAPES.get((a.element, c.element), frozenset())
    if a.element != b.element or (m, n, k) not in shapes:
        return f"no tensor core has m{m}n{n}k{k} of {a.element} and {b.element} into {c.element}"
    return None


def _check_mma_sync(operation: Any, _: dict[str, Any]) -> str | None:
    return _check_shape(operation, MMA_SHAPES, "no tensor core has")


def _check_mma_sparse_sync(operation: Any, _: dict[str, Any]) -> str | None:
    return _check_shape(operation, SPARSE_SHAPES, "the CPU has no sparse")


def _check_shape(
    operation: Any, known: dict[tuple[str, str], frozenset[Shape]], what: str
) -> str | None:
    a, b, c = (operand.type.element_type for operand in list(operation.operands)[:3])
    m, n, k = mma_shape(operation)
    if a != b or (m, n, k) not in known.get((str(a), str(c)), frozenset()):
        return f"{what} m{m}n{n}k{k} of {a} and {b} into {c}"
    if isinstance(a, ir.F32Type) and "tf32Enabled" not in operation.attributes:
        return "tensor cores take f32 as tf32 alone: say tf32Enabled"
    return None


def mma_shape(operation: Any) -> tuple[int, int, int]:
    """The (m, n, k) of nvgpu.mma.sync and nvgpu.mma.sp.sync."""
    m, n, k = (int(ir.IntegerAttr(size).value) for size in operation.attributes["mmaShape"])
    return m, n, k


def _check_ldmatrix(operation: Any, _: dict[str, Any]) -> str | None:
    if ir.IntegerAttr(operation.attributes["numTiles"]).value not in (1, 2, 4):
        return "ldmatrix loads 1, 2 or 4 tiles"
    return _check_bytes(operation.operands[0].type.element_type)


def _check_async_copy(operation: Any, _: dict[str, Any]) -> str | None:
    return _check_bytes(operation.operands[0].type.element_type)


def _check_bytes(element: Any) -> str | None:
    """Refuses elements of less than a byte, which are packed on a GPU, but not on the CPU."""
    is_packed = isinstance(element, ir.IntegerType) and element.width < 8
    return f"elements of {element} have no CPU form here" if is_packed else None


# Operation → its check, as in `support`.
MATRIX_CHECKS: dict[str, Callable[[Any, dict[str, Any]], str | None]] = {
    "gpu.subgroup_mma_load_matrix": _check_matrices,
    "gpu.subgroup_mma_store_matrix": _check_matrices,
    "gpu.subgroup_mma_compute": _check_compute,
    "gpu.subgroup_mma_constant_matrix": _check_constant,
    "gpu.subgroup_mma_elementwise": _check_matrices,
    "gpu.subgroup_mma_extract_thread_local": _check_thread_local,
    "gpu.subgroup_mma_insert_thread_local": _check_thread_local,
    "nvgpu.mma.sync": _check_mma_sync,
    "nvgpu.mma.sp.sync": _check_mma_sparse_sync,
    "nvgpu.ldmatrix": _check_ldmatrix,
    "nvgpu.device_async_copy": _check_async_copy,
}
