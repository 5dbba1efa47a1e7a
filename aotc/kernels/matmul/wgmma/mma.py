"""How a warpgroup of `hopper` adds the products of a tile's stages: by wgmma, in registers."""

from __future__ import annotations

from msgspec import Struct

from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.kernels.matmul.wgmma.fragments import REGISTERS, Fragments
from aotc.kernels.matmul.wgmma.pipeline import Ring
from aotc.kernels.matmul.wgmma.tiles import (
    SLAB,
    SWIZZLED,
    WGMMA_BYTES,
    WGMMA_TYPES,
    Body,
    Operand,
)

_STEPS = range(SWIZZLED // WGMMA_BYTES)  # of a stage


class Sizes(Struct, frozen=True):
    """Of what a warpgroup makes: 64 rows for each block, and columns, of which `parts` follow each
    other."""

    blocks: int
    n: int
    parts: int


class Products:
    """`operands`: the left one, from registers where K is not contiguous and elements have no 16
    bits, and the right one.

    `begin` is of what does not change from tile to tile; `add` and `finish` are of each tile.
    """

    def __init__(
        self, e: Body, operands: tuple[Operand, Operand], sizes: Sizes, ring: Ring, sum_: str
    ) -> None:
        self.e, self.sizes, self.ring, self.sum = e, sizes, ring, sum_
        self.left, self.right = operands
        element = self.left.matrix.element
        self.reads_fragments = not self.left.is_deep and ELEMENT_BYTES[element] != 2
        # Of one wgmma.
        self.n, self.k = sizes.n // sizes.parts, WGMMA_BYTES // ELEMENT_BYTES[element]
        self.sums = _struct(sum_, self.n // 2)

    def begin(self, address: str, part: str, lane: str, first_row: str) -> None:
        """`address`: of the first stage. `part`: of the tile's rows, the warpgroup's; `first_row`
        its warp's."""
        e = self.e
        if self.reads_fragments:
            self.fragments = Fragments(e, self.left.matrix.element, lane, first_row, address)
            self.fragments.prepare(self.sizes.blocks)
        else:
            at = e.do("muli", part, self.sizes.blocks * SLAB)
            self.left_descriptor = self.left.descriptor(e, e.do("addi", address, at))
        self.right_descriptor = self.right.descriptor(e, e.do("addi", address, self.left.bytes))

    def add(self, count: str, stages: str) -> tuple[list[str], str]:
        """The sums of so many stages, from a count's on, while the last products are still being
        added; and the stage of those."""
        e, ring = self.e, self.ring
        # The first stage's products are not added to anything: there are no zeros to write.
        nothing = self._undefined()
        first_stage = ring.stage(count)
        ring.await_full(count)
        if self.reads_fragments:
            self._read_fragments(first_stage)
        sums = self._multiply(first_stage, nothing, is_first=True)
        one, done = e.constant(1, "i32"), e.name()
        names = [e.name() for _ in sums]
        arguments = [f"{name} = {value}" for name, value in zip(names, sums, strict=True)]
        types = ", ".join(["i32", *[self.sums] * len(sums)])
        with e.block(
            f"{done}:{1 + len(sums)} = scf.for %k = {one} to {stages} step {one} "
            f"iter_args(%before = {first_stage}, {', '.join(arguments)}) -> ({types}) : i32"
        ):
            at = e.do("addi", count, "%k")
            stage = ring.stage(at)
            ring.await_full(at)
            if self.reads_fragments:
                # Registers that are multiplied stay as they are until that is done.
                self._read_fragments(stage)
                e.line("nvvm.wgmma.wait.group.sync.aligned 0")
                ring.release("%before")
                self._move_fragments()
                sums = self._multiply(stage, names, is_first=False)
            else:
                sums = self._multiply(stage, names, is_first=False)
                # All but the newest products are done.
                e.line("nvvm.wgmma.wait.group.sync.aligned 1")
                ring.release("%before")
            e.line(f"scf.yield {', '.join([stage, *sums])} : {types}")
        return [f"{done}#{1 + number}" for number in range(len(sums))], f"{done}#0"

    def finish(self, sums: list[str], last_stage: str) -> list[str]:
        """The sums with all products in them, of `add`'s results."""
        sums = self._await(sums)
        self.ring.release(last_stage)
        return sums

    def _undefined(self) -> list[str]:
        return [self.e.value(f"llvm.mlir.undef : {self.sums}") for _ in range(self.sizes.blocks)]

    # --- A stage -------------------------------------------------------------------------

    def _multiply(self, stage: str, sums: list[str], *, is_first: bool, part: int = 0) -> list[str]:
        """`part`: of the tile's columns."""
        e = self.e
        wide = e.value(f"arith.extui {stage} : i32 to i64")
        offset = e.do("muli", wide, self.ring.stage_bytes >> 4, "i64")
        right = e.do("addi", self.right_descriptor, offset, "i64")
        left = ""
        if not self.reads_fragments:
            left = e.do("addi", self.left_descriptor, offset, "i64")
        sums = list(sums)
        e.line("nvvm.wgmma.fence.aligned")
        for step in _STEPS:
            # Only where K is contiguous do columns lie at the same distance.
            more = step * self.right.step + (part * self.n * SWIZZLED >> 4)
            right_at = e.do("addi", right, more, "i64")
            for block in range(len(sums)):
                adds = not (is_first and step == 0)
                if self.reads_fragments:
                    a = self.read[step, block]
                    sums[block] = self._wgmma_of_registers(sums[block], a, right_at, adds=adds)
                    continue
                left_at = e.do("addi", left, step * self.left.step + (block * SLAB >> 4), "i64")
                sums[block] = self._wgmma(sums[block], left_at, right_at, adds=adds)
        e.line("nvvm.wgmma.commit.group.sync.aligned")
        return sums

    def _wgmma(self, sums: str, left: str, right: str, *, adds: bool) -> str:
        left_type, right_type = self._types()
        scale = "one" if adds else "zero"
        left_layout = "row" if self.left.is_deep else "col"
        right_layout = "col" if self.right.is_deep else "row"
        return self.e.value(
            f"nvvm.wgmma.mma_async {left}, {right}, {sums}, "
            f"#nvvm.shape<m = 64, n = {self.n}, k = {self.k}>, "
            f"D [<{self._sum_type()}>, #nvvm.wgmma_scale_out<{scale}>], "
            f"A [<{left_type}>, #nvvm.wgmma_scale_in<one>, <{left_layout}>], "
            f"B [<{right_type}>, #nvvm.wgmma_scale_in<one>, <{right_layout}>] "
            f": {self.sums} -> {self.sums}"
        )

    def _types(self) -> tuple[str, str]:
        return WGMMA_TYPES[self.left.matrix.element], WGMMA_TYPES[self.right.matrix.element]

    def _sum_type(self) -> str:
        return "s32" if self.sum == "i32" else "f32"

    def _await(self, sums: list[str]) -> list[str]:
        """The sums with all products in them."""
        first, *others = sums
        done = self._through_assembly(first, "wgmma.wait_group.sync.aligned 0;")
        return [done, *(self._through_assembly(other, "") for other in others)]

    def _through_assembly(self, sums: str, assembly: str) -> str:
        """Nothing that uses the result moves in front of this. (Of nvvm's operation, which takes
        and gives no sums, a compiler does not know that.)"""
        e, count = self.e, self.n // 2
        values = [e.value(f"llvm.extractvalue {sums}[{i}] : {self.sums}") for i in range(count)]
        register = self._register()
        constraints = ",".join([register] * count + [str(i) for i in range(count)])
        types = ", ".join([self.sum] * count)
        return e.value(
            f'llvm.inline_asm has_side_effects asm_dialect = att "{assembly}", "{constraints}" '
            f"{', '.join(values)} : ({types}) -> {self.sums}"
        )

    def _register(self) -> str:
        """A result of assembly."""
        return "=r" if self.sum == "i32" else "=f"

    # --- A left operand in registers -----------------------------------------------------

    def _read_fragments(self, stage: str) -> None:
        """Those of a stage: by step along K, and by block of rows."""
        offset = self.e.do("muli", stage, self.ring.stage_bytes)
        self.read = {
            (step, block): self.fragments.read(offset, block, step)
            for step in _STEPS
            for block in range(self.sizes.blocks)
        }

    def _move_fragments(self) -> None:
        """Into registers that are written here alone."""
        e = self.e
        registers = [register for of_one in self.read.values() for register in of_one]
        count = len(registers)
        types = ", ".join(["i32"] * count)
        moves = " ".join(f"mov.b32 ${i}, ${count + i};" for i in range(count))
        # Each is written before all have been read.
        constraints = ",".join(["=&r"] * count + ["r"] * count)
        struct = _struct("i32", count)
        moved = e.value(
            f'llvm.inline_asm has_side_effects asm_dialect = att "{moves}", "{constraints}" '
            f"{', '.join(registers)} : ({types}) -> {struct}"
        )
        values = [e.value(f"llvm.extractvalue {moved}[{i}] : {struct}") for i in range(count)]
        for number, key in enumerate(self.read):
            self.read[key] = values[REGISTERS * number :][:REGISTERS]

    def _wgmma_of_registers(self, sums: str, left: list[str], right: str, *, adds: bool) -> str:
        """nvvm has this operation for descriptors alone."""
        e, count = self.e, self.n // 2
        values = [e.value(f"llvm.extractvalue {sums}[{i}] : {self.sums}") for i in range(count)]
        left_type, right_type = self._types()
        results = ", ".join(f"${i}" for i in range(count))
        first = 2 * count  # behind the results, and what they were
        registers = ", ".join(f"${first + i}" for i in range(REGISTERS))
        # Integers have no signs to change.
        signs = "" if self.sum == "i32" else ", 1, 1"
        assembly = (
            f"{{ .reg .pred p; setp.ne.b32 p, {int(adds)}, 0; "
            f"wgmma.mma_async.sync.aligned.m64n{self.n}k{self.k}."
            f"{self._sum_type()}.{left_type}.{right_type} "
            f"{{{results}}}, {{{registers}}}, ${first + REGISTERS}, p{signs}; }}"
        )
        kept = [str(i) for i in range(count)]
        constraints = ",".join([*[self._register()] * count, *kept, *["r"] * REGISTERS, "l"])
        types = ", ".join([self.sum] * count + ["i32"] * REGISTERS + ["i64"])
        return e.value(
            f'llvm.inline_asm has_side_effects asm_dialect = att "{assembly}", "{constraints}" '
            f"{', '.join([*values, *left, right])} : ({types}) -> {self.sums}"
        )


class PromotedProducts(Products):
    """Of each stage by itself, whose sums threads add to those of the stages before."""

    def add(self, count: str, stages: str) -> tuple[list[str], str]:
        """All products are added, and all stages released."""
        e, ring, sizes = self.e, self.ring, self.sizes
        zero, one, nothing = e.constant("0.0", "f32"), e.constant(1, "i32"), e.constant(0, "i32")
        each = sizes.n // 2
        all_ = each * sizes.blocks
        names, done = [e.name() for _ in range(all_)], e.name()
        arguments = [f"{name} = {zero}" for name in names]
        types = ", ".join(["f32"] * all_)
        with e.block(
            f"{done}:{all_} = scf.for %k = {nothing} to {stages} step {one} "
            f"iter_args({', '.join(arguments)}) -> ({types}) : i32"
        ):
            at = e.do("addi", count, "%k")
            stage = ring.stage(at)
            ring.await_full(at)
            if self.reads_fragments:
                self._read_fragments(stage)
            totals = names
            for part in range(sizes.parts):
                newest = self._multiply(stage, self._undefined(), is_first=True, part=part)
                newest = self._await(newest)
                if part == sizes.parts - 1:
                    ring.release(stage)
                totals = self._promoted(newest, totals, part)
            e.line(f"scf.yield {', '.join(totals)} : {types}")
        struct = _struct(self.sum, each)
        sums = []
        for block in range(sizes.blocks):
            of_block = e.value(f"llvm.mlir.undef : {struct}")
            for number in range(each):
                value = f"{done}#{block * each + number}"
                of_block = e.value(f"llvm.insertvalue {value}, {of_block}[{number}] : {struct}")
            sums.append(of_block)
        return sums, ""

    def finish(self, sums: list[str], last_stage: str) -> list[str]:
        return sums

    def _promoted(self, newest: list[str], totals: list[str], part: int) -> list[str]:
        """The totals with the newest sums, of a part of columns."""
        e, each = self.e, self.sizes.n // 2
        of_part = each // self.sizes.parts
        added = list(totals)
        for block, sums in enumerate(newest):
            for number in range(of_part):
                at = block * each + part * of_part + number
                one = e.value(f"llvm.extractvalue {sums}[{number}] : {self.sums}")
                added[at] = e.value(f"arith.addf {totals[at]}, {one} : f32")
        return added


def _struct(type_: str, count: int) -> str:
    return f"!llvm.struct<({', '.join([type_] * count)})>"
