"""Tiles of matrices on their way between memory and shared memory, by TMA; an emitter for kernels.

In shared memory rows of 128 bytes are swizzled, which TMA and the tensor cores agree on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Emitter, Matrix
from aotc.lower.rewrites.tensor_map_types import ROUNDS_TO_TF32

SPACE = "#gpu.address_space<workgroup>"
SHARED = f"memref<?xi8, {SPACE}>"

SWIZZLED = 128  # bytes: the widest row that is swizzled, and a tile's part of K
WGMMA_BYTES = 32  # of K, that one wgmma multiplies
# The same, in elements of 16 bits.
DEPTH, K_OF_WGMMA = SWIZZLED // 2, WGMMA_BYTES // 2
SLAB = 64 * SWIZZLED  # bytes of 64 swizzled rows

_MOST_SHARED = 1 << 18  # bytes of shared memory that a wgmma's descriptor can address
_ALIGNMENT = 16  # bytes: of addresses, and of the distance of rows


# What wgmma calls its operands, by the types of matrices.
WGMMA_TYPES = {
    "f16": "f16",
    "bf16": "bf16",
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
    "i8": "s8",
    "f32": "tf32",
}


def depth_of(element: str) -> int:
    """How many elements of K a tile has: a row of 128 bytes."""
    return SWIZZLED // ELEMENT_BYTES[element]


def is_aligned(matrix: Matrix) -> bool:
    """Whether TMA takes it.

    An `alignment` of 16 bytes is taken for that of every row, and so for that of the distance
    between two, which TMA looks at even if there is only one.
    """
    if matrix.pitch is not None:
        distance = matrix.pitch * ELEMENT_BYTES[matrix.element]
        if distance % _ALIGNMENT != 0 or (distance == 0 and 0 not in matrix.sizes):
            return False
    return matrix.alignment % _ALIGNMENT == 0


class Body(Emitter):
    """An emitter with blocks, and with arithmetic on values and numbers."""

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.open(f"{header} {{")
        yield
        self.close()

    def do(self, operation: str, left: str, right: str | int, type_: str = "i32") -> str:
        if isinstance(right, int):
            right = self.constant(right, type_)
        return self.value(f"arith.{operation} {left}, {right} : {type_}")

    def compare(self, how: str, left: str, right: str | int, type_: str = "i32") -> str:
        return self.do(f"cmpi {how},", left, right, type_)

    def index(self, value: str) -> str:
        return self.value(f"arith.index_castui {value} : i32 to index")

    def i32(self, value: str) -> str:
        return self.value(f"arith.index_castui {value} : index to i32")

    def pointer(self, address: str) -> str:
        """To shared memory."""
        return self.value(f"llvm.inttoptr {address} : i32 to !llvm.ptr<3>")


class Operand(Struct, frozen=True):
    """A or B: its tile in a stage, of `extent` rows or columns of C's tile.

    Where K is contiguous, the tile is `extent` rows of 128 bytes of K. Else it is slabs, each as
    many rows of K of 128 bytes, beside each other in the matrix and behind each other in shared
    memory. `in_one`: one box has all slabs, as the matrix divides into them.

    So many blocks of a cluster have the same tile: they are its `sharers`. Each of them fetches a
    part of it, for all: rows, slabs, or some of each slab's rows.
    """

    matrix: Matrix
    extent: int
    is_deep: bool
    in_one: bool
    batched: bool
    sharers: int = 1

    @staticmethod
    def of(
        matrix: Matrix, extent: int, *, is_deep: bool, batched: bool, sharers: int = 1
    ) -> Operand:
        across = matrix.sizes[1]
        width = depth_of(matrix.element)
        in_one = (
            not is_deep
            and extent % (width * sharers) == 0
            and across is not None
            and across % width == 0
        )
        return Operand(matrix, extent, is_deep, in_one, batched, sharers)

    @property
    def depth(self) -> int:
        return depth_of(self.matrix.element)

    @property
    def slabs(self) -> int:
        return -(-self.extent // self.depth)

    @property
    def bytes(self) -> int:
        return self.extent * SWIZZLED if self.is_deep else self.slabs * self.slab_bytes

    @property
    def slab_bytes(self) -> int:
        return self.depth * SWIZZLED

    @property
    def box(self) -> tuple[int, ...]:
        """Of one load, outermost first."""
        outer = (1,) if self.batched else ()
        if self.is_deep:
            return (*outer, self.extent // self.sharers, self.depth)
        if self.in_one:
            return (*outer, self.slabs // self.sharers, self.depth, self.depth)
        return (*outer, self._slab_rows, self.depth)

    @property
    def _has_whole_slabs(self) -> bool:
        """Whether a part of the tile is slabs."""
        return self.slabs % self.sharers == 0

    @property
    def _slab_rows(self) -> int:
        """Of one load, where each is of one slab."""
        return self.depth if self._has_whole_slabs else self.depth // self.sharers

    @property
    def tile(self) -> str:
        """The type of what one load brings."""
        return tile_type(self.box, self.matrix.element)

    @property
    def map_type(self) -> str:
        return map_type(self.tile)

    def make_map(self, e: Body, name: str) -> str:
        return make_map(
            *(e, name, self.matrix, self.box, self.map_type),
            in_slabs=self.in_one,
            rounds_to_tf32=self.matrix.element == "f32",
        )

    @property
    def layout(self) -> int:
        """What a wgmma's descriptor says of the tile, less its address (PTX manual, «Matrix
        Descriptor»): swizzled by 128 bytes; 1024 bytes from 8 rows to the next 8; how far apart
        slabs are, which is of no meaning where K is contiguous."""
        slab = 16 if self.is_deep else SLAB
        return 1 << 62 | (8 * SWIZZLED >> 4) << 32 | (slab >> 4) << 16

    def descriptor(self, e: Body, address: str) -> str:
        """Of the tile at an address in shared memory, an i64."""
        # In a cluster, addresses have the block's number above.
        place = e.do("andi", address, _MOST_SHARED - 1)
        units = e.value(f"arith.extui {e.do('shrui', place, 4)} : i32 to i64")
        return e.do("ori", units, self.layout, "i64")

    @property
    def step(self) -> int:
        """From a wgmma's descriptor to the next one's along K."""
        rows = WGMMA_BYTES // ELEMENT_BYTES[self.matrix.element]
        return (WGMMA_BYTES if self.is_deep else rows * SWIZZLED) >> 4

    def coordinates(
        self, e: Body, at: str, k: str, batch: str | None, part: str
    ) -> Iterator[tuple[str, list[str]]]:
        """Of each load of a part: its offset in the tile in bytes (an i32), and its coordinates,
        innermost first. `part`: its number, for a tile that is shared."""
        outer = [] if batch is None else [e.index(batch)]
        if self.is_deep:
            rows = self.extent // self.sharers
            first = self._times(e, part, rows)
            offset = e.do("muli", first, SWIZZLED)
            yield offset, [e.index(k), e.index(e.do("addi", at, first)), *outer]
        elif self.in_one:
            first = self._times(e, part, self.slabs // self.sharers)
            slab = e.do("addi", e.do("divui", at, self.depth), first)
            offset = e.do("muli", first, self.slab_bytes)
            yield offset, [e.constant(0), e.index(k), e.index(slab), *outer]
        elif self._has_whole_slabs:
            count = self.slabs // self.sharers
            first = self._times(e, part, count)
            for number in range(count):
                slab = e.do("addi", first, number)
                place = e.do("addi", at, e.do("muli", slab, self.depth))
                yield e.do("muli", slab, self.slab_bytes), [e.index(place), e.index(k), *outer]
        else:
            row = self._times(e, part, self._slab_rows)
            depth = e.index(e.do("addi", k, row))
            offset = e.do("muli", row, SWIZZLED)
            for number in range(self.slabs):
                place = e.index(e.do("addi", at, self.depth * number))
                yield e.do("addi", offset, number * self.slab_bytes), [place, depth, *outer]

    def _times(self, e: Body, part: str, size: int) -> str:
        return e.constant(0, "i32") if self.sharers == 1 else e.do("muli", part, size)


class Tile(Struct, frozen=True):
    """Where a tile of C is, or a part of one: i32 values."""

    row: str
    column: str
    batch: str | None


def tile_type(box: tuple[int, ...], element: str) -> str:
    return f"memref<{'x'.join(map(str, box))}x{element}, {SPACE}>"


def map_type(tile: str, swizzled: int = SWIZZLED) -> str:
    """The type of a descriptor for such tiles; `swizzled`: bytes of rows that are, or 0. (Where
    rows begin at no multiples of 32 bytes, an L2 cache that fetched 256 bytes at once would fetch
    what nobody asks for.)"""
    swizzle = f"swizzle_{swizzled}b" if swizzled else "none"
    return (
        f"!nvgpu.tensormap.descriptor<tensor = {tile}, swizzle = {swizzle}, "
        "l2promo = l2promo_128b, oob = zero, interleave = none>"
    )


def make_map(
    e: Body,
    name: str,
    matrix: Matrix,
    box: tuple[int, ...],
    type_: str,
    *,
    in_slabs: bool = False,
    rounds_to_tf32: bool = False,
) -> str:
    """A descriptor of the matrix; `in_slabs`, of its slabs of 128 bytes of columns;
    `rounds_to_tf32`: what is loaded by it is rounded. Of the host's part.

    TMA knows no size and no distance of 0. A matrix without elements is said to have some, which
    nobody reads.
    """
    base, offset, sizes, strides = _extract(e, name, matrix, rank=len(box) - in_slabs)
    is_empty = e.compare("eq", _product(e, sizes), 0, "index")
    zero, unit = e.constant(0), e.constant(_ALIGNMENT // ELEMENT_BYTES[matrix.element])
    least = e.value(f"arith.select {is_empty}, {unit}, {zero} : index")
    sizes = [e.do("maxui", size, 1, "index") for size in sizes]
    strides = [e.do("maxui", stride, least, "index") for stride in strides[:-1]]
    if in_slabs:
        width = depth_of(matrix.element)
        slabs = e.do("divui", sizes[-1], width, "index")
        sizes = [*sizes[:-2], slabs, sizes[-2], str(width)]
        strides = [*strides[:-1], str(width), strides[-1]]
    shape = "x".join("?" if size.startswith("%") else size for size in sizes)
    distances = ", ".join("?" if stride.startswith("%") else stride for stride in strides)
    view = f"memref<{shape}x{matrix.element}, strided<[{distances}, 1], offset: ?>>"
    cast = e.value(
        f"memref.reinterpret_cast {base} to offset: [{offset}], sizes: [{', '.join(sizes)}], "
        f"strides: [{', '.join(strides)}, 1] : memref<{matrix.element}> to {view}"
    )
    ranked = f"memref<*x{matrix.element}>"
    any_ = e.value(f"memref.cast {cast} : {view} to {ranked}")
    box_sizes = ", ".join([e.constant(size) for size in box])
    # Else the tensor cores would cut off what tf32 has no bits for.
    rounds = f" {{{ROUNDS_TO_TF32}}}" if rounds_to_tf32 else ""
    return e.value(
        f"nvgpu.tma.create.descriptor {any_} box[{box_sizes}]{rounds} : {ranked} -> {type_}"
    )


def _extract(
    e: Body, name: str, matrix: Matrix, rank: int
) -> tuple[str, str, list[str], list[str]]:
    """Base, offset, sizes and strides of a memref."""
    names = [e.name() for _ in range(2 + 2 * rank)]
    types = f"memref<{matrix.element}>" + ", index" * (1 + 2 * rank)
    e.line(
        f"{', '.join(names)} = memref.extract_strided_metadata {name} : {matrix.type} -> {types}"
    )
    return names[0], names[1], names[2 : 2 + rank], names[2 + rank :]


def _product(e: Body, sizes: list[str]) -> str:
    product = sizes[0]
    for size in sizes[1:]:
        product = e.do("muli", product, size, "index")
    return product
