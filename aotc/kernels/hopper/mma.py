"""wgmma: asynchronous matrix multiply-accumulate of a warpgroup, 64 rows of C at a time.

Accumulators are structs of registers of the warpgroup's threads. They hold their results after
`await_accumulators`. Before it, they may only be passed to further MMAs.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, Value
from aotc.kernels.hopper.smem import SWIZZLE_BYTES, assembly, struct_type, unpack
from aotc.mlir import ir

MMA_M = 64
MMA_K_BYTES = 32
# The 32-bit registers per thread of an A operand in registers.
OPERAND_REGISTERS = 4
# PTX's names of wgmma's operand types, by element types.
WGMMA_TYPES = {
    "f16": "f16",
    "bf16": "bf16",
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
    "i8": "s8",
    "f32": "tf32",
}
_MOST_SHARED = 1 << 18  # bytes of shared memory that a descriptor can address


# --- Operands in shared memory -----------------------------------------------------------------


def swizzled_layout(leading_bytes: int) -> int:
    """A matrix descriptor without its address (PTX manual, «Matrix Descriptor»): 128-byte swizzle,
    a stride of 1024 bytes between groups of 8 rows, and `leading_bytes` between slabs."""
    return 1 << 62 | (8 * SWIZZLE_BYTES >> 4) << 32 | (leading_bytes >> 4) << 16


def matrix_descriptor(b: Builder, address: Number, layout: int) -> Scalar:
    """The matrix descriptor, an i64, of a tile at an address in shared memory."""
    # In a cluster, the upper bits of an address have the block's rank.
    place = address & (_MOST_SHARED - 1)
    return Scalar(zero_extend(b, place >> 4) | layout)


def zero_extend(b: Builder, value: Number) -> Scalar:
    """An i32 as an i64."""
    return Scalar(b.op("arith.extui", [b.value(value, "i32")], "i64"))


# --- MMAs --------------------------------------------------------------------------------------


def fence(b: Builder) -> None:
    """Orders the preceding accesses to registers before the MMAs that follow."""
    b.op("nvvm.wgmma.fence.aligned")


def commit_group(b: Builder) -> None:
    b.op("nvvm.wgmma.commit.group.sync.aligned")


def wait_group(b: Builder, pending: int) -> None:
    """Waits until at most the last `pending` groups are in flight."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), pending)
    b.op("nvvm.wgmma.wait.group.sync.aligned", group=number)


class MmaAtom:
    """One wgmma instruction: 64 x `n` elements of C, and `k` elements of K (32 bytes).

    `elements`: the element types of A and B. `accumulator`: f32 or i32. An operand that is not
    K-major is MN-major.
    """

    def __init__(
        self,
        b: Builder,
        n: int,
        elements: tuple[str, str],
        accumulator: str,
        k: int,
        *,
        is_a_k_major: bool,
        is_b_k_major: bool,
    ) -> None:
        self.b, self.n, self.k, self.accumulator = b, n, k, accumulator
        # The number of accumulators per thread.
        self.count = n // 2
        self.type = struct_type(accumulator, self.count)
        self.types = WGMMA_TYPES[elements[0]], WGMMA_TYPES[elements[1]]
        self.accumulator_type = "s32" if accumulator == "i32" else "f32"
        # The constraint of a result of inline PTX.
        self.register = "=r" if accumulator == "i32" else "=f"
        self._attributes = {
            "shape": f"#nvvm.shape<m = {MMA_M}, n = {n}, k = {k}>",
            "typeA": f"#nvvm.wgmma_type<{self.types[0]}>",
            "typeB": f"#nvvm.wgmma_type<{self.types[1]}>",
            "typeD": f"#nvvm.wgmma_type<{self.accumulator_type}>",
            "scaleA": "#nvvm.wgmma_scale_in<one>",
            "scaleB": "#nvvm.wgmma_scale_in<one>",
            "layoutA": f"#nvvm.mma_layout<{'row' if is_a_k_major else 'col'}>",
            "layoutB": f"#nvvm.mma_layout<{'col' if is_b_k_major else 'row'}>",
        }

    def multiply(self, accumulators: Value, a: Value, b_: Value, *, accumulates: bool) -> Value:
        """Starts accumulators + A · B, or, without `accumulates`, A · B. `a` and `b_` are matrix
        descriptors."""
        scale = "one" if accumulates else "zero"
        return self.b.op(
            "nvvm.wgmma.mma_async",
            [accumulators, a, b_],
            self.type,
            scaleD=f"#nvvm.wgmma_scale_out<{scale}>",
            **self._attributes,
        )

    def multiply_registers(
        self, accumulators: Value, a: Sequence[Value], b_: Value, *, accumulates: bool
    ) -> Value:
        """As `multiply`, with A in registers. It is inline PTX, as the nvvm dialect has no such
        operation."""
        count = self.count
        values = unpack(self.b, accumulators, self.accumulator, range(count))
        results = ", ".join(f"${i}" for i in range(count))
        first = 2 * count  # the results and the previous accumulators come first
        registers = ", ".join(f"${first + i}" for i in range(OPERAND_REGISTERS))
        # Integer wgmma has no operands that negate A or B.
        signs = "" if self.accumulator == "i32" else ", 1, 1"
        text = (
            f"{{ .reg .pred p; setp.ne.b32 p, {int(accumulates)}, 0; "
            f"wgmma.mma_async.sync.aligned.m{MMA_M}n{self.n}k{self.k}."
            f"{self.accumulator_type}.{self.types[0]}.{self.types[1]} "
            f"{{{results}}}, {{{registers}}}, ${first + OPERAND_REGISTERS}, p{signs}; }}"
        )
        tied = [str(i) for i in range(count)]
        constraints = [*[self.register] * count, *tied, *["r"] * OPERAND_REGISTERS, "l"]
        return assembly(self.b, text, ",".join(constraints), [*values, *a, b_], self.type)

    def await_accumulators(self, accumulators: Sequence[Value]) -> list[Value]:
        """Waits for all MMAs, and returns the accumulators with their results."""
        first, *others = accumulators
        done = self._through_assembly(first, "wgmma.wait_group.sync.aligned 0;")
        return [done, *(self._through_assembly(other, "") for other in others)]

    def _through_assembly(self, accumulators: Value, text: str) -> Value:
        """Passes the accumulators through inline PTX, so that no use of the result moves in front
        of it. (The operation of the nvvm dialect has no accumulators as operands or results, so it
        does not order their uses.)"""
        count = self.count
        values = unpack(self.b, accumulators, self.accumulator, range(count))
        constraints = ",".join([self.register] * count + [str(i) for i in range(count)])
        return assembly(self.b, text, constraints, values, self.type)
