"""`Recorder`: observes a build, and keeps the module's text after each pass and stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.artifact_kind import MLIR, ArtifactKind
from aotc.artifacts import HOST_MLIR, KINDS, MANIFEST, ArtifactFile
from aotc.explore.text import (
    Files,
    Line,
    Text,
    located_llvm,
    located_mlir,
    located_ptx,
    number_lines,
    plain,
)
from aotc.input.source import Source
from aotc.mlir import ir
from aotc.pipeline_text import pipeline_text, short_name, single_passes
from aotc.rewrites.lines import LINES_PASS
from aotc.rewrites.run import PassWatch

if TYPE_CHECKING:
    from aotc.building.build import Build
    from aotc.lower.passes.base import Pass

INPUT = "input"
# Constants with more elements are elided: the texts are for reading.
_LONGEST_CONSTANT = 32
# For at most this many gpu.modules the text after each pass is kept; for others, of which there may
# be a thousand, only the text of each stage.
# thousand, that of each stage.
_MOST_WATCHED = 16
# A file name that no text has: its lines are numbers of operations while these are being located.
_NUMBERS = "aotc-operations"
_LOADED = "as it was loaded"


def _unlocated(text: str, files: Files) -> tuple[Line, ...]:
    return plain(text)


# By the suffix of an artifact's file: the language, and the function that locates its lines.
_LANGUAGES: dict[str, tuple[str, Callable[[str, Files], tuple[Line, ...]]]] = {
    "ll": ("llvm", located_llvm),
    "ptx": ("ptx", located_ptx),
}


def _is_of_gpu_module(kind: ArtifactKind) -> bool:
    """Whether each gpu.module has a file of the kind."""
    return "{gpu_module}" in kind.files[0]


class Recorder:
    """The `Printer` and an observer of one build.

    `texts` has the recorded texts, the input first, and `artifacts` the files of every stage. The
    outlined module, and each device's and the host's module before translation, are recorded as
    files of locations: later texts refer to their lines.
    `outlined` is called with the outlined module, whose operations have locations of its lines by
    then, and with the index of its text.
    """

    def __init__(self, outlined: Callable[[Any, int], None]) -> None:
        self.texts: list[Text] = []
        self.artifacts: list[ArtifactFile] = []
        self._files: dict[str, int] = {}
        # The time of recording by stage, which is not part of the build's time.
        self.seconds: dict[str, float] = {}
        self._outlined = outlined
        self._source: Source | None = None
        self._build: Build | None = None
        self._units: dict[str, str] = {}  # gpu.modules by the stem of their files
        self._watched: dict[str, int] = {}  # gpu.modules in the order of their passes

    def begin(self, build: Build) -> None:
        """Sets the build that is recorded, before it begins."""
        self._build = build

    def watch(self, stage: str) -> PassWatch:
        """See `Printer`."""
        return _Watch(self, stage)

    def recorded(self, stage: str, began: float) -> None:
        """Adds the time since `began` to the time of recording in a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began

    def finished(self, kind: ArtifactKind, operation: Any, words: dict[str, str]) -> None:
        """See `Printer`."""
        began = time.perf_counter()
        if kind is MLIR:
            index = self._number_lines(operation, self._name(".gpu.mlir"), MLIR.name, keep=True)
            self._outlined(operation, index)
        elif _is_of_gpu_module(kind):
            self._units[words["gpu_module"]] = self.texts[-1].unit
        elif kind is not HOST_MLIR:
            self._add(Text(kind.name, kind.name, "mlir", self._lines(operation), is_final=True))
        self.recorded(kind.name, began)

    def stage_started(self, name: str) -> None:
        """See `Observer`."""

    def stage_finished(
        self, name: str, artifacts: Sequence[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        """See `Observer`."""
        self.artifacts += artifacts
        for file in artifacts:
            if not file.kind.is_text or file.kind is MANIFEST:
                continue
            text = file.content().decode()
            ending = file.file_name.rpartition(".")[2]
            language, located = _LANGUAGES.get(ending, ("text", _unlocated))
            chip = self.chip_of(file)
            title = f"{name} {chip}".strip()
            lines = located(text, self._files)
            unit = self.unit_of(file)
            self._add(Text(title, name, language, lines, unit, chip, is_final=True))

    def unit_of(self, file: ArtifactFile) -> str:
        """The gpu.module that a file belongs to; "" if it belongs to all."""
        if not _is_of_gpu_module(file.kind):
            return ""
        stems = [one for one in self._units if file.file_name.startswith(f"{one}.")]
        return self._units[max(stems, key=len)] if stems else ""

    def chip_of(self, file: ArtifactFile) -> str:
        """The chip that a file is for; "" if it is for all."""
        return file.file_name.split(".")[-2] if file.kind.is_per_chip else ""

    @property
    def files(self) -> dict[str, int]:
        """Maps the names of files of locations to the texts."""
        return self._files

    def passed(self, name: str, stage: str, unit: str, operation: Any, seconds: float) -> None:
        """Records the end of a pass: keeps the module's text if the pass changed it."""
        if self._source is None:  # during partitioning, which precedes the plan
            return
        if unit and self._watched.setdefault(unit, len(self._watched)) >= _MOST_WATCHED:
            return
        lines = self._lines(operation)
        last = next(
            (text for text in reversed(self.texts) if (text.stage, text.unit) == (stage, unit)),
            None,
        )
        is_same = last is not None and [one.text for one in last.lines] == [
            one.text for one in lines
        ]
        if not is_same:
            self._add(Text(name, stage, "mlir", lines, unit, seconds=seconds))

    def lowered(self, stage: str, unit: str, operation: Any) -> None:
        """Records a module that is about to get debug information, by which LLVM IR names its
        lines."""
        ending = ".host.mlir" if stage == HOST_MLIR.name else f".{unit}.mlir"
        self._number_lines(operation, self._name(ending), stage, unit=unit)

    def load(self, operation: Any) -> None:
        """Records the input: its own text, or the module that a front end imported."""
        if self._source is not None or self._build is None:
            return
        explanation = self._build.log.explanation
        if explanation is None:
            return
        self._source = source = explanation.remarks.source
        if source.lines:
            self._files[source.name] = 0
            language = "mlir" if source.name.endswith(".mlir") else "text"
            lines = plain("\n".join(source.lines))
            self._add(Text(Path(source.name).name, INPUT, language, lines, is_final=True))
        else:
            self._number_lines(operation, _LOADED, INPUT, keep=True)

    def with_reasons(self, passes: Iterable[Pass]) -> list[Text]:
        """The texts; those of the plan's passes with the plan's reasons."""
        reasons: list[tuple[str, str]] = []
        for one in passes:
            pipeline = pipeline_text([one.text])
            names = [one.name] if one.is_own else map(short_name, single_passes(pipeline))
            reasons += [(name, one.reason) for name in names]
        found, at = [], 0
        for text in self.texts:
            if text.stage == MLIR.name and not text.is_final:
                places = [i for i in range(at, len(reasons)) if reasons[i][0] == text.title]
                if places:
                    at = places[0] + 1
                    text = replace(text, reason=reasons[places[0]][1])
            found.append(text)
        return found

    def _name(self, ending: str) -> str:
        assert self._build is not None
        return f"{self._build.request.name}{ending}"

    def _add(self, text: Text) -> int:
        self.texts.append(text)
        return len(self.texts) - 1

    def _lines(self, operation: Any) -> tuple[Line, ...]:
        assembly = ops.text_of(
            operation,
            enable_debug_info=True,
            large_elements_limit=_LONGEST_CONSTANT,
            large_resource_limit=_LONGEST_CONSTANT,
        )
        return located_mlir(assembly, self._files)

    def _number_lines(
        self, operation: Any, file: str, stage: str, *, unit: str = "", keep: bool = False
    ) -> int:
        """Adds the text of a module as a final one, and sets the locations of its operations to
        lines of it: in addition to their locations (`keep`), or instead of them."""
        lines = self._lines(operation)
        operations = ops.walk(operation)
        places = [one.location for one in operations]
        index = len(self.texts)
        with operation.context:
            for number, one in enumerate(operations, 1):
                one.location = ir.Location.file(_NUMBERS, number, 0)
            self._files[_NUMBERS] = index
            found = number_lines(self._lines(operation), index)
            del self._files[_NUMBERS]
            for number, (one, place) in enumerate(zip(operations, places, strict=True), 1):
                line = found.get(number)
                if line is None:  # it is not printed, such as the terminator of a loop's body
                    one.location = place
                    continue
                own = ir.Location.file(file, line, 0)
                one.location = ir.Location.fused([place, own]) if keep else own
        self._files[file] = index
        title = file if file == _LOADED else stage
        return self._add(Text(title, stage, "mlir", lines, unit, is_final=True))


class _Watch(Struct):
    """The `PassWatch` of one stage, or of a gpu.module in it."""

    recorder: Recorder
    stage: str
    unit: str | None = None
    began: float = 0.0

    @property
    def is_idle(self) -> bool:
        return False

    def before(self, name: str, operation: Any) -> None:
        began = time.perf_counter()
        if self.stage == MLIR.name:
            self.recorder.load(operation)
        if self.unit is None:
            is_of_one = _is_of_gpu_module(KINDS[self.stage])
            modules = ops.find(operation, "gpu.module") if is_of_one else []
            self.unit = ops.symbol_of(modules[0]) if modules else ""
        if name == LINES_PASS:
            self.recorder.lowered(self.stage, self.unit, operation)
        self.began = time.perf_counter()
        self._recorded(began)

    def after(self, name: str, operation: Any) -> None:
        ended = time.perf_counter()
        if name != LINES_PASS:
            self.recorder.passed(name, self.stage, self.unit or "", operation, ended - self.began)
        self._recorded(ended)

    def _recorded(self, began: float) -> None:
        self.recorder.recorded(self.stage, began)
