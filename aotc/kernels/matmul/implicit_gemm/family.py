"""The base of the families of implicit GEMM kernels: their cost model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.tuned import Sizes
from aotc.request import Chip


class ImplicitGemmFamily(MatmulFamily[ImplicitGemm]):
    """A family whose cost model uses the problem's loops, with guesses for unknown sizes."""

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
        """See `MatmulFamily`. The clocks are those of an H100, whatever the chip."""
        return self.clocks_on_h100(problem, variant)

    @abstractmethod
    def clocks_on_h100(self, problem: ImplicitGemm, variant: Any) -> float:
        """The clocks that the problem is expected to take on an H100."""
