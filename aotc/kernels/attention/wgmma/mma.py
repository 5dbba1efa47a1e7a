"""The two products of attention, with Q, K and V in shared memory and sums in registers (wgmma).

Q, K and V lie there as tiles: slabs of 64 columns, rows of 128 bytes, swizzled, behind each other.
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import Matrix
from aotc.kernels.matmul.wgmma.tiles import (
    DEPTH,
    K_OF_WGMMA,
    SWIZZLED,
    Body,
    make_map,
    map_type,
    tile_type,
)

ROWS = 64  # of Q, of a warpgroup


class Operand:
    """Q, K or V: tiles of some rows, all columns of a head. In shared memory these are slabs of 64
    columns, rows of 128 bytes, behind each other."""

    def __init__(self, matrix: Matrix, rows: int, columns: int, heads: int) -> None:
        self.matrix, self.rows, self.columns, self.heads = matrix, rows, columns, heads
        self.slabs = -(-columns // DEPTH)
        self.slab_bytes = rows * SWIZZLED
        self.bytes = self.slabs * self.slab_bytes
        self.box = (1, rows, DEPTH)
        self.tile = tile_type(self.box, matrix.element)
        self.map_type = map_type(self.tile)

    def make_map(self, e: Body, name: str) -> str:
        return make_map(e, name, self.matrix, self.box, self.map_type)

    @property
    def layout(self) -> int:
        """What a wgmma's descriptor says of the tile, less its address: see
        `contractions.hopper.tiles`."""
        return 1 << 62 | (8 * SWIZZLED >> 4) << 32 | (self.slab_bytes >> 4) << 16

    def along_columns(self, step: int) -> int:
        """From the tile's address to that of 16 columns, in units of 16 bytes."""
        slab, part = divmod(step * K_OF_WGMMA, DEPTH)
        return slab * self.slab_bytes + 2 * part >> 4

    def along_rows(self, step: int) -> int:
        """Likewise of 16 rows."""
        return step * K_OF_WGMMA * SWIZZLED >> 4


class Products:
    """Writes them for a warpgroup: `q` is its rows and those of others, `k` and `v` are what stages
    of a ring hold."""

    def __init__(self, e: Body, q: Operand, k: Operand, v: Operand) -> None:
        self.e, self.q, self.k, self.v = e, q, k, v
        self.element = q.matrix.element
        self.depth, self.keys = q.columns, k.rows

    def begin(self, q_address: str, ring_address: str) -> None:
        """`q_address`: of the warpgroup's rows."""
        self.q_descriptor = self._descriptor(self.q, q_address)
        self.ring_descriptor = self._descriptor(self.k, ring_address)

    def _descriptor(self, operand: Operand, address: str) -> str:
        e = self.e
        units = e.value(f"arith.extui {e.do('shrui', address, 4)} : i32 to i64")
        return e.do("ori", units, operand.layout, "i64")

    def multiply_q(self, stage: str) -> str:
        """Q · Kᵀ with the block of K in a stage: begun."""
        e, keys = self.e, self.keys
        type_ = _struct(["f32"] * (keys // 2))
        scores = e.value(f"llvm.mlir.undef : {type_}")
        k = e.do("addi", self.ring_descriptor, self._stage_units(stage), "i64")
        for step in range(self.depth // K_OF_WGMMA):
            a = e.do("addi", self.q_descriptor, self.q.along_columns(step), "i64")
            b = e.do("addi", k, self.k.along_columns(step), "i64")
            scale = "one" if step else "zero"
            scores = e.value(
                f"nvvm.wgmma.mma_async {a}, {b}, {scores}, "
                f"#nvvm.shape<m = 64, n = {keys}, k = {K_OF_WGMMA}>, "
                f"D [<f32>, #nvvm.wgmma_scale_out<{scale}>], "
                f"A [<{self.element}>, #nvvm.wgmma_scale_in<one>, <row>], "
                f"B [<{self.element}>, #nvvm.wgmma_scale_in<one>, <col>] : {type_} -> {type_}"
            )
        e.line("nvvm.wgmma.commit.group.sync.aligned")
        return scores

    def multiply_v(self, stage: str, words: list[str], sums: list[str]) -> str:
        """sums + terms · V with the block of V in a stage: begun. nvvm's operation has no A in
        registers."""
        e, count = self.e, self.depth // 2
        type_ = _struct(["f32"] * count)
        v = e.do("addi", self.ring_descriptor, self._stage_units(stage), "i64")
        outputs = ", ".join(f"${i}" for i in range(count))
        a_names = ", ".join(f"${count + i}" for i in range(4))
        assembly = (
            "{.reg .pred p; setp.ne.b32 p, 1, 0; "
            f"wgmma.mma_async.sync.aligned.m64n{self.depth}k{K_OF_WGMMA}"
            f".f32.{self.element}.{self.element} "
            f"{{{outputs}}}, {{{a_names}}}, ${count + 4}, p, 1, 1, 1;}}"
        )
        constraints = ",".join(["=f"] * count + ["r"] * 4 + ["l"] + [str(i) for i in range(count)])
        types = ", ".join(["i32"] * 4 + ["i64"] + ["f32"] * count)
        packed = ""
        for step in range(self.keys // K_OF_WGMMA):
            b = e.do("addi", v, self.v.along_rows(step), "i64")
            values = [*words[4 * step : 4 * step + 4], b, *sums]
            packed = e.value(
                f'llvm.inline_asm has_side_effects asm_dialect = att "{assembly}", '
                f'"{constraints}" {", ".join(values)} : ({types}) -> {type_}'
            )
            sums = self._extracted(packed, count)
        e.line("nvvm.wgmma.commit.group.sync.aligned")
        return packed

    def _stage_units(self, stage: str) -> str:
        wide = self.e.value(f"arith.extui {stage} : i32 to i64")
        return self.e.do("muli", wide, self.k.bytes >> 4, "i64")

    def _extracted(self, packed: str, count: int) -> list[str]:
        type_ = _struct(["f32"] * count)
        return [self.e.value(f"llvm.extractvalue {packed}[{i}] : {type_}") for i in range(count)]

    def packed(self, values: list[str]) -> str:
        type_ = _struct(["f32"] * len(values))
        packed = self.e.value(f"llvm.mlir.undef : {type_}")
        for i, value in enumerate(values):
            packed = self.e.value(f"llvm.insertvalue {value}, {packed}[{i}] : {type_}")
        return packed

    def unpacked(self, packed: str, pending: int, read: list[str]) -> list[str]:
        """Sums whose products are done, all but the `pending` groups that began last. Nothing that
        uses them moves in front of this, and what the products read (`read`) is kept until then:
        of nvvm's operation a compiler does not know that."""
        e = self.e
        count = (self.depth if read else self.keys) // 2
        type_ = _struct(["f32"] * count)
        values = self._extracted(packed, count)
        constraints = ",".join(["=f"] * count + [str(i) for i in range(count)] + ["r"] * len(read))
        types = ", ".join(["f32"] * count + ["i32"] * len(read))
        done = e.value(
            f"llvm.inline_asm has_side_effects asm_dialect = att "
            f'"wgmma.wait_group.sync.aligned {pending};", "{constraints}" '
            f"{', '.join([*values, *read])} : ({types}) -> {type_}"
        )
        return self._extracted(done, count)


def _struct(types: list[str]) -> str:
    return f"!llvm.struct<({', '.join(types)})>"
