"""The base of the families of matmul kernels: their interface, and the cost model of tiles."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, TypeVar

from aotc.builder import WIDEST_ACCESS, Builder, function_text
from aotc.builder.numbers import Number, Value
from aotc.chips import gpu_of
from aotc.kernels.family import KernelFamily
from aotc.kernels.matmul.epilogue import Epilogue
from aotc.kernels.matmul.peaks import peak_of
from aotc.kernels.matmul.problem import Arguments, EpilogueBuilder, Problem
from aotc.kernels.matmul.tuned import Sizes
from aotc.kernels.matmul.waves import Tiles
from aotc.request import Chip

P = TypeVar("P", bound=Problem)


class FewTiles(NamedTuple):
    """A variant of small tiles for problems of unknown sizes whose K extent is at least `least_k`.
    It is used if C has at most `most_tiles` tiles, or no more rows than one of them; if the family
    has `wave_tiles`, for the rows for which it is expected to be faster than other variants."""

    variant: Any
    most_tiles: int
    least_k: int


def least_clocks(problem: Problem, sizes: Sizes, chip: Chip) -> float:
    """The clocks that each multiprocessor of the chip takes for the multiply-adds at its peak."""
    m, n, k = sizes
    multiply_adds = m * n * k / gpu_of(chip.capability).multiprocessors
    return multiply_adds / peak_of(problem, chip).multiply_adds


def named_tile(
    m: int, n: int, k: int, stages: int, *, copy_bytes: int = WIDEST_ACCESS, **counts: int
) -> str:
    """The tile in kernel names: `128x256x64_s4`, with a suffix such as `_splitk2` for each of
    `counts` that is not 1. A count of 0 is chosen at run time, and has no number in the name.
    Copies of fewer than 16 bytes, for operands of less alignment, have a suffix such as
    `_align4`."""
    words = [f"{word}{count or ''}" for word, count in counts.items() if count != 1]
    if copy_bytes != WIDEST_ACCESS:
        words.append(f"align{copy_bytes}")
    return "_".join((f"{m}x{n}x{k}", f"s{stages}", *words))


class MatmulFamily(KernelFamily[P, Arguments]):
    """See `KernelFamily`. `variant_type` is the class of the family's variants, and
    `problem_type` that of the problems that it has kernels for.

    `has_cost_model`: whether `expected_clocks` may be called. `is_bandwidth_bound`: every variant
    is limited by memory bandwidth. `is_arithmetic_bound`: every variant is limited by the
    multiply-adds of the multiprocessors if C has more than a few tiles. `packs_operands`: the
    family copies matrices that other families read in place. `is_for_large`: the copy pays off for
    large matrices only. `takes_any_address`: the family has kernels for operands of unknown
    alignment. `depends_on_host_code`: the kernels depend on the operations around the launch, such
    as those that an operand is the result of.
    """

    problem_type: type[Problem] = Problem
    variant_type: type[Any]
    has_cost_model: bool = True
    is_bandwidth_bound: ClassVar[bool] = False
    is_arithmetic_bound: ClassVar[bool] = False
    packs_operands: ClassVar[bool] = False
    is_for_large: bool = False
    takes_any_address: bool = True
    depends_on_host_code: ClassVar[bool] = False

    def build(self, b: Builder, problem: P, variant: Any, arguments: Arguments) -> None:
        """See `KernelFamily`. The name of a kernel with an epilogue ends with `_epilogue`."""
        name = self.kernel_name(problem, variant)
        with b.kernel_name(f"{name}_epilogue" if name and arguments.epilogue else name):
            self.insert(b, problem, variant, arguments)

    def kernel_name(self, problem: P, variant: Any) -> str:
        """See `KernelFamily`."""
        tile = self.tile_name(problem, variant)
        return f"{problem.operation}_{self.mnemonic}_{tile}".lower()

    def tile_name(self, problem: P, variant: Any) -> str:
        """The variant's parameters in the kernel's name. By default they are m, n, k, stages,
        copy_bytes, split_k and, if the variant has it, sliced_k."""
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
        """The MLIR text of `func.func @name`, whose arguments are A, B, C and the epilogue
        operands, and which launches the kernel `{name}_kernel`."""

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
        """The dynamic shared memory of a block, in bytes. (It is 0 for kernels without any, such as
        those of the CPU.)"""
        return 0

    def legal_variants(self, problem: P) -> list[Any]:
        """The variants that compute the problem correctly."""
        if type(problem) is not self.problem_type:
            return []
        return [one for one in self.variants(problem) if self.can_implement(problem, one)]

    # --- Cost ----------------------------------------------------------------------------------

    def expected_clocks(
        self, problem: P, variant: Any, sizes: Sizes, chip: Chip, *, at_most: bool = False
    ) -> float:
        """The clocks that a multiprocessor of the chip is expected to be busy. `sizes`: M, N and K.
        With `at_most`, the result is at least the time of the multiply-adds at the chip's peak,
        which makes families comparable."""
        m, n, k = sizes
        variant = self.for_sizes(problem, variant, sizes)
        each, once = self.tile_clocks(problem, variant, k)
        if at_most:
            peak = peak_of(problem, chip).multiply_adds
            each = max(each, variant.m * variant.n * k / variant.split_k / peak)
        tiles = -(-m // variant.m) * -(-n // variant.n) * variant.split_k
        return float(-(-tiles // gpu_of(chip.capability).multiprocessors) * each + once)

    def tile_clocks(self, problem: P, variant: Any, k: int) -> tuple[float, float]:
        """The estimated clocks of a multiprocessor for each tile, and once per launch."""
        raise NotImplementedError

    def for_sizes(self, problem: P, variant: Any, sizes: Sizes) -> Any:
        """The variant, with the parameters that the program computes from the sizes at run time."""
        return variant

    # --- Sizes that are not known --------------------------------------------------------------

    def few_tiles(self, problem: P) -> FewTiles | None:
        """The variant for problems with few tiles, even of small ones; None if the family has
        none."""
        return None

    def wave_tiles(self, problem: P, variant: Any, k: Number) -> Tiles | None:
        """The tiles of a variant for an extent of K, by which the program chooses the rows that it
        computes; None if it compares numbers of tiles alone."""
        return None

    def runtime_choice(self, problem: P) -> tuple[MatmulFamily[P], Any] | None:
        """A family and its variant that stand for several kernels, among which the program chooses
        by the sizes at run time (a kernel dispatch table); None if there is no such family."""
        return None

    def describe(self, variant: Any) -> str:
        """The kernel's description in messages."""
        if self.is_bandwidth_bound:
            return self.name
        return f"{self.name} with tiles of {variant.m}x{variant.n}"

    def describe_choice(self, variant: Any) -> str | None:
        """The description of the choice at run time, if the variant stands for several kernels;
        None if it is one kernel."""
        return None
