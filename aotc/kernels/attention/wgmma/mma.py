"""The two matmuls of attention by wgmma, with Q, K and V in shared memory and accumulators in
registers.

The tiles of Q, K and V consist of consecutive slabs of 64 columns, with swizzled rows of 128 bytes.
The columns of the last slab past the head's last one are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Builder
from aotc.builder.numbers import Float, Number, Scalar, Value
from aotc.kernels.attention.problem import Attention
from aotc.kernels.hopper.mma import (
    OPERAND_REGISTERS,
    MmaAtom,
    commit_group,
    swizzled_layout,
    zero_extend,
)
from aotc.kernels.hopper.pipeline import TmaPipeline
from aotc.kernels.hopper.smem import (
    SWIZZLE_BYTES,
    assembly,
    struct_type,
    undefined,
    unpack,
)
from aotc.kernels.hopper.tma import TensorMap, create_tensor_map
from aotc.kernels.matmul.problem import Matrix

ROWS = 64  # the rows of Q of a warpgroup
K_OF_MMA = 16
N_OF_MMA = 8  # wgmma's columns are a multiple of this
_COLUMNS = SWIZZLE_BYTES // 2  # the columns of a slab


class Operand:
    """Q, K or V: tiles of some rows, and all columns of a head. In shared memory, a tile consists
    of consecutive slabs of 64 columns, with rows of 128 bytes. TMA fills columns past the head's
    last one with zeros, as adjacent heads are a separate dimension of the tensor map."""

    def __init__(self, matrix: Matrix, rows: int, columns: int, heads: int) -> None:
        self.matrix, self.rows, self.columns, self.heads = matrix, rows, columns, heads
        self.slabs = -(-columns // _COLUMNS)
        self.slab_bytes = rows * SWIZZLE_BYTES
        self.bytes = self.slabs * self.slab_bytes

    def create_tensor_map(self, b: Builder, memref: Value) -> TensorMap:
        head = (1,) if self.heads else ()
        box = (1, self.rows, *head, _COLUMNS)
        return create_tensor_map(b, memref, self.matrix, box, heads=self.heads)

    def descriptor(self, b: Builder, address: Scalar) -> Scalar:
        """The matrix descriptor of a tile at an address in shared memory."""
        units = zero_extend(b, address >> 4)
        return Scalar(units | swizzled_layout(self.slab_bytes))

    def column_step(self, step: int) -> int:
        """The difference between the descriptors of the tile and of its group `step` of 16
        columns."""
        slab, part = divmod(step * K_OF_MMA, _COLUMNS)
        return slab * self.slab_bytes + 2 * part >> 4

    def row_step(self, step: int) -> int:
        """The difference between the descriptors of the tile and of its group `step` of 16 rows."""
        return step * K_OF_MMA * SWIZZLE_BYTES >> 4

    def load(
        self,
        b: Builder,
        map_: TensorMap,
        shared: Value,
        offset: Number,
        place: tuple[Number, Number],
        pipeline: TmaPipeline,
        stage: Number,
    ) -> None:
        """Copies a tile to an offset in shared memory. `place`: its row, and its index in the
        batch, which includes heads."""
        row, batch = place
        outer = [row, batch]
        if self.heads:
            outer = [batch % self.heads, row, batch // self.heads]
        for slab in range(self.slabs):
            coordinates = [b.index(one) for one in (slab * _COLUMNS, *outer)]
            to = offset + slab * self.slab_bytes
            map_.load(b, coordinates, shared, to, pipeline.full, stage)


def operands_of(problem: Attention, rows: int, keys: int) -> tuple[Operand, Operand, Operand]:
    """Q, K and V, with tiles of `rows` rows of Q, and `keys` keys."""
    head_dim, heads = problem.head_dim or 0, problem.heads
    return (
        Operand(problem.q, rows, head_dim, heads[0]),
        Operand(problem.k, keys, head_dim, heads[1]),
        Operand(problem.v, keys, head_dim, heads[2]),
    )


class TiledMma:
    """The matmuls of a warpgroup. K and V are in the stages of a ring."""

    def __init__(
        self,
        b: Builder,
        operands: tuple[Operand, Operand, Operand],
        q_address: Scalar,
        ring_address: Scalar,
    ) -> None:
        """`q_address`: the address of the warpgroup's rows of Q."""
        self.b = b
        self.q, self.k, self.v = operands
        self.element, self.head_dim, self.keys = self.q.matrix.element, self.q.columns, self.k.rows
        self.qk = MmaAtom(
            *(b, self.keys, (self.element, self.element), "f32", K_OF_MMA),
            is_a_k_major=True,
            is_b_k_major=True,
        )
        self.q_descriptor = self.q.descriptor(b, q_address)
        self.ring_descriptor = self.k.descriptor(b, ring_address)

    def multiply_qk(self, stage: Number) -> Value:
        """Starts S = Q · Kᵀ with the tile of K in a stage."""
        b = self.b
        scores = undefined(b, self.qk.type)
        k = self._stage_descriptor(stage)
        for step in range(-(-self.head_dim // K_OF_MMA)):
            left = self.q_descriptor + self.q.column_step(step)
            right = k + self.k.column_step(step)
            scores = self.qk.multiply(scores, left, right, accumulates=step > 0)
        commit_group(b)
        return scores

    def multiply_pv(self, stage: Number, p: Sequence[Scalar], o: Sequence[Float]) -> Value:
        """Starts O + P · V with the tile of V in a stage. `p`: the words of `Softmax.pack`. (It is
        inline PTX, as the nvvm dialect has no wgmma with A in registers.)"""
        b, count = self.b, self.head_dim // 2
        v = self._stage_descriptor(stage)
        results = ", ".join(f"${i}" for i in range(count))
        registers = ", ".join(f"${count + i}" for i in range(OPERAND_REGISTERS))
        text = (
            "{.reg .pred p; setp.ne.b32 p, 1, 0; "
            f"wgmma.mma_async.sync.aligned.m{ROWS}n{self.head_dim}k{K_OF_MMA}"
            f".f32.{self.element}.{self.element} "
            f"{{{results}}}, {{{registers}}}, ${count + OPERAND_REGISTERS}, p, 1, 1, 1;}}"
        )
        tied = [str(i) for i in range(count)]
        constraints = ",".join([*["=f"] * count, *["r"] * OPERAND_REGISTERS, "l", *tied])
        type_ = struct_type("f32", count)
        for step in range(self.keys // K_OF_MMA):
            words = p[OPERAND_REGISTERS * step :][:OPERAND_REGISTERS]
            right = v + self.v.row_step(step)
            packed = assembly(b, text, constraints, [*words, right, *o], type_)
            o = unpack(b, packed, "f32", range(count))
        commit_group(b)
        return packed

    def wait(self, packed: Value, pending: int, read: Sequence[Scalar] = ()) -> list[Float]:
        """Waits for all but the last `pending` groups of MMAs, and returns the accumulators. They
        pass through inline PTX, so that no use of them moves in front of it, and the registers that
        the MMAs read (`read`) are kept until then. (The nvvm operation does not express that.)"""
        b, count = self.b, (self.head_dim if read else self.keys) // 2
        values = unpack(b, packed, "f32", range(count))
        tied = [str(i) for i in range(count)]
        constraints = ",".join(["=f"] * count + tied + ["r"] * len(read))
        text = f"wgmma.wait_group.sync.aligned {pending};"
        type_ = struct_type("f32", count)
        done = assembly(b, text, constraints, [*values, *read], type_)
        return unpack(b, done, "f32", range(count))

    def _stage_descriptor(self, stage: Number) -> Scalar:
        return self.ring_descriptor + zero_extend(self.b, stage) * (self.k.bytes >> 4)
