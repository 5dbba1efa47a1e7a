"""What the lowering decided, and why: for `--explain`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from aotc.input.place import Place
from aotc.input.source import Source
from aotc.warnings import BuildWarning


class Remark(Struct, frozen=True):
    """One decision: the step of the pipeline that took it, where in the input, and its reason."""

    step: str
    place: Place | None
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


class ChosenKernels(Struct, frozen=True):
    """The kernels that a matmul of the input has, as the kernel library describes them: the
    problem, a choice for each kernel on GPUs with its reason, and the chips of the build."""

    place: Place | None
    text: str
    problem: Any
    choices: tuple[Any, ...]
    reasons: tuple[str, ...]
    chips: tuple[Any, ...]


class PlacedBuffer(Struct, frozen=True):
    """A buffer of host code that kernels use: where it is made, the memory that it is in, and
    why."""

    place: Place | None
    function: str
    type: str
    memory: str
    reason: str


class Remarks(Struct):
    """The decisions of one build, in the order in which they were taken."""

    source: Source
    taken: list[Remark] = field(default_factory=list)
    # The matmuls that kernels were chosen for, as the kernel library describes them.
    products: list[Any] = field(default_factory=list)
    chosen: list[ChosenKernels] = field(default_factory=list)
    buffers: list[PlacedBuffer] = field(default_factory=list)
    warnings: list[BuildWarning] = field(default_factory=list)

    def add(self, step: str, location: Any, text: str) -> None:
        """Notes what `step` decided at `location`, in words that end without a period."""
        self.taken.append(Remark(step, self.source.place(location), text))

    def warn(self, name: str, location: Any, text: str) -> None:
        """Notes a warning of the build."""
        self.warnings.append(BuildWarning.at(self.source, name, location, text))
