"""The decisions of the lowering and their reasons, for `--explain`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from aotc.input.place import Place
from aotc.input.source import Source
from aotc.warnings import BuildWarning


class Remark(Struct, frozen=True):
    """One decision: the pipeline step that made it, its location in the input, its reason."""

    step: str
    place: Place | None
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


class ChosenKernels(Struct, frozen=True):
    """The kernels of one matmul of the input, as the kernel library describes them: the problem, a
    choice for each kernel on GPUs with its reason, and the chips of the build."""

    place: Place | None
    text: str
    problem: Any
    choices: tuple[Any, ...]
    reasons: tuple[str, ...]
    chips: tuple[Any, ...]


class PlacedBuffer(Struct, frozen=True):
    """A buffer of host code that kernels use: where it is allocated, its memory space, and the
    reason for that."""

    place: Place | None
    function: str
    type: str
    memory: str
    reason: str


class Remarks(Struct):
    """The decisions of one build, in order."""

    source: Source
    taken: list[Remark] = field(default_factory=list)
    # The matmuls with generated kernels, as the kernel library describes them.
    matmuls: list[Any] = field(default_factory=list)
    chosen: list[ChosenKernels] = field(default_factory=list)
    buffers: list[PlacedBuffer] = field(default_factory=list)
    warnings: list[BuildWarning] = field(default_factory=list)

    def add(self, step: str, location: Any, text: str) -> None:
        """Records a decision of `step` about the operation at `location`; `text` has no period."""
        self.taken.append(Remark(step, self.source.place(location), text))

    def warn(self, name: str, location: Any, text: str) -> None:
        """Records a warning of the build."""
        self.warnings.append(BuildWarning.at(self.source, name, location, text))
