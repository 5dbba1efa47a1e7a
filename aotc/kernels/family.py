"""What a family of kernels says of itself: choosers and dispatchers ask nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from aotc.builder import Builder

# What kernels are launched on, where it is no one chip.
ANY_GPU = "gpu"
CPU = "cpu"
EVERYWHERE = "any"
SM_90A, SM_100A = "sm_90a", "sm_100a"

P = TypeVar("P")
A = TypeVar("A")


class KernelFamily(ABC, Generic[P, A]):
    """Kernels that compute the same in the same way, for a problem and a variant each. `P` is the
    class of problems, and `A` that of a problem's operands in host code.

    A variant is a frozen struct of a kernel's parameters: tile sizes, pipeline stages, warps.

    `name` is what messages and files of measurements call the family. `mnemonic` is the family in
    the names of its kernels. `target` is what its kernels are launched on: a chip's name, `ANY_GPU`
    or `CPU`. `kernel_type` is the class whose `build` inserts a kernel.
    """

    name: str
    mnemonic: str
    target: str
    kernel_type: ClassVar[type[Any]]

    @abstractmethod
    def can_take(self, problem: P, variant: Any) -> bool:
        """Whether the kernel is right for the problem."""

    @abstractmethod
    def variants(self, problem: P) -> tuple[Any, ...]:
        """The variants that are worth a try for the problem, all of which are right for it: the
        best guess first. None at all means that the family has no kernel for it."""

    @abstractmethod
    def shared_bytes(self, problem: P, variant: Any) -> int:
        """Dynamic shared memory of a block, in bytes."""

    @abstractmethod
    def kernel_name(self, problem: P, variant: Any) -> str:
        """What profilers call the kernel: the operation, its types and layouts, the family, and
        the variant's tile."""

    def insert(self, b: Builder, problem: P, variant: Any, arguments: A) -> None:
        """Inserts the kernel's launch, and the host code in front of it, at the current insertion
        point."""
        self.kernel_type(b, problem, variant, arguments).build()

    def build(self, b: Builder, problem: P, variant: Any, arguments: A) -> None:
        """Inserts what launches the kernel, which gets its name."""
        with b.kernel_name(self.kernel_name(problem, variant)):
            self.insert(b, problem, variant, arguments)

    @abstractmethod
    def function(self, problem: P, variant: Any, name: str) -> str:
        """The text of `func.func @name`, which takes the problem's operands and launches the
        kernel."""
