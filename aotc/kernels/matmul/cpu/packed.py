"""A matmul for the CPU device whose B is a constant, which the runtime packs once: `cpu.blocked`,
which reads it as it is then, see `aotc_constant_get_packed`."""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from aotc import ops
from aotc.builder import Buffer, Builder
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import CpuBlocked, Step, Tile
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.mlir import ir
from aotc.module_names import PACKED_COPY
from aotc.numbers import Number, Value
from aotc.ops import symbol_of
from aotc.rewrites.constant_copies import declare_copy

# Of more rows, each element of B is used so often that it is all the same where it is.
_MOST_ROWS = 512
# The matrix may be a constant of other dimensions.
_RESHAPES = tuple(
    f"memref.{word}" for word in ("expand_shape", "collapse_shape", "cast", "reinterpret_cast")
)
# A smaller B is in the caches.
_LEAST_BYTES = 16 << 10
# Of all packed copies of a module: memory that it had no need of before.
_MOST_BYTES = 4 << 30


def packed_problem(problem: Problem) -> Problem | None:
    """The problem with a packed B; None if nothing is gained."""
    k, n = problem.b.sizes
    element = problem.b.element
    if problem.batched or problem.b.transposed or element != computed_in(problem):
        return None
    if k is None or n is None or k * n * ELEMENT_BYTES[element] < _LEAST_BYTES:
        return None
    if problem.m is not None and problem.m > _MOST_ROWS:
        return None
    width = VECTOR_BYTES // ELEMENT_BYTES[element]
    type_ = f"memref<{-(-n // width)}x{k + 1}x{width}x{element}>"
    return replace(problem, b=replace(problem.b, type=type_))


def packed_constant(b: Builder, value: Value, type_: str) -> Value | None:
    """The packed copy of a constant matrix, at the insertion point; None for another value."""
    identity = ir.AffineMap.get_identity(value.type.rank)
    get = ops.defining(value)
    while get is not None and get.name in _RESHAPES:
        get = ops.defining(get.operands[0])
    if get is None or get.name != "memref.get_global" or value.type.affine_map != identity:
        return None
    if math.prod(value.type.shape) != math.prod(get.results[0].type.shape):
        return None
    module = next(one for one in ops.ancestors(get) if one.name == "builtin.module")
    variables = {
        symbol_of(op.operation): op.operation
        for op in ops.body_of_module(module).operations
        if op.operation.name == "memref.global"
    }
    constant = variables[ops.global_of(get)]
    if not all(one in constant.attributes for one in ("constant", "initial_value")):
        return None
    packed = variables.get(f"{PACKED_COPY}{symbol_of(constant)}")
    if packed is None:
        others = [op for name, op in variables.items() if name.startswith(PACKED_COPY)]
        types = [ir.TypeAttr(op.attributes["type"]).value for op in others]
        if sum(map(_bytes_of, [*types, b.type(type_)])) > _MOST_BYTES:
            return None
        packed = declare_copy(constant, PACKED_COPY, b.type(type_))
    elif ir.TypeAttr(packed.attributes["type"]).value != b.type(type_):
        return None
    attributes = {"name": ir.FlatSymbolRefAttr.get(symbol_of(packed))}
    return ops.create("memref.get_global", [], [b.type(type_)], attributes).result


def _bytes_of(type_: Any) -> int:
    memref = ir.MemRefType(type_)
    return int(math.prod(memref.shape)) * ELEMENT_BYTES[str(memref.element_type)]


class _Kernel(blocked.Kernel):
    """Its columns are whole vectors, however many B has."""

    reads_b = True
    columns_apart = 0

    def prepare(self, tile: Tile, rows: Number) -> None:
        super().prepare(tile, rows)
        self.source_b = Buffer(self.arguments.b)

    def multiply_step(self, tile: Tile, step: Step) -> None:
        self.multiply(tile, step, (0, tile.columns), is_packed_b=False)

    def vector_in_place(self, tile: Tile, step: Step, column: Number, k: Number) -> Value:
        group = self.signed("divsi", tile.column + column, self.width)
        return self.load(self.source_b, [group, step.start + k, 0], self.width)


class CpuPacked(CpuBlocked):
    """See the module's docstring. The type of B in the problem is that of the packed copy."""

    name = "blocks of a packed constant"
    mnemonic = "cpu_packed"
    kernel_type = _Kernel


CPU_PACKED: CpuBlocked = CpuPacked()
