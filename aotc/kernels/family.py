"""The protocol of kernel families. Kernel choice and dispatch use a family only through it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from aotc.builder import Builder

# Launch targets other than a single chip.
ANY_GPU = "gpu"
CPU = "cpu"
EVERYWHERE = "any"
SM_90A, SM_100A = "sm_90a", "sm_100a"

P = TypeVar("P")
A = TypeVar("A")


class KernelFamily(ABC, Generic[P, A]):
    """A set of kernels that implement one algorithm. A problem and a variant select one kernel.
    `P` is the class of problems, and `A` the class of a problem's operands in host code.

    A variant is a frozen struct of a kernel's parameters: tile sizes, pipeline stages, warps.

    `name` is the family's name in messages and in tuning files. `mnemonic` is its name inside
    kernel names. `target` is where its kernels are launched: a chip's name, `ANY_GPU` or `CPU`.
    `kernel_type` is the class whose `build` inserts a kernel.
    """

    name: str
    mnemonic: str
    target: str
    kernel_type: ClassVar[type[Any]]

    @abstractmethod
    def can_implement(self, problem: P, variant: Any) -> bool:
        """Whether the kernel computes the problem correctly."""

    @abstractmethod
    def variants(self, problem: P) -> tuple[Any, ...]:
        """The candidate variants for the problem, the best guess first. All of them compute it
        correctly. An empty tuple means that the family has no kernel for the problem."""

    @abstractmethod
    def shared_bytes(self, problem: P, variant: Any) -> int:
        """The dynamic shared memory of a thread block, in bytes."""

    @abstractmethod
    def kernel_name(self, problem: P, variant: Any) -> str:
        """The kernel's symbol name, which profilers show: the operation, its types and layouts, the
        family, and the variant's tile."""

    def insert(self, b: Builder, problem: P, variant: Any, arguments: A) -> None:
        """Inserts the host code and the launch of the kernel at the current insertion point."""
        self.kernel_type(b, problem, variant, arguments).build()

    def build(self, b: Builder, problem: P, variant: Any, arguments: A) -> None:
        """Inserts the launch as `insert` does, and names the kernel by `kernel_name`."""
        with b.kernel_name(self.kernel_name(problem, variant)):
            self.insert(b, problem, variant, arguments)

    @abstractmethod
    def function(self, problem: P, variant: Any, name: str) -> str:
        """The MLIR text of `func.func @name`, whose arguments are the problem's operands, and which
        launches the kernel."""
