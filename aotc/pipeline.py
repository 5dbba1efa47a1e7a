"""Runs the stages of a build in the order of `aotc.artifacts.KINDS`.

A stage takes the results of earlier stages and makes artifacts of one kind. Stages and artifacts
have the same names everywhere: `--emit NAME` stops there, `--save-temps` writes them, the time
report lists them.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import Struct

from aotc import mlir
from aotc.artifact_kind import LOAD, ArtifactKind
from aotc.artifacts import MANIFEST, ArtifactFile, needed_for
from aotc.building.build import Build, Printer
from aotc.building.results import Described, Loaded
from aotc.cache.builds import BuildCache, FoundBuild
from aotc.errors import InputError
from aotc.owner import PROCESS
from aotc.processes.fork_server import FORK_SERVER
from aotc.processes.record import Step, note_step
from aotc.request import BuildRequest
from aotc.stages.schedule import Made, Schedule, Stage
from aotc.toolchain import Runner, Toolchain
from aotc.warnings import raise_errors


class Observer(Protocol):
    """Receives the start and end of each stage, in order: timing, saving and progress.

    A concurrent stage is reported when another stage first waits for it, and when it has ended.
    """

    def stage_started(self, name: str) -> None: ...

    def stage_finished(
        self, name: str, artifacts: Sequence[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        """`seconds`: start and end of the stage, by `time.perf_counter`."""


class Built(Struct, frozen=True):
    """The result of a build: the requested files, and the text of its manifest, if one was made."""

    files: tuple[ArtifactFile, ...]
    manifest: str | None = None


def stages_for(kinds: Iterable[ArtifactKind]) -> tuple[Stage, ...]:
    """The stages that are needed to make `kinds`, including all their inputs, in order."""
    return tuple(
        Stage(
            kind.name,
            tuple(taken.name for taken in kind.takes),
            _late(kind.stage),
            tuple(taken.name for taken in kind.may_take),
            tuple(taken.name for taken in kind.of_targets),
            kind.is_concurrent,
            None if kind.begin is None else _late(kind.begin),
        )
        for kind in needed_for(kinds)
    )


def _late(function: str) -> Callable[..., Any]:
    """A function that imports a stage's module when it is called. Builds that end before the stage
    do not import it; the others import it while tools run."""
    module, _, name = function.rpartition(".")

    def call(*inputs: Any) -> Any:
        return getattr(importlib.import_module(f"aotc.{module}"), name)(*inputs)

    return call


def new_build(
    request: BuildRequest,
    folder: Path,
    *,
    tools: Mapping[str, Path] | None = None,
    watch_commands: Callable[[str], None] | None = None,
    jobs: int | None = None,
    cache: BuildCache | None = None,
    content: bytes | None = None,
    recorder: Printer | None = None,
) -> Build:
    """A build that has not started. Its files will be in `folder`, which the caller removes.

    `tools` maps names to programs to use instead of the installed ones. `watch_commands` is called
    with each command line as it runs. `jobs` is the number of commands that run at once (default:
    the number of cores). `content` are the input's bytes, if they were already read. `recorder` is
    called with the module after each pass, with places in the input.
    """
    context = mlir.make_context()
    if PROCESS.is_ours:
        FORK_SERVER.begin(context)  # before any thread is started
    toolchain = Toolchain(os.environ, tools or {})
    if PROCESS.is_ours and request.makes_code:
        toolchain.expect_clang()
    printer = recorder
    if request.print_ir.is_on:
        from aotc.stages.print_ir import IrPrinter

        printer = IrPrinter(request, context)
    return Build(
        request=request,
        toolchain=toolchain,
        runner=Runner(
            os.environ,
            observer=watch_commands,
            jobs=jobs,
            cache=None if cache is None else cache.tools,
        ),
        folder=folder,
        context=context,
        content=content,
        cache=cache,
        printer=printer,
        keeps_places=recorder is not None,
    )


def run_build(build: Build, observers: Sequence[Observer] = ()) -> Built:
    """Runs the stages that the request needs; returns the requested artifacts.

    Concurrent stages run one after the other in a thread. The failure that is raised, and the order
    of observers and warnings, do not depend on timing.
    """
    wanted: list[ArtifactFile] = []
    warnings, options = build.log.warnings, build.request.warnings

    def started(stage: Stage) -> None:
        name = f"the stage '{stage.name}' of {build.request.source}"
        note_step(Step(name, reads_input=not stage.takes))
        for observer in observers:
            observer.stage_started(stage.name)

    def ended(stage: Stage, made: Made) -> None:
        raise_errors(warnings, options)
        for observer in observers:
            observer.stage_finished(stage.name, made.result.files, made.seconds)
        wanted.extend(file for file in made.result.files if file.kind in build.request.emit)

    with Schedule(build, started, ended) as schedule:
        for stage in stages_for(build.request.emit):
            schedule.run(stage)
            if stage.name == LOAD.name:
                found = _find_module(build, cast(Loaded, schedule.results[LOAD.name]), observers)
                if found is not None:
                    return found
        schedule.end_all()
    missing = [
        kind.name for kind in build.request.emit if not any(file.kind is kind for file in wanted)
    ]
    if missing:
        raise InputError(
            f"Nothing to emit for {', '.join(missing)}: {build.request.source} has no kernel."
        )
    described = cast(Described | None, schedule.results.get(MANIFEST.name))
    manifest = None if described is None else described.text
    if build.cache is not None:
        explanation = build.log.explanation
        text = None if explanation is None else explanation.text()
        build.cache.keep(FoundBuild(tuple(wanted), tuple(warnings), manifest, text))
    return Built(tuple(wanted), manifest)


def _find_module(build: Build, loaded: Loaded, observers: Sequence[Observer]) -> Built | None:
    """The artifacts of an earlier build of the same module, if the cache has them."""
    if build.cache is None:
        return None
    for observer in observers:
        observer.stage_started("cache")
    begin = time.perf_counter()
    found = build.cache.find_module(loaded.source.module, loaded.input_size)
    files = found.files if found is not None else ()
    for observer in observers:
        observer.stage_finished("cache", files, (begin, time.perf_counter()))
    if found is None:
        return None
    build.log.warnings[:] = found.warnings
    raise_errors(build.log.warnings, build.request.warnings)
    return Built(files, found.manifest)
