"""The instructions around the tensor cores of sm_80 and later: mma.sync, ldmatrix and cp.async.

A fragment is the part of an operand of mma.sync that one lane holds: a vector of 32-bit registers
(64-bit for f64). Each register is a vector of consecutive elements along K.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import Number, Value
from aotc.chips import WARP
from aotc.mlir import ir

# The smallest size of a cp.async copy.
LEAST_ASYNC_BYTES = 4
# The part of a row that ldmatrix reads at one lane's address.
LDMATRIX_ROW_BYTES = 16


class Mma(Struct, frozen=True):
    """One mma.sync instruction: its shape, the types of its elements and of its accumulators, and
    `width`, the number of elements in a register. f32 is multiplied as tf32."""

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
        """The number of rows of the result that a lane holds, which are 8 apart. In each, it holds
        two consecutive columns."""
        return self.m // 8

    @property
    def accumulator_type(self) -> str:
        return f"vector<{self.accumulator_rows}x2x{self.accumulator}>"

    def multiply(self, b: Builder, left: Value, right: Value, accumulator: Value) -> Value:
        """accumulator + left x right. All three are fragments."""
        attributes = {"mmaShape": f"[{self.m}, {self.n}, {self.k}]"}
        if self.element == "f32":
            attributes["tf32Enabled"] = "unit"
        operands = [left, right, accumulator]
        return b.op("nvgpu.mma.sync", operands, accumulator.type, **attributes)

    def multiply_tile(
        self, b: Builder, left: Sequence[Value], right: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        """The accumulators of a warp's tile, in row-major order, plus left x right. Consecutive
        rows are traversed in opposite directions (serpentine order), so that each instruction
        shares an operand with the previous one."""
        added = list(sums)
        for row, a in enumerate(left):
            for column in range(len(right))[:: -1 if row % 2 else 1]:
                at = row * len(right) + column
                added[at] = self.multiply(b, a, right[column], added[at])
        return added


def add_accumulators(b: Builder, left: Value, right: Value) -> Value:
    """left + right, of scalars or vectors. The addition is never contracted to an FMA."""
    type_ = left.type
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    is_integer = isinstance(element, ir.IntegerType)
    return b.op("arith.addi" if is_integer else "arith.addf", [left, right], type_)


# --- Fragments ---------------------------------------------------------------------------------


def ldmatrix(b: Builder, source: Buffer, at: Sequence[Number], *, transpose: bool) -> Value:
    """Loads four 8 x 16-byte matrices from shared memory, as a fragment of four registers. `at` is
    the index of the first element of the row that this lane addresses: lanes 0 to 7 address the
    rows of the first matrix, lanes 8 to 15 those of the second, and so on. With `transpose`, each
    matrix of 16-bit elements is transposed."""
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
    """Splits a fragment into two fragments of half as many registers."""
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
    """Starts a cp.async copy of `count` elements of a row to shared memory. Only the first `valid`
    elements are read; the rest is filled with zeros. Returns a token for `commit_group`.

    Copies of 16 bytes bypass the L1 cache.
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
    """Commits the copies that this thread has started since the last group, as a new group."""
    return b.op("nvgpu.device_async_create_group", copies, "!nvgpu.device.async.token")


def wait_group(b: Builder, group: Value, pending: int) -> None:
    """Waits until at most the last `pending` groups of this thread are in flight. `group` is the
    token of any group."""
    b.op("nvgpu.device_async_wait", [group], numGroups=f"{pending} : i32")
