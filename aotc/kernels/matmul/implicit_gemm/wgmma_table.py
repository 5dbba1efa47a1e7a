"""The kernel dispatch table for an unknown number of images: several kernels of `ImplicitWgmma`. At
run time, the program launches the one that the cost model expects to be fastest."""

from __future__ import annotations

from functools import partial

from aotc.builder import Builder
from aotc.kernels.family import SM_90A
from aotc.kernels.matmul.implicit_gemm.family import ImplicitGemmFamily
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.implicit_gemm.wgmma import IMPLICIT_WGMMA, rows_of_c
from aotc.kernels.matmul.problem import Arguments
from aotc.kernels.matmul.wgmma.dispatch_table import Variants, launch_fastest

# The table has the fastest kernel for each of these numbers of images.
_IMAGES = (8, 1, 64)


class ImplicitWgmmaTable(ImplicitGemmFamily):
    """Kernels of `ImplicitWgmma`, one of which the program launches. A variant of this family is
    several variants of `ImplicitWgmma`."""

    name = IMPLICIT_WGMMA.name
    mnemonic = IMPLICIT_WGMMA.mnemonic
    target = SM_90A
    variant_type = Variants
    takes_any_address = False

    def can_implement(self, problem: ImplicitGemm, variant: Variants) -> bool:
        return all(IMPLICIT_WGMMA.can_implement(problem, one) for one in variant.variants)

    def variants(self, problem: ImplicitGemm) -> tuple[Variants, ...]:
        able = IMPLICIT_WGMMA.legal_variants(problem)
        if problem.m is not None or not able:
            return ()
        best = [
            min(able, key=lambda one: IMPLICIT_WGMMA.clocks_of_images(problem, one, images))
            for images in _IMAGES
        ]
        return (Variants(tuple(dict.fromkeys(best))),)

    def clocks_on_h100(self, problem: ImplicitGemm, variant: Variants) -> float:
        return min(IMPLICIT_WGMMA.clocks_on_h100(problem, one) for one in variant.variants)

    def shared_bytes(self, problem: ImplicitGemm, variant: Variants) -> int:
        return max(IMPLICIT_WGMMA.shared_bytes(problem, one) for one in variant.variants)

    def insert(
        self, b: Builder, problem: ImplicitGemm, variant: Variants, arguments: Arguments
    ) -> None:
        rows = rows_of_c(b, problem, arguments)
        clocks = [IMPLICIT_WGMMA.clocks_of_rows(problem, one, rows) for one in variant.variants]
        launches = [
            partial(IMPLICIT_WGMMA.build, b, problem, one, arguments) for one in variant.variants
        ]
        launch_fastest(b, launches, clocks)

    def kernel_name(self, problem: ImplicitGemm, variant: Variants) -> str:
        """An empty name: each of the kernels has its own."""
        return ""

    def describe_choice(self, variant: Variants) -> str:
        return variant.describe("the number of images")


IMPLICIT_WGMMA_TABLE = ImplicitWgmmaTable()
