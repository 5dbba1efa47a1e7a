"""Several kernels of `hopper` for a product whose sizes are not known, of which the program takes
the one that is expected to be fastest when it knows them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.kernels.indices import Index
from aotc.kernels.matmul.problem import Finish, Matrix, Problem
from aotc.kernels.matmul.wgmma import cost
from aotc.kernels.matmul.wgmma import family as hopper
from aotc.kernels.matmul.wgmma.cost import Sizes
from aotc.kernels.matmul.wgmma.variants import Variant
from aotc.kernels.writer import Writer

NAME = hopper.NAME
# Squares of these sizes get what is best for them: those in the middle of what is common, and two
# with rows at no multiples of 32 bytes.
_SIZES = (4096, 16384, 1536, 1024, 512, 1000, 3000, 5000)


class Menu(Struct, frozen=True):
    """What there is to choose among. Its tiles are said to be the first one's."""

    variants: tuple[Variant, ...]

    @property
    def m(self) -> int:
        return self.variants[0].m

    @property
    def n(self) -> int:
        return self.variants[0].n


def menu(problem: Problem, able: Sequence[Variant]) -> Menu:
    """Of the variants `able`."""
    best = [min(able, key=lambda one: _clocks_at(problem, one, size)) for size in _SIZES]
    return Menu(tuple(dict.fromkeys(best)))


def fastest_clocks(problem: Problem, menu: Menu, size: int) -> float:
    """What is expected of the kernel that is taken where every size that is not known is `size`."""
    return min(_clocks_at(problem, one, size) for one in menu.variants)


def _clocks_at(problem: Problem, variant: Variant, size: int) -> float:
    """Where every size that is not known is `size`."""
    m, n, k = (known or size for known in (problem.m, problem.n, problem.k))
    pitches = (matrix.pitch or size for matrix in (problem.a, problem.b))
    operands = hopper.operands(problem, variant)
    return float(cost.clocks(Writer(), *operands, variant, Sizes(m, n, k, *pitches)))


def shared_bytes(problem: Problem, menu: Menu) -> int:
    """Dynamic shared memory of a block, of the kernel that has most of it."""
    return max(hopper.shared_bytes(problem, one) for one in menu.variants)


def function(problem: Problem, menu: Menu, name: str, finish: Finish | None = None) -> str:
    """`func.func @name(%a, %b, %c)`, which launches one of the kernels."""
    w = _Chooser(problem)
    sizes = w.sizes()
    clocks = [cost.clocks(w, *hopper.operands(problem, one), one, sizes) for one in menu.variants]
    w.launch_fastest(menu.variants, clocks, finish)
    return f"func.func @{name}({problem.signature}) {{\n{w.text()}\n  return\n}}"


class _Chooser(Writer):
    """The conditions around the kernels. Names are its own: those of kernels stand within."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem

    def name(self) -> str:
        return f"{super().name()}_menu"

    def sizes(self) -> Sizes:
        problem = self.problem
        first = 1 if problem.batched else 0
        a_columns = first + (0 if problem.a.transposed else 1)
        return Sizes(
            m=self._size(problem.m, "%c", problem.c, first),
            n=self._size(problem.n, "%c", problem.c, first + 1),
            k=self._size(problem.k, "%a", problem.a, a_columns),
            a_pitch=self._pitch("%a", problem.a),
            b_pitch=self._pitch("%b", problem.b),
        )

    def _size(self, known: int | None, name: str, matrix: Matrix, axis: int) -> Index:
        return self.dim(name, matrix.type, axis) if known is None else known

    def _pitch(self, name: str, matrix: Matrix) -> Index:
        if matrix.pitch is not None:
            return matrix.pitch
        rank = 3 if self.problem.batched else 2
        results = self.name()
        types = ", ".join([f"memref<{matrix.element}>", *["index"] * (1 + 2 * rank)])
        self.line(
            f"{results}:{2 + 2 * rank} = memref.extract_strided_metadata {name} "
            f": {matrix.type} -> {types}"
        )
        return f"{results}#{2 * rank}"

    def launch_fastest(
        self, variants: Sequence[Variant], clocks: Sequence[Index], finish: Finish | None
    ) -> None:
        """The first one that no later one is faster than."""
        first, *others = variants
        if not others:
            self._kernel(first, finish)
            return
        fastest = clocks[1]
        for other in clocks[2:]:
            fastest = self.minimum(fastest, other)
        self.open(f"scf.if {self.less(fastest, clocks[0])} {{")
        self.launch_fastest(others, clocks[1:], finish)
        self.otherwise()
        self._kernel(first, finish)
        self.close()

    def _kernel(self, variant: Variant, finish: Finish | None) -> None:
        _, *body, _, _ = hopper.function(self.problem, variant, "kernel", finish).splitlines()
        for line in body:
            self.line(line)
