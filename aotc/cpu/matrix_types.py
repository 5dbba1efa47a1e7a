"""Types that only a GPU has (`!gpu.mma_matrix`, copy tokens) → types that a host has.

A `!gpu.mma_matrix` becomes the vector of the elements that one lane holds (`fragments.Spread`),
a token of an asynchronous copy an integer that nobody reads. The operations that `matrix`
expands get their former types as an attribute: the vectors do not tell shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aotc.cpu.fragments import MMA_SHAPES, Spread
from aotc.mlir import ir
from aotc.ops import find, integer, walk

# On gpu.subgroup_mma_* operations: the former types of the operands, then of the results.
_FORMER_TYPES = "aotc_former_types"

_MATRIX = re.compile(r'!gpu\.mma_matrix<(\d+)x(\d+)x(\w+), "(\w+)">')
_TOKEN = "!nvgpu.device.async.token"
_PREFIX = "gpu.subgroup_mma_"


@dataclass(frozen=True)
class Matrix:
    """A `!gpu.mma_matrix`: the layout, and the element as MLIR writes it (`f16`, `si8`, ...)."""

    spread: Spread
    element: str

    @property
    def is_unsigned(self) -> bool:
        return self.element.startswith("ui")

    @property
    def vector(self) -> Any:
        """What a lane holds. Arithmetic is on integers without a sign."""
        return ir.VectorType.get([self.spread.count], ir.Type.parse(self.element.lstrip("su")))


def read_matrix(type_: Any) -> Matrix | None:
    """The matrix that a type says, or None for another type."""
    found = _MATRIX.fullmatch(str(type_))
    return None if found is None else Matrix(Spread(int(found[1]), int(found[2])), found[3])


def former_matrices(operation: Any) -> list[Matrix]:
    """The matrices among the operands and results of an operation, as they were in the source."""
    types = operation.attributes[_FORMER_TYPES]
    matrices = [read_matrix(ir.TypeAttr(type_).value) for type_ in types]
    return [matrix for matrix in matrices if matrix is not None]


def replace_types(root: Any) -> None:
    """Rewrites the types of all values and functions under `root`.

    What is between this and the expansion of the operations does not verify.
    """
    known: dict[Any, Any] = {}
    for operation in walk(root):
        if operation.name.startswith(_PREFIX):
            values = [*operation.operands, *operation.results]
            # The operands that are made by operations before this one are new already.
            types = [known.get(value, value.type) for value in values]
            operation.attributes[_FORMER_TYPES] = ir.ArrayAttr.get(
                [ir.TypeAttr.get(type_) for type_ in types]
            )
        values = list(operation.results)
        for region in operation.regions:
            for block in region.blocks:
                values += block.arguments
        for value in values:
            replaced = _replace(value.type)
            if replaced is not None:
                known[value] = value.type
                value.set_type(replaced)
        if operation.name == "func.func":
            type_ = operation.attributes["function_type"].value
            inputs, results = (
                [_replace(part) or part for part in parts] for parts in (type_.inputs, type_.results)
            )
            operation.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get(inputs, results)
            )


def _replace(type_: Any) -> Any | None:
    """What takes the place of a type, or None for one that stays."""
    matrix = read_matrix(type_)
    if matrix is not None:
        return matrix.vector
    return integer(32) if str(type_) == _TOKEN else None


# What keeps an operation from running, asked before anything is rewritten. The second argument
# is what `support` hands to every check.


def _check_matrices(operation: Any, _: dict[str, Any]) -> str | None:
    for value in [*operation.operands, *operation.results]:
        matrix = read_matrix(value.type)
        if matrix is not None and not matrix.spread.fits:
            shape = f"{matrix.spread.rows}x{matrix.spread.columns}"
            return f"no tensor core has matrices of {shape}x{matrix.element}"
    return None


def _check_constant(operation: Any, reached: dict[str, Any]) -> str | None:
    value = operation.operands[0].type
    if isinstance(value, ir.IntegerType) and not value.is_signless:
        return f"a constant of {value} has no CPU form"
    return _check_matrices(operation, reached)


def _check_thread_local(operation: Any, reached: dict[str, Any]) -> str | None:
    index_count = sum(isinstance(operand.type, ir.IndexType) for operand in operation.operands)
    if index_count != 1:
        return f"{index_count} indices of what a lane holds have no CPU form; use one"
    return _check_matrices(operation, reached)


def _check_compute(operation: Any, reached: dict[str, Any]) -> str | None:
    found = _check_matrices(operation, reached)
    if found is not None:
        return found
    a, b, c = (read_matrix(operand.type) for operand in operation.operands)
    assert a is not None and b is not None and c is not None
    shape = (c.spread.rows, c.spread.columns, a.spread.columns)
    if (a.element.lstrip("su"), c.element) not in MMA_SHAPES or a.element[-2:] != b.element[-2:]:
        return f"no tensor core multiplies {a.element} by {b.element} into {c.element}"
    return None


def _check_mma_sync(operation: Any, _: dict[str, Any]) -> str | None:
    a, _b, c = (operand.type.element_type for operand in operation.operands)
    shape = mma_shape(operation)
    if shape not in MMA_SHAPES.get((str(a), str(c)), ()):
        m, n, k = shape
        return f"no tensor core has m{m}n{n}k{k} of {a} into {c}"
    if isinstance(a, ir.F32Type) and "tf32Enabled" not in operation.attributes:
        return "tensor cores take f32 as tf32 alone; say tf32Enabled"
    return None


def mma_shape(operation: Any) -> tuple[int, int, int]:
    """The m, n and k of nvgpu.mma.sync."""
    m, n, k = (ir.IntegerAttr(size).value for size in operation.attributes["mmaShape"])
    return m, n, k


def _check_ldmatrix(operation: Any, _: dict[str, Any]) -> str | None:
    if ir.IntegerAttr(operation.attributes["numTiles"]).value not in (1, 2, 4):
        return "ldmatrix loads 1, 2 or 4 tiles"
    for type_ in (operation.operands[0].type, operation.results[0].type):
        if _bits(type_.element_type) not in (8, 16, 32):
            return f"elements of {type_.element_type} have no CPU form here"
    return None


def _check_async_copy(operation: Any, _: dict[str, Any]) -> str | None:
    element = operation.operands[0].type.element_type
    return None if _bits(element) % 8 == 0 else f"copies of {element} have no CPU form"


def _bits(type_: Any) -> int:
    """The bits of an integer or float, or of a vector of them."""
    if isinstance(type_, ir.VectorType):
        return type_.shape[0] * _bits(type_.element_type) if type_.rank == 1 else 0
    if isinstance(type_, (ir.IntegerType, ir.FloatType)):
        return int(type_.width)
    return 0
