"""`Job`: the build of one module of a command; and its outcome."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import force_setattr

from aotc.depfile import Depfile
from aotc.errors import EXIT_OK
from aotc.request import BuildRequest


class Job(Struct, frozen=True):
    """A module to build, and the depfile to write after it is built.

    `title` is its name in messages, by default the source. `reads` are files that options name: a
    pipeline's, tools, aotc.toml.
    """

    request: BuildRequest
    title: str = ""
    depfile: Depfile | None = None
    reads: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if not self.title:
            force_setattr(self, "title", str(self.request.source))


class Ended(Struct, frozen=True):
    """The outcome of a build: its exit code, and what it printed.

    `failure` is the text of the error if it failed; `made` are its outputs if it succeeded.
    `seconds` is its duration.
    """

    code: int = EXIT_OK
    stdout: str = ""
    stderr: str = ""
    failure: str = ""
    made: tuple[Path, ...] = ()
    seconds: float = 0.0


class Tally(Struct):
    """The outcomes of the jobs, by number; jobs that were not started are missing."""

    jobs: list[Job]
    ended: dict[int, Ended] = field(default_factory=dict)

    @property
    def failed(self) -> list[int]:
        """The numbers of the failed jobs, in the order of the inputs."""
        return [number for number in sorted(self.ended) if self.ended[number].code != EXIT_OK]

    @property
    def built(self) -> int:
        return len(self.ended) - len(self.failed)

    @property
    def code(self) -> int:
        """The most severe exit code: of a tool's failure (3) and an input's (2) it is 3."""
        return max((one.code for one in self.ended.values()), default=EXIT_OK)

    def summary(self) -> str:
        """The summary: `48 built, 2 failed: a.mlir, b.mlir`."""
        parts = [f"{self.built} built"]
        if skipped := len(self.jobs) - len(self.ended):
            parts.append(f"{skipped} not begun")
        if self.failed:
            names = ", ".join(self.jobs[number].title for number in self.failed)
            parts.append(f"{len(self.failed)} failed: {names}")
        return ", ".join(parts)
