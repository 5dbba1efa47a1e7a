"""The stages of a build, in order, as data.

A stage takes what stages before it made and makes artifacts of one kind, named alike
everywhere: `--emit NAME` stops there, `--save-temps` writes them, the time report lists them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from aotc import mlir
from aotc.errors import InputError
from aotc.request import BuildRequest, EmitKind
from aotc.stages import device, host, library, manifest, module
from aotc.stages.build import Build, Stage, StageFile
from aotc.toolchain import Runner, Toolchain
from aotc.warnings import raise_errors


class Observer(Protocol):
    """Told between stages; timing, saving and progress are observers."""

    def stage_started(self, name: str) -> None: ...

    def stage_finished(self, name: str, artifacts: Sequence[StageFile]) -> None: ...


STAGES: tuple[Stage, ...] = (
    Stage("load", (), module.load),
    Stage("mlir", ("load",), module.outline_module),
    Stage("device-mlir", ("mlir",), device.lower_to_nvvm),
    Stage("device-ll", ("device-mlir",), device.translate_device),
    Stage("ptx", ("device-ll",), device.compile_ptx),
    Stage("cubin", ("ptx",), device.assemble),
    Stage("fatbin", ("cubin",), device.bundle),
    Stage("cpu-mlir", ("mlir",), module.lower_to_cpu),
    Stage("host-mlir", ("mlir",), module.lower_to_host),
    # What ptxas says of each kernel is part of it.
    Stage("manifest", ("cubin", "cpu-mlir"), manifest.describe),
    Stage("header", ("manifest",), library.declare),
    Stage("package", ("manifest",), library.package),
    Stage("host-ll", ("host-mlir", "fatbin", "cpu-mlir", "manifest"), host.translate_host),
    Stage("asm", ("host-ll",), host.compile_asm),
    Stage("obj", ("host-ll",), host.compile_object),
    Stage("static", ("obj", "manifest"), library.link_static),
    Stage("shared", ("obj", "manifest"), library.link_shared),
    Stage("exe", ("obj", "manifest"), host.link_executable),
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
) -> Build:
    """A build that has not begun; its files will be in `folder`, which the caller removes.

    `tools` are those to use in place of the installed ones, by name; `watch_commands` is given
    each command line as it runs.
    """
    return Build(
        request=request,
        toolchain=Toolchain(os.environ, tools or {}),
        runner=Runner(os.environ, observer=watch_commands),
        folder=folder,
        context=mlir.make_context(),
    )


def run_build(build: Build, observers: Sequence[Observer] = ()) -> list[StageFile]:
    """Runs the stages that the request asks for; the artifacts that it asks for."""
    wanted: list[StageFile] = []
    for stage in stages_for(build.request.emit):
        for observer in observers:
            observer.stage_started(stage.name)
        artifacts = stage.run(build)
        raise_errors(build.warnings, build.request.warnings)
        for observer in observers:
            observer.stage_finished(stage.name, artifacts)
        wanted += [artifact for artifact in artifacts if artifact.kind in build.request.emit]
    missing = [
        kind.value
        for kind in build.request.emit
        if not any(artifact.kind is kind for artifact in wanted)
    ]
    if missing:
        raise InputError(
            f"Nothing to emit for {', '.join(missing)}: {build.request.source} has no kernel."
        )
    return wanted
