"""A block of a kernel whose tiles TMA brings: its launch, what its threads know, and their roles.

The kernels of `family`, of `contractions.blackwell` and of `attention.hopper` have all this in
common. In shared memory are stages (`ring`), from its beginning, at multiples of 1024 bytes;
behind them what a kernel needs besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from aotc.chips import KIB, LIMITS
from aotc.kernels.matmul.problem import Matrix
from aotc.kernels.matmul.wgmma.pipeline import Barriers
from aotc.kernels.matmul.wgmma.tiles import SHARED, Body

WARPGROUP = 128  # threads
# Of a block at most, less what aligns the stages behind the barriers.
SHARED_BYTES = LIMITS[90].block_shared - KIB


class Block:
    """`begin` is first in a kernel, and names values of it.

    `lane`, `warp`, `warpgroup`: of this thread; `warp` is known to be the same for all lanes.
    `shared` and `address`: the dynamic shared memory, and where it begins. All but `shared` are
    i32.
    """

    def __init__(self, e: Body) -> None:
        self.e = e

    # --- The host's part -----------------------------------------------------------------

    def size(self, name: str, matrix: Matrix, dimension: int) -> str:
        """Of an argument, an index."""
        which = self.e.constant(dimension)
        return self.e.value(f"memref.dim {name}, {which} : {matrix.type}")

    def launch(
        self,
        blocks: str,
        threads: int,
        shared_bytes: int,
        body: Callable[[], None],
        clusters: str = "",
    ) -> None:
        """`body` writes the kernel. `clusters`: see `Cluster.launched`."""
        e = self.e
        one, count = e.constant(1), e.constant(threads)
        bytes_ = e.constant(shared_bytes, "i32")
        e.line(f"gpu.launch {clusters}blocks(%bx, %by, %bz)")
        e.line(f"    in (%gx = {blocks}, %gy = {one}, %gz = {one})")
        e.line(f"    threads(%tx, %ty, %tz) in (%sx = {count}, %sy = {one}, %sz = {one})")
        with e.block(f"    dynamic_shared_memory_size {bytes_}"):
            body()
            e.line("gpu.terminator")

    # --- The kernel ----------------------------------------------------------------------

    def begin(self) -> None:
        e = self.e
        self.thread = e.i32("%tx")
        self.lane = e.do("andi", self.thread, 31)
        # The same for all lanes, which a shuffle tells the compiler.
        everyone, first, last = (e.constant(number, "i32") for number in (-1, 0, 31))
        warp = e.do("shrui", self.thread, 5)
        self.warp = e.value(f"nvvm.shfl.sync idx {everyone}, {warp}, {first}, {last} : i32 -> i32")
        self.warpgroup = e.do("shrui", self.warp, 2)
        self.shared = e.value(f"gpu.dynamic_shared_memory : {SHARED}")
        address = e.value(
            f"memref.extract_aligned_pointer_as_index {self.shared} : {SHARED} -> index"
        )
        self.address = e.i32(address)

    def known(self, size: int | None, host: str) -> str:
        """A size as an i32: the number, if it is one, or the host's value."""
        return self.e.i32(host) if size is None else self.e.constant(size, "i32")

    @contextmanager
    def first_thread(self) -> Iterator[None]:
        """What one thread does in front of all others: it begins barriers."""
        e = self.e
        with e.block(f"scf.if {e.compare('eq', self.thread, 0)}"):
            yield
            e.line("nvvm.fence.mbarrier.init")

    def prefetch(self, maps: Sequence[tuple[str, str]]) -> None:
        """Descriptors, each with its type."""
        e = self.e
        is_first = e.compare("eq", self.thread, 0)
        for map_, type_ in maps:
            e.line(f"nvgpu.tma.prefetch.descriptor {map_}, predicate = {is_first} : {type_}")

    @contextmanager
    def one_thread_of(self, warp: int) -> Iterator[None]:
        e = self.e
        is_warp = e.compare("eq", self.warp, warp)
        elected = e.value("nvvm.elect.sync -> i1")
        with e.block(f"scf.if {e.do('andi', is_warp, elected, 'i1')}"):
            yield

    def divide(
        self,
        fetch: Callable[[], None],
        compute: Callable[[], None],
        registers: tuple[int, int] | None,
    ) -> None:
        """One thread of the first warpgroup fetches, the other warpgroups compute. `registers`: of
        a thread of either, where they do not keep what all begin with."""
        e = self.e
        e.open(f"scf.if {e.compare('eq', self.warpgroup, 0)} {{")
        if registers is not None:
            e.line(f"nvvm.setmaxregister decrease {registers[0]}")
        with self.one_thread_of(0):
            fetch()
        e.otherwise()
        if registers is not None:
            e.line(f"nvvm.setmaxregister increase {registers[1]}")
        compute()
        e.close()

    def load(
        self,
        map_: tuple[str, str],
        coordinates: Sequence[str],
        barriers: Barriers,
        stage: str,
        to: tuple[str, str],
        mask: str = "",
    ) -> None:
        """One TMA: from a descriptor (with its type) at coordinates, innermost first, to an offset
        in shared memory, a tile of a type. The stage's barrier counts its bytes. `mask`: of the
        blocks of the cluster that get it, too."""
        e = self.e
        offset, type_ = to
        tile = e.value(f"memref.view {self.shared}[{e.index(offset)}][] : {SHARED} to {type_}")
        multicast = f" multicast_mask = {mask}" if mask else ""
        e.line(
            f"nvgpu.tma.async.load {map_[0]}[{', '.join(coordinates)}], {barriers.at(stage)} "
            f"to {tile}{multicast} : {map_[1]}, {barriers.type} -> {type_}"
        )


def in_groups(e: Body, number: str, sizes: tuple[str, str], group: int) -> tuple[str, str]:
    """The place of a tile, of so many down and across, that are counted down `group` rows of tiles,
    then across; then in the next rows: tiles that are made at once share rows and columns."""
    down, across = sizes
    of_group = e.do("muli", across, group)
    first = e.do("muli", e.do("divui", number, of_group), group)
    place = e.do("remui", number, of_group)
    height = e.do("minui", e.do("subi", down, first), group)
    row = e.do("addi", first, e.do("remui", place, height))
    return row, e.do("divui", place, height)
