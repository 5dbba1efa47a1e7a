"""The base of the families of implicit GEMM kernels: their cost model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.tuned import Sizes
from aotc.request import Chip


class ImplicitGemmFamily(MatmulFamily[ImplicitGemm]):
    """A family whose cost depends on the problem's own loops, as they are likely to be."""

    problem_type = ImplicitGemm

    def expected_clocks(
        self,
        problem: ImplicitGemm,
        variant: Any,
        sizes: Sizes,
        chip: Chip,
        *,
        at_most: bool = False,
    ) -> float:
        """See `MatmulFamily`: of an H100, whatever the chip."""
        return self.clocks_on_h100(problem, variant)

    @abstractmethod
    def clocks_on_h100(self, problem: ImplicitGemm, variant: Any) -> float:
        """How many clocks the problem is expected to take on an H100."""
