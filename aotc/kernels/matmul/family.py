"""The base of the families of matmul kernels: their interface, and the cost model of tiles."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, TypeVar

from aotc.builder import WIDEST_ACCESS, Builder, function_text
from aotc.chips import gpu_of
from aotc.kernels.family import KernelFamily
from aotc.kernels.matmul.epilogue import Epilogue
from aotc.kernels.matmul.peaks import peak_of
from aotc.kernels.matmul.problem import Arguments, EpilogueBuilder, Problem
from aotc.kernels.matmul.tuned import Sizes
from aotc.numbers import Value
from aotc.request import Chip

P = TypeVar("P", bound=Problem)


class FewTiles(NamedTuple):
    """A variant for problems of unknown sizes whose C has few tiles: at most `most_tiles` of them,
    and from a K extent of `least_k` on."""

    variant: Any
    most_tiles: int
    least_k: int


def least_clocks(problem: Problem, sizes: Sizes, chip: Chip) -> float:
    """How many clocks each multiprocessor of the chip takes for the multiply-adds at its peak."""
    m, n, k = sizes
    multiply_adds = m * n * k / gpu_of(chip.capability).multiprocessors
    return multiply_adds / peak_of(problem, chip).multiply_adds


def named_tile(
    m: int, n: int, k: int, stages: int, *, copy_bytes: int = WIDEST_ACCESS, **counts: int
) -> str:
    """`128x256x64_s4`, and each of `counts` that is not 1, as in `_splitk2`: in kernels' names. A
    count of 0 is found by the program, and not named. Copies of fewer than 16 bytes take operands
    of less alignment."""
    words = [f"{word}{count or ''}" for word, count in counts.items() if count != 1]
    if copy_bytes != WIDEST_ACCESS:
        words.append(f"align{copy_bytes}")
    return "_".join((f"{m}x{n}x{k}", f"s{stages}", *words))


class MatmulFamily(KernelFamily[P, Arguments]):
    """See `KernelFamily`. `variant_type` is the class of the family's variants, and
    `problem_type` that of the problems that it has kernels for.

    `has_cost_model` says whether `expected_clocks` can be asked. `is_bandwidth_bound` kernels are
    as fast as memory in every variant, and `is_arithmetic_bound` ones as the multiprocessors'
    multiply-adds, if C has more than a few tiles. `packs_operands` says that the family copies
    matrices which others take as they lie, and `is_for_large` that this pays for large ones alone.
    `takes_any_address` is False if the family has no kernels for operands whose addresses are not
    known.
    """

    problem_type: type[Problem] = Problem
    variant_type: type[Any]
    has_cost_model: bool = True
    is_bandwidth_bound: ClassVar[bool] = False
    is_arithmetic_bound: ClassVar[bool] = False
    packs_operands: ClassVar[bool] = False
    is_for_large: bool = False
    takes_any_address: bool = True

    def build(self, b: Builder, problem: P, variant: Any, arguments: Arguments) -> None:
        """See `KernelFamily`. A kernel with an epilogue is named so."""
        name = self.kernel_name(problem, variant)
        with b.kernel_name(f"{name}_epilogue" if name and arguments.epilogue else name):
            self.insert(b, problem, variant, arguments)

    def kernel_name(self, problem: P, variant: Any) -> str:
        """See `KernelFamily`."""
        tile = self.tile_name(problem, variant)
        return f"{problem.operation}_{self.mnemonic}_{tile}".lower()

    def tile_name(self, problem: P, variant: Any) -> str:
        """The variant's parameters in the name of its kernel: here m, n, k, stages, copy_bytes,
        split_k and, if it has it, sliced_k."""
        return named_tile(
            *(variant.m, variant.n, variant.k, variant.stages),
            copy_bytes=variant.copy_bytes,
            slicedk=getattr(variant, "sliced_k", 1),
            splitk=variant.split_k,
        )

    def function(
        self,
        problem: P,
        variant: Any,
        name: str,
        epilogue: EpilogueBuilder | Epilogue | None = None,
    ) -> str:
        """The text of `func.func @name`, whose arguments are A, B, C and the epilogue operands, and
        which launches the kernel, named like the function. `epilogue`: an `EpilogueBuilder`, or an
        `Epilogue`."""

        def body(b: Builder, given: list[Value]) -> None:
            a, b_, c, *operands = given
            bound = (
                epilogue.bind(problem.epilogue_operands, operands)
                if isinstance(epilogue, Epilogue)
                else epilogue
            )
            with b.kernel_name(f"{name}_kernel"):
                arguments = Arguments(a, b_, c, tuple(operands), bound)
                self.insert(b, problem, variant, arguments)

        return function_text(name, problem.arguments, body)

    def shared_bytes(self, problem: P, variant: Any) -> int:
        """Dynamic shared memory of a block, in bytes. (The CPU has as much as it needs.)"""
        return 0

    def able(self, problem: P) -> list[Any]:
        """The variants that can take the problem."""
        if type(problem) is not self.problem_type:
            return []
        return [one for one in self.variants(problem) if self.can_take(problem, one)]

    # --- Cost ----------------------------------------------------------------------------------

    def expected_clocks(
        self, problem: P, variant: Any, sizes: Sizes, chip: Chip, *, at_most: bool = False
    ) -> float:
        """How many clocks a multiprocessor of the chip is expected to be busy, for M, N and K of
        `sizes`. With `at_most`, no fewer than the multiply-adds take at the chip's peak, which
        makes families comparable."""
        m, n, k = sizes
        variant = self.for_sizes(variant, sizes)
        each, once = self.tile_clocks(problem, variant, k)
        if at_most:
            peak = peak_of(problem, chip).multiply_adds
            each = max(each, variant.m * variant.n * k / variant.split_k / peak)
        tiles = -(-m // variant.m) * -(-n // variant.n) * variant.split_k
        return float(-(-tiles // gpu_of(chip.capability).multiprocessors) * each + once)

    def tile_clocks(self, problem: P, variant: Any, k: int) -> tuple[float, float]:
        """About how many clocks of a multiprocessor a tile takes, and a launch besides."""
        raise NotImplementedError

    def for_sizes(self, variant: Any, sizes: Sizes) -> Any:
        """The variant with what the program finds when it knows the sizes."""
        return variant

    # --- Sizes that are not known --------------------------------------------------------------

    def few_tiles(self, problem: P) -> FewTiles | None:
        """A variant for where even small tiles are few; None if the family has none."""
        return None

    def chosen_when_known(self, problem: P) -> tuple[MatmulFamily[P], Any] | None:
        """Several kernels, among which the program chooses when it knows the sizes, as the one
        variant of another family; None if this family has no such."""
        return None

    def describe(self, variant: Any) -> str:
        """The kernel, as messages call it."""
        if self.is_bandwidth_bound:
            return self.name
        return f"{self.name} with tiles of {variant.m}x{variant.n}"

    def describe_choice(self, variant: Any) -> str | None:
        """How the program chooses among several kernels; None where the variant is one kernel."""
        return None
