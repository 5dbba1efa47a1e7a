"""The instructions around the tensor cores of sm_80 and later: mma.sync, ldmatrix and cp.async.

A fragment is what a lane holds of an operand of mma.sync: a vector of registers of 32 bits (of
64 bits for f64), each of which is a vector of elements that are neighbours along K.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.chips import WARP
from aotc.mlir import ir
from aotc.numbers import Number, Value

# The least that cp.async copies.
LEAST_ASYNC_BYTES = 4
# What ldmatrix reads of a row, by one lane.
LDMATRIX_ROW_BYTES = 16


class Mma(Struct, frozen=True):
    """A shape of mma.sync, the types of its elements and of its accumulators, and the number of
    elements in a register. f32 is multiplied as tf32."""

    m: int
    n: int
    k: int
    element: str
    accumulator: str
    width: int

    @property
    def a_registers(self) -> int:
        return self.m * self.k // WARP // self.width

    @property
    def b_registers(self) -> int:
        return self.k * self.n // WARP // self.width

    @property
    def a_type(self) -> str:
        return f"vector<{self.a_registers}x{self.width}x{self.element}>"

    @property
    def b_type(self) -> str:
        return f"vector<{self.b_registers}x{self.width}x{self.element}>"

    @property
    def accumulator_rows(self) -> int:
        """A lane's rows of the result, 8 apart. In each, it has two neighbours."""
        return self.m // 8

    @property
    def accumulator_type(self) -> str:
        return f"vector<{self.accumulator_rows}x2x{self.accumulator}>"

    def multiply(self, b: Builder, left: Value, right: Value, accumulator: Value) -> Value:
        """accumulator + left x right, of fragments."""
        attributes = {"mmaShape": f"[{self.m}, {self.n}, {self.k}]"}
        if self.element == "f32":
            attributes["tf32Enabled"] = "unit"
        operands = [left, right, accumulator]
        return b.op("nvgpu.mma.sync", operands, accumulator.type, **attributes)

    def multiply_tile(
        self, b: Builder, left: Sequence[Value], right: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        """The accumulators of a warp's tile, row by row, with left x right added. Neighbouring
        rows are gone through in opposite directions, so that each instruction has an operand in
        common with the one before it."""
        added = list(sums)
        for row, a in enumerate(left):
            for column in range(len(right))[:: -1 if row % 2 else 1]:
                at = row * len(right) + column
                added[at] = self.multiply(b, a, right[column], added[at])
        return added


def add_accumulators(b: Builder, left: Value, right: Value) -> Value:
    """left + right, of numbers or vectors, which is never contracted with a product."""
    type_ = left.type
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    is_integer = isinstance(element, ir.IntegerType)
    return b.op("arith.addi" if is_integer else "arith.addf", [left, right], type_)


# --- Fragments ---------------------------------------------------------------------------------


def ldmatrix(b: Builder, source: Buffer, at: Sequence[Number], *, transpose: bool) -> Value:
    """Four matrices of 8 rows of 16 bytes, in shared memory: a fragment of four registers. `at` is
    where the row begins that this lane addresses: lanes 0 to 7 those of the first matrix, and so
    on. With `transpose`, elements of 16 bits are transposed in each matrix."""
    type_ = f"vector<4x{4 // source.element_bytes}x{source.element}>"
    attributes = {"numTiles": "4 : i32", "transpose": str(transpose).lower()}
    operands = [source.value, *b.values([*source.leading, *at])]
    return b.op("nvgpu.ldmatrix", operands, type_, **attributes)


def fragment(b: Builder, registers: Sequence[Value]) -> Value:
    register = registers[0].type
    type_ = ir.VectorType.get([len(registers), *register.shape], register.element_type)
    made = b.zero(type_)
    for number, value in enumerate(registers):
        made = b.insert(value, made, [number])
    return made


def halves(b: Builder, value: Value) -> list[Value]:
    """The two fragments that a fragment of twice as many registers holds."""
    type_ = ir.VectorType(value.type)
    size = type_.shape[0] // 2
    half = ir.VectorType.get([size, *type_.shape[1:]], type_.element_type)
    return [
        b.op(
            "vector.extract_strided_slice",
            [value],
            half,
            offsets=f"[{first}]",
            sizes=f"[{size}]",
            strides="[1]",
        )
        for first in (0, size)
    ]


# --- Asynchronous copies -----------------------------------------------------------------------


def copy_async(
    b: Builder,
    source: Buffer,
    at: Sequence[Number],
    target: Buffer,
    to: Sequence[Number],
    count: int,
    valid: Number | None = None,
) -> Value:
    """Begins to copy `count` elements of a row to shared memory by cp.async. Only the first `valid`
    of them are read, and zeros are stored for the others. Returns a token for `commit_group`.

    Copies of 16 bytes pass by the L1 cache, which is left to others.
    """
    from_, into = [*source.leading, *at], [*target.leading, *to]
    number = [] if valid is None else [b.value(valid)]
    operands = [target.value, *b.values(into), source.value, *b.values(from_), *number]
    segments = [1, len(into), 1, len(from_), len(number)]
    attributes = {
        "dstElements": f"{count} : index",
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
        **b.read_attributes(),
    }
    if count * source.element_bytes == WIDEST_ACCESS:
        attributes["bypassL1"] = "unit"
    token = "!nvgpu.device.async.token"
    return b.op("nvgpu.device_async_copy", operands, token, **attributes)


def commit_group(b: Builder, copies: Sequence[Value] = ()) -> Value:
    """Makes a group of the copies that this thread has begun since the last one."""
    return b.op("nvgpu.device_async_create_group", copies, "!nvgpu.device.async.token")


def wait_group(b: Builder, group: Value, pending: int) -> None:
    """Waits until at most the last `pending` of this thread's groups are in flight. `group` is any
    of them."""
    b.op("nvgpu.device_async_wait", [group], numGroups=f"{pending} : i32")
