"""What a family of kernels says of itself: choosers and dispatchers ask nothing else."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

# What kernels are launched on, where it is no one chip.
ANY_GPU = "gpu"
CPU = "cpu"
EVERYWHERE = "any"
SM_90A, SM_100A = "sm_90a", "sm_100a"

ProblemT = TypeVar("ProblemT", contravariant=True)


class KernelFamily(Protocol[ProblemT]):
    """Kernels that compute the same in the same way, for a problem and a variant each.

    A variant is a frozen struct of a kernel's parameters: tile sizes, pipeline stages, warps.

    `name` is what messages and files of measurements call the family. `target` is what its kernels
    are launched on: a chip's name, `ANY_GPU` or `CPU`.
    """

    name: str
    target: str

    def variants(self, problem: ProblemT) -> tuple[Any, ...]:
        """The variants that are worth a try for the problem, all of which are right for it: the
        best guess first. None at all means that the family has no kernel for it."""

    def shared_bytes(self, problem: ProblemT, variant: Any) -> int:
        """Dynamic shared memory of a block, in bytes."""

    def kernel_name(self, problem: ProblemT, variant: Any) -> str:
        """What profilers call the kernel: the operation, its types and layouts, the family, and
        the variant's tile."""

    def function(self, problem: ProblemT, variant: Any, name: str) -> str:
        """The text of `func.func @name`, which takes the problem's operands and launches the
        kernel."""
