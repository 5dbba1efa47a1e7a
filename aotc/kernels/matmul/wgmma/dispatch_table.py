"""The kernel dispatch table: several `wgmma` kernels for a GEMM of unknown sizes. At run time, the
program launches the one that the cost model expects to be fastest for the actual sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value, compare, minimum
from aotc.kernels.family import SM_90A
from aotc.kernels.matmul import tuned
from aotc.kernels.matmul.family import MatmulFamily, least_clocks
from aotc.kernels.matmul.problem import Arguments, Matrix, Problem
from aotc.kernels.matmul.wgmma import cost
from aotc.kernels.matmul.wgmma.cost import Sizes
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.kernel import operands
from aotc.kernels.matmul.wgmma.variants import Variant
from aotc.request import Chip

# The table has the best variant for square matrices of each of these sizes: common sizes, and sizes
# with rows that do not begin at multiples of 32 bytes.
_SIZES = (4096, 16384, 1536, 1024, 512, 1000, 3000, 5000)


class Variants(Struct, frozen=True):
    """The variants that the program chooses among. `m` and `n` are those of the first one."""

    variants: tuple[Variant, ...]

    @property
    def m(self) -> int:
        return self.variants[0].m

    @property
    def n(self) -> int:
        return self.variants[0].n

    def describe(self, unknown: str) -> str:
        tiles = ", ".join(f"{one.m}x{one.n}" for one in self.variants)
        return f"the program chooses among {tiles} when it knows {unknown}"


class WgmmaTable(MatmulFamily[Problem]):
    """Kernels of `WGMMA`, one of which the program launches. A variant of this family is several
    variants of `WGMMA`."""

    name = WGMMA.name
    mnemonic = WGMMA.mnemonic
    target = SM_90A
    variant_type = Variants

    def table(self, problem: Problem, able: Sequence[Variant]) -> Variants:
        """The fastest of the variants `able`, for squares of common sizes."""
        best = [min(able, key=lambda one: _clocks_at(problem, one, size)) for size in _SIZES]
        return Variants(tuple(dict.fromkeys(best)))

    def can_implement(self, problem: Problem, variant: Variants) -> bool:
        return all(WGMMA.can_implement(problem, one) for one in variant.variants)

    def variants(self, problem: Problem) -> tuple[Variants, ...]:
        able = WGMMA.legal_variants(problem)
        return (self.table(problem, able),) if able else ()

    def shared_bytes(self, problem: Problem, variant: Variants) -> int:
        """The largest dynamic shared memory of the kernels, in bytes."""
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
        """The expected clocks of the fastest variant."""
        clocks = min(_clocks(problem, one, sizes, max(sizes)) for one in variant.variants)
        return max(clocks, least_clocks(problem, sizes, chip)) if at_most else clocks

    def insert(self, b: Builder, problem: Problem, variant: Variants, arguments: Arguments) -> None:
        sizes = _sizes(b, problem, arguments)
        clocks = [cost.clocks(*operands(problem, one), one, sizes) for one in variant.variants]
        launches = [partial(WGMMA.build, b, problem, one, arguments) for one in variant.variants]
        launch_fastest(b, launches, clocks)

    def kernel_name(self, problem: Problem, variant: Variants) -> str:
        """An empty name: each of the kernels has its own."""
        return ""

    def describe_choice(self, variant: Variants) -> str:
        return variant.describe("the sizes")


WGMMA_TABLE = WgmmaTable()


def _clocks_at(problem: Problem, variant: Variant, size: int) -> float:
    """The expected clocks with every unknown size set to `size`."""
    return _clocks(problem, variant, tuned.sizes_at(problem, size), size)


def _clocks(problem: Problem, variant: Variant, sizes: tuned.Sizes, pitch: int) -> float:
    """The expected clocks, with `pitch` as the pitch of matrices of unknown pitch."""
    pitches = (matrix.pitch or pitch for matrix in (problem.a, problem.b))
    given = Sizes(*sizes, *pitches)
    return float(cost.clocks(*operands(problem, variant), variant, given))


def _sizes(b: Builder, problem: Problem, arguments: Arguments) -> Sizes:
    first = 1 if problem.batched else 0
    a_columns = first + (0 if problem.a.transposed else 1)
    return Sizes(
        m=b.dim(arguments.c, first) if problem.m is None else problem.m,
        n=b.dim(arguments.c, first + 1) if problem.n is None else problem.n,
        k=b.dim(arguments.a, a_columns) if problem.k is None else problem.k,
        a_pitch=_pitch(b, problem.a, arguments.a),
        b_pitch=_pitch(b, problem.b, arguments.b),
    )


def _pitch(b: Builder, matrix: Matrix, memref: Value) -> Number:
    return b.strides(memref)[1][-2] if matrix.pitch is None else matrix.pitch


def launch_fastest(
    b: Builder, launches: Sequence[Callable[[], None]], clocks: Sequence[Number]
) -> None:
    """Builds a chain of conditions that executes the launch with the fewest expected `clocks`, the
    first one of several equal ones."""
    launch, *others = launches
    if not others:
        launch()
        return
    fastest = reduce(minimum, clocks[1:])
    with b.where(compare("ult", fastest, clocks[0])) as branch:
        launch_fastest(b, others, clocks[1:])
    with branch.otherwise():
        launch()
