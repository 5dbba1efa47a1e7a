"""The stages of a build, in order, as data.

A stage takes what stages before it made and makes artifacts of one kind, named alike
everywhere: `--emit NAME` stops there, `--save-temps` writes them, the time report lists them.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aotc import mlir
from aotc.errors import InputError
from aotc.processes.fork_server import FORK_SERVER
from aotc.processes.owner import PROCESS
from aotc.processes.record import Step, note_step
from aotc.request import BuildRequest, EmitKind
from aotc.stages.build import Build, Stage
from aotc.stages.file import StageFile
from aotc.stages.schedule import Made, SideBySide
from aotc.toolchain import Runner, Toolchain
from aotc.warnings import raise_errors

if TYPE_CHECKING:
    from aotc.cache.builds import BuildCache


class Observer(Protocol):
    """Told of stages, in their order; timing, saving and progress are observers.

    A stage that runs beside others is told of when it begins, and when it has been waited for.
    """

    def stage_started(self, name: str) -> None: ...

    def stage_finished(
        self, name: str, artifacts: Sequence[StageFile], seconds: tuple[float, float]
    ) -> None:
        """`seconds`: when it began and ended, by `time.perf_counter`."""


def _late(module: str, function: str) -> Callable[[Build], Any]:
    """A stage's function, whose module is loaded when it is called: not for builds that end before
    it, and while tools run beside it for the others."""

    def call(build: Build) -> Any:
        return getattr(importlib.import_module(f"aotc.stages.{module}"), function)(build)

    return call


STAGES: tuple[Stage, ...] = (
    Stage("load", (), _late("module", "load")),
    Stage("mlir", ("load",), _late("module", "outline_module")),
    Stage("device-mlir", ("mlir",), _late("device", "lower_to_nvvm")),
    Stage(
        "device-ll",
        ("device-mlir",),
        _late("device", "translate_device"),
        beside=True,
        begin=_late("device", "begin_device"),
    ),
    Stage("ptx", ("device-ll",), _late("device", "compile_ptx"), beside=True),
    Stage("cubin", ("ptx",), _late("device", "assemble"), beside=True),
    Stage("fatbin", ("cubin",), _late("device", "bundle"), beside=True),
    Stage("cpu-mlir", ("mlir",), _late("cpu", "lower_to_cpu")),
    Stage("host-mlir", ("mlir",), _late("host", "lower_to_host")),
    Stage("cpu-obj", ("cpu-mlir",), _late("cpu", "compile_cpu")),
    # The manifest names the file.
    Stage("weights", ("host-mlir",), _late("weights", "take")),
    # What ptxas says of each kernel is part of it.
    Stage("manifest", ("cubin", "cpu-mlir"), _late("manifest", "describe")),
    Stage("header", ("manifest",), _late("library", "declare")),
    Stage("package", ("manifest",), _late("library", "package")),
    Stage(
        "host-ll", ("host-mlir", "fatbin", "cpu-mlir", "manifest"), _late("host", "translate_host")
    ),
    Stage("asm", ("host-ll",), _late("host", "compile_asm")),
    Stage("obj", ("host-ll", "cpu-obj"), _late("host", "compile_object")),
    Stage("static", ("obj", "manifest"), _late("library", "link_static")),
    Stage("shared", ("obj", "manifest"), _late("library", "link_shared")),
    Stage("exe", ("obj", "manifest"), _late("host", "link_executable")),
)


def stages_for(kinds: Iterable[EmitKind]) -> tuple[Stage, ...]:
    """The stages that make `kinds`, with all that they take, in order."""
    by_name = {stage.name: stage for stage in STAGES}
    needed: set[str] = set()
    pending = [kind.value for kind in kinds]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending.extend(by_name[name].takes)
    return tuple(stage for stage in STAGES if stage.name in needed)


def new_build(
    request: BuildRequest,
    folder: Path,
    *,
    tools: Mapping[str, Path] | None = None,
    watch_commands: Callable[[str], None] | None = None,
    jobs: int | None = None,
    cache: BuildCache | None = None,
    content: bytes | None = None,
) -> Build:
    """A build that has not begun; its files will be in `folder`, which the caller removes.

    `tools` are those to use in place of the installed ones, by name; `watch_commands` is given
    each command line as it runs; `jobs` is how many of them run at a time (default: the cores);
    `content` are the input's bytes, if they were read.
    """
    context = mlir.make_context()
    if PROCESS.is_ours:
        FORK_SERVER.begin(context)  # before there are threads
    toolchain = Toolchain(os.environ, tools or {})
    if PROCESS.is_ours and request.makes_code:
        toolchain.expect_clang()
    printer = None
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
    )


def run_build(build: Build, observers: Sequence[Observer] = ()) -> list[StageFile]:
    """Runs the stages that the request asks for; the artifacts that it asks for.

    Stages that may run beside others do, one after the other in a thread. Which failure is raised,
    and in which order observers and warnings come, does not depend on who was faster.
    """
    stages = stages_for(build.request.emit)
    wanted: list[StageFile] = []

    def started(stage: Stage) -> None:
        name = f"the stage '{stage.name}' of {build.request.source}"
        note_step(Step(name, reads_input=not stage.takes))
        for observer in observers:
            observer.stage_started(stage.name)

    def ended(stage: Stage, made: Made) -> None:
        raise_errors(build.warnings, build.request.warnings)
        for observer in observers:
            observer.stage_finished(stage.name, made.artifacts, made.seconds)
        wanted.extend(file for file in made.artifacts if file.kind in build.request.emit)

    with SideBySide(build, started, ended) as running:
        for stage in stages:
            if not stage.beside:  # those are one after the other in any case
                running.await_all(stage.takes)
            running.run(stage)
            if stage.name == "load" and (found := _find_module(build, observers)) is not None:
                return found
        running.end_all()
    missing = [
        kind.value
        for kind in build.request.emit
        if not any(artifact.kind is kind for artifact in wanted)
    ]
    if missing:
        raise InputError(
            f"Nothing to emit for {', '.join(missing)}: {build.request.source} has no kernel."
        )
    if build.cache is not None:
        build.cache.keep(build, wanted)
    return wanted


def _find_module(build: Build, observers: Sequence[Observer]) -> list[StageFile] | None:
    """The artifacts that were made of the same module before, if the cache has them."""
    if build.cache is None:
        return None
    for observer in observers:
        observer.stage_started("cache")
    begin = time.perf_counter()
    found = build.cache.find_module(build)
    files = list(found.files) if found is not None else []
    for observer in observers:
        observer.stage_finished("cache", files, (begin, time.perf_counter()))
    if found is None:
        return None
    build.warnings[:] = found.warnings
    build.manifest_text = found.manifest
    raise_errors(build.warnings, build.request.warnings)
    return files
