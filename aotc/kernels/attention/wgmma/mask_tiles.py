"""A mask in Hopper's kernel: TMA brings it to a ring, if its rows lie at multiples of 16 bytes."""

from __future__ import annotations

from aotc.kernels.attention.masks import place_of
from aotc.kernels.attention.problem import Mask
from aotc.kernels.attention.recognition import KEY, QUERY
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, convert
from aotc.kernels.matmul.wgmma.tiles import SWIZZLED, Body, make_map, map_type, tile_type

_CHUNK = 16  # bytes: what is swizzled, and what TMA's rows are multiples of
_MOST_DIMENSIONS = 5  # of a TMA's descriptor
_STAGE_ALIGNMENT = 1024  # bytes


def has_tiles(mask: Mask) -> bool:
    """Whether TMA takes it."""
    # A box along two dimensions of queries would be a cube, of which a mask is the diagonal.
    is_tile = mask.places.count(QUERY) <= 1
    return is_tile and mask.alignment % _CHUNK == 0 and len(mask.places) <= _MOST_DIMENSIONS


class MaskTiles:
    """Its tiles of `rows` queries and `keys` keys: slabs of 128 bytes, swizzled, behind each
    other. A mask that is the same for all queries has one row, which is as long as a block."""

    def __init__(self, e: Body, mask: Mask, rows: int, keys: int) -> None:
        self.e, self.mask, self.keys = e, mask, keys
        self.element_bytes = ELEMENT_BYTES[mask.element]
        self.has_rows = QUERY in mask.places
        self.width = SWIZZLED // self.element_bytes if self.has_rows else keys
        self.slabs = -(-keys // self.width)
        self.slab_bytes = (rows if self.has_rows else 1) * self.width * self.element_bytes
        # What is fetched, and what it takes.
        self.bytes = self.slabs * self.slab_bytes
        self.stage_bytes = -(-self.bytes // _STAGE_ALIGNMENT) * _STAGE_ALIGNMENT
        box = tuple({QUERY: rows, KEY: self.width}.get(place, 1) for place in mask.places)
        self.box, self.tile = box, tile_type(box, mask.element)
        self.map_type = map_type(self.tile, SWIZZLED if self.has_rows else 0)

    def make_map(self, name: str) -> str:
        mask = self.mask
        matrix = Matrix(mask.type, mask.element, (None, None), None, mask.alignment)
        return make_map(self.e, name, matrix, self.box, self.map_type)

    def coordinates(self, batch: str, row: str, first: str) -> list[tuple[int, list[str]]]:
        """Of each load: its offset in the tile, and where it is in the mask, innermost first.
        `first`: of the keys."""
        e = self.e
        outer = [place_of(e, place, batch, e.index(row)) for place in self.mask.places[:-1]]
        loads = []
        for slab in range(self.slabs):
            key = e.index(e.do("addi", first, slab * self.width))
            loads.append((slab * self.slab_bytes, [key, *outer[::-1]]))
        return loads

    def begin(self, row: str, lane: str) -> None:
        """`row`: the first one of this thread's warp, in the tile."""
        e = self.e
        in_row = e.do("muli", e.do("andi", lane, 3), 2 * self.element_bytes)
        if not self.has_rows:
            self.own = in_row
            return
        # A row's chunks are swizzled by its number, of 8.
        number = e.do("shrui", lane, 2)
        swizzled = e.do("xori", in_row, e.do("muli", number, _CHUNK))
        place = e.do("muli", e.do("addi", row, number), SWIZZLED)
        self.own = e.do("addi", place, swizzled)

    def read(self, address: str) -> list[str]:
        """Of the tile at an address in shared memory, in the order of scores."""
        e, element = self.e, self.mask.element
        pair = f"vector<2x{element}>"
        own = e.do("addi", address, self.own)
        found = []
        for group in range(0, self.keys, 8):
            slab, place = divmod(group, self.width)
            place *= self.element_bytes
            how = "xori" if self.has_rows else "addi"
            at = e.do("addi", e.do(how, own, place), slab * self.slab_bytes)
            for half in range(2):
                below = half * 8 * SWIZZLED if self.has_rows else 0
                both = e.value(
                    f"llvm.load {e.pointer(e.do('addi', at, below))} "
                    f"{{alignment = {2 * self.element_bytes} : i64}} : !llvm.ptr<3> -> {pair}"
                )
                for side in range(2):
                    value = e.value(f"vector.extract {both}[{side}] : {element} from {pair}")
                    found.append(convert(e, value, element, "f32"))
        return found
