"""Several kernels of `hopper` for a product whose sizes are not known, of which the program takes
the one that is expected to be fastest when it knows them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.kernels.family import SM_90A
from aotc.kernels.indices import Index
from aotc.kernels.matmul import tuned
from aotc.kernels.matmul.family import MatmulFamily, least_clocks
from aotc.kernels.matmul.problem import Finish, Matrix, Problem
from aotc.kernels.matmul.wgmma import cost
from aotc.kernels.matmul.wgmma.cost import Sizes
from aotc.kernels.matmul.wgmma.family import WGMMA, operands
from aotc.kernels.matmul.wgmma.variants import Variant
from aotc.kernels.writer import Writer
from aotc.request import Chip

# Squares of these sizes get what is best for them: those in the middle of what is common, and two
# with rows at no multiples of 32 bytes.
_SIZES = (4096, 16384, 1536, 1024, 512, 1000, 3000, 5000)


class Variants(Struct, frozen=True):
    """What there is to choose among. Its tiles are said to be the first one's."""

    variants: tuple[Variant, ...]

    @property
    def m(self) -> int:
        return self.variants[0].m

    @property
    def n(self) -> int:
        return self.variants[0].n


class WgmmaTable(MatmulFamily):
    """Kernels of `WGMMA`, of which the program launches one: a variant is several of its."""

    name = WGMMA.name
    target = SM_90A
    variant_type = Variants

    def table(self, problem: Problem, able: Sequence[Variant]) -> Variants:
        """The fastest of the variants `able`, for squares of common sizes."""
        best = [min(able, key=lambda one: _clocks_at(problem, one, size)) for size in _SIZES]
        return Variants(tuple(dict.fromkeys(best)))

    def can_take(self, problem: Problem, variant: Variants) -> bool:
        return all(WGMMA.can_take(problem, one) for one in variant.variants)

    def variants(self, problem: Problem) -> tuple[Variants, ...]:
        able = WGMMA.able(problem)
        return (self.table(problem, able),) if able else ()

    def shared_bytes(self, problem: Problem, variant: Variants) -> int:
        """That of the kernel which has most of it."""
        return max(WGMMA.shared_bytes(problem, one) for one in variant.variants)

    def expected_clocks(
        self,
        problem: Problem,
        variant: Variants,
        sizes: tuned.Sizes,
        chip: Chip,
        *,
        at_most: bool = False,
    ) -> float:
        """Those of the fastest."""
        clocks = min(_clocks(problem, one, sizes, max(sizes)) for one in variant.variants)
        return max(clocks, least_clocks(problem, sizes, chip)) if at_most else clocks

    def function(
        self, problem: Problem, variant: Variants, name: str, finish: Finish | None = None
    ) -> str:
        w = _Chooser(problem)
        sizes = w.sizes()
        clocks = [cost.clocks(w, *operands(problem, one), one, sizes) for one in variant.variants]
        w.launch_fastest(variant.variants, clocks, finish)
        return f"func.func @{name}({problem.signature}) {{\n{w.text()}\n  return\n}}"

    def describe_choice(self, variant: Variants) -> str:
        tiles = ", ".join(f"{one.m}x{one.n}" for one in variant.variants)
        return f"the program chooses among {tiles} when it knows the sizes"


WGMMA_TABLE = WgmmaTable()


def _clocks_at(problem: Problem, variant: Variant, size: int) -> float:
    """Where every size that is not known is `size`."""
    return _clocks(problem, variant, tuned.sizes_at(problem, size), size)


def _clocks(problem: Problem, variant: Variant, sizes: tuned.Sizes, pitch: int) -> float:
    """`pitch` is that of matrices of which it is not known."""
    pitches = (matrix.pitch or pitch for matrix in (problem.a, problem.b))
    given = Sizes(*sizes, *pitches)
    return float(cost.clocks(Writer(), *operands(problem, variant), variant, given))


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
        _, *body, _, _ = WGMMA.function(self.problem, variant, "kernel", finish).splitlines()
        for line in body:
            self.line(line)
