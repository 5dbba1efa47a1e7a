"""`Build`: the first argument of every stage of a build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import ArtifactFile
from aotc.emit.c_text import file_stem
from aotc.errors import InputError, InternalError
from aotc.input.source import Source, excerpt, find_place
from aotc.observers import LONGEST_SAVED
from aotc.ops import text_of
from aotc.request import BuildRequest
from aotc.toolchain import Runner, Toolchain
from aotc.warnings import BuildWarning

if TYPE_CHECKING:  # each is loaded when a stage needs it
    from aotc.cache.builds import BuildCache
    from aotc.host.compile import HostCompiler
    from aotc.host.link import Linker
    from aotc.host.translate import Translation
    from aotc.lower.plan.explanation import Explanation
    from aotc.rewrites.run import PassWatch

# The form in which the bindings print diagnostics that are not caught.
_PLACED = re.compile(r"^loc\((.*)\): error: (.*)$", re.MULTILINE)

# Python's error for a string that is not UTF-8.
_NOT_UTF8 = "codec can't decode"


class Printer(Protocol):
    """Prints or records the module around passes."""

    def watch(self, stage: str) -> PassWatch:
        """The watch for the passes of a stage."""

    def finished(self, kind: ArtifactKind, operation: Any, words: dict[str, str]) -> None:
        """Called after a stage has made a module, before later stages change it. `words` are those
        of `paths_of`."""


class BuildLog(Struct):
    """The messages of a build for its user, up to the current stage."""

    warnings: list[BuildWarning] = field(default_factory=list)
    explanation: Explanation | None = None


class Build(Struct, frozen=True):
    """The request, the tools, and the folders of one build, which are the same for all its stages.

    Files are made in `folder`, which the caller removes. `content` are the input's bytes, if they
    were read already. `cache` has results of earlier builds. With `keeps_places`, operations keep
    their locations in the input, and device code its line information, as with -g.
    """

    request: BuildRequest
    toolchain: Toolchain
    runner: Runner
    folder: Path
    context: Any
    content: bytes | None = None
    cache: BuildCache | None = None
    log: BuildLog = field(default_factory=BuildLog)
    printer: Printer | None = None
    keeps_places: bool = False

    @property
    def has_lines(self) -> bool:
        """Whether modules and device code have locations in the input."""
        return self.request.has_lines or self.keeps_places

    @property
    def has_host_lines(self) -> bool:
        """Whether the host modules have locations in the input."""
        return self.request.debug or self.keeps_places

    def watch(self, stage: str) -> PassWatch:
        """The watch for the passes of a stage."""
        from aotc.rewrites.run import UNWATCHED

        return UNWATCHED if self.printer is None else self.printer.watch(stage)

    def warn(self, name: str, message: str) -> None:
        """Records a warning without a place in the input."""
        self.log.warnings.append(BuildWarning(name, message))

    @property
    def host_compiler(self) -> HostCompiler:
        from aotc.host.compile import HostCompiler

        r = self.request
        return HostCompiler(
            self.toolchain, self.runner, self.folder, r.target, r.optimization, r.debug, r.cpu
        )

    @property
    def linker(self) -> Linker:
        from aotc.host.link import Linker

        return Linker(
            self.toolchain, self.runner, self.folder, self.request.target, self.request.debug
        )

    def translation(self, module: Any) -> Translation:
        """Starts the translation of a module in the LLVM dialect to LLVM IR for the clang that is
        used."""
        from aotc.host.translate import Translation

        return Translation(module, self.toolchain.clang.version)

    @property
    def stem(self) -> str:
        """The request's name as a prefix of files in the work folder, which no tool takes for an
        option."""
        return file_stem(self.request.name)

    def file(self, kind: ArtifactKind, file: str, /, **words: str) -> ArtifactFile:
        """The artifact in `file` of the work folder. `words` are those of its path template that
        the request does not have."""
        path = self.folder / file
        (place,) = self.request.paths_of(kind, **words)
        return ArtifactFile.at(place, kind, path.read_bytes, path)

    def texts(self, kind: ArtifactKind, *texts: str) -> tuple[ArtifactFile, ...]:
        """The artifacts with the texts, in the order of the kind's paths."""
        places = self.request.paths_of(kind)
        return tuple(
            ArtifactFile.at(place, kind, text.encode)
            for place, text in zip(places, texts, strict=True)
        )

    def printed(self, kind: ArtifactKind, operation: Any, **words: str) -> tuple[ArtifactFile, ...]:
        """The text of an operation, if it is requested (it may be long).

        For --save-temps, large constants are elided.
        """
        r = self.request
        if self.printer is not None:
            self.printer.finished(kind, operation, words)
        if kind in r.emit:
            limit = None
        elif r.save_temps is not None:
            limit = LONGEST_SAVED
        else:
            return ()
        # Printed now, because later stages change the module.
        text = text_of(
            operation,
            enable_debug_info=r.debug,
            large_elements_limit=limit,
            large_resource_limit=limit,
        )
        (place,) = r.paths_of(kind, **words)
        return (ArtifactFile.at(place, kind, lambda: f"{text}\n".encode()),)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


def translated(translation: Translation, source: Source) -> str:
    """The text of the translation. An error of the bindings with a place in the source is the
    source's fault, and becomes an InputError."""
    try:
        return translation.text()
    except InternalError as error:
        said = _PLACED.search(error.message)
        place = find_place(said[1], source.name) if said else None
        if _NOT_UTF8 in error.message:
            raise InputError(
                f"{source.name}: a string that LLVM IR would have is not UTF-8."
            ) from None
        if said is None or place is None:
            raise
        parts = [f"{place}: error: {said[2]}"]
        parts += filter(None, [excerpt(place, source.name, source.lines)])
        raise InputError("\n".join(parts)) from None
