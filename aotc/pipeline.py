"""Runs the stages of a build in the order of `aotc.artifacts.KINDS`.

A stage takes the results of stages before it and makes artifacts of one kind, named alike
everywhere: `--emit NAME` stops there, `--save-temps` writes them, the time report lists them.
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
    """Told of stages, in their order; timing, saving and progress are observers.

    A concurrent stage is told of when it is first waited for, and when it has ended.
    """

    def stage_started(self, name: str) -> None: ...

    def stage_finished(
        self, name: str, artifacts: Sequence[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        """`seconds`: when it began and ended, by `time.perf_counter`."""


class Built(Struct, frozen=True):
    """What a build hands out: the files that were asked for, and the text of its manifest, if it
    came to that."""

    files: tuple[ArtifactFile, ...]
    manifest: str | None = None


def stages_for(kinds: Iterable[ArtifactKind]) -> tuple[Stage, ...]:
    """The stages that make `kinds`, with all that they take, in order."""
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
    """A stage's function, whose module is loaded when it is called: not for builds that end before
    it, and while tools run for the others."""
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
    """A build that has not begun; its files will be in `folder`, which the caller removes.

    `tools` are those to use in place of the installed ones, by name; `watch_commands` is given
    each command line as it runs; `jobs` is how many of them run at a time (default: the cores);
    `content` are the input's bytes, if they were read. `recorder` is told of the module after each
    pass, with places in the input.
    """
    context = mlir.make_context()
    if PROCESS.is_ours:
        FORK_SERVER.begin(context)  # before there are threads
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
    """Runs the stages that the request asks for; the artifacts that it asks for.

    Concurrent stages run one after the other in a thread. Which failure is raised, and in which
    order observers and warnings come, does not depend on who was faster.
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
    """The artifacts that were made of the same module before, if the cache has them."""
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
