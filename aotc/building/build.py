"""`Build`: what every stage of a build is given."""

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

# How the bindings' diagnostics are printed where nobody catches them.
_PLACED = re.compile(r"^loc\((.*)\): error: (.*)$", re.MULTILINE)

# What Python says of text that is none.
_NOT_UTF8 = "codec can't decode"


class Printer(Protocol):
    """Prints or records the module around passes."""

    def watch(self, stage: str) -> PassWatch:
        """For the passes of the stage."""

    def finished(self, kind: ArtifactKind, operation: Any, words: dict[str, str]) -> None:
        """A stage has made a module, which later ones will change; `words` are as in `paths_of`."""


class BuildLog(Struct):
    """What a build tells its user, as far as it came."""

    warnings: list[BuildWarning] = field(default_factory=list)
    explanation: Explanation | None = None


class Build(Struct, frozen=True):
    """The request, the tools, and the places of one build: the same for all of its stages.

    Files are made in `folder`, which the caller removes. `content` are the input's bytes, where
    they were read already; `cache` has what builds made before. With `keeps_places`, operations
    keep their places in the input, and code for devices its lines, as with -g.
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
        """Whether modules and code for devices have places in the input."""
        return self.request.has_lines or self.keeps_places

    @property
    def has_host_lines(self) -> bool:
        """Whether the host's modules have them."""
        return self.request.debug or self.keeps_places

    def watch(self, stage: str) -> PassWatch:
        """What the passes of a stage are told to."""
        from aotc.rewrites.run import UNWATCHED

        return UNWATCHED if self.printer is None else self.printer.watch(stage)

    def warn(self, name: str, message: str) -> None:
        """Notes a warning that has no place in the input."""
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
        """The translation, on its way, of a module in the LLVM dialect to what the clang in use
        reads."""
        from aotc.host.translate import Translation

        return Translation(module, self.toolchain.clang.version)

    @property
    def stem(self) -> str:
        """The request's name as the work folder's files start with it: no option to a tool."""
        return file_stem(self.request.name)

    def file(self, kind: ArtifactKind, file: str, /, **words: str) -> ArtifactFile:
        """The artifact that is `file` of the work folder; `words` are those of its path that the
        request does not know."""
        path = self.folder / file
        (place,) = self.request.paths_of(kind, **words)
        return ArtifactFile.at(place, kind, path.read_bytes, path)

    def texts(self, kind: ArtifactKind, *texts: str) -> tuple[ArtifactFile, ...]:
        """The artifacts that have the texts, in the order of the kind's paths."""
        places = self.request.paths_of(kind)
        return tuple(
            ArtifactFile.at(place, kind, text.encode)
            for place, text in zip(places, texts, strict=True)
        )

    def printed(self, kind: ArtifactKind, operation: Any, **words: str) -> tuple[ArtifactFile, ...]:
        """The text of an operation, when somebody will want it: it may be long.

        Among the intermediates, large constants are left out of it.
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
        # Printed now: later stages change the module.
        text = operation.get_asm(
            enable_debug_info=r.debug, large_elements_limit=limit, large_resource_limit=limit
        )
        (place,) = r.paths_of(kind, **words)
        return (ArtifactFile.at(place, kind, lambda: f"{text}\n".encode()),)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


def translated(translation: Translation, source: Source) -> str:
    """The translation's text. Where the bindings name a place in the source, it is the source's
    fault that there is none."""
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
