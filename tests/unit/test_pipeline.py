"""The stages as data, and that a build runs those that it needs and no more."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, SAMPLES, process_environment

from aotc import mlir
from aotc.artifact_kind import MLIR, ArtifactKind
from aotc.artifacts import HOST_MLIR, KINDS, ArtifactFile
from aotc.building.build import Build
from aotc.errors import InputError, ToolError
from aotc.pipeline import run_build, stages_for
from aotc.request import BuildRequest, Chip
from aotc.targets.cuda.artifacts import DEVICE_MLIR, PTX
from aotc.toolchain import RecordingRunner, Toolchain
from aotc.toolchain.tools import TOOL_NAMES

IMPORT_EACH = """
import importlib, os, sys, traceback
import aotc.mlir  # the bindings: they cost most of the time
failed = []
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        failed.append(name)
print(len(sys.argv) - 1, *failed)
"""


@pytest.mark.exhaustive
def test_every_module_can_be_imported_first() -> None:
    """No module needs another to have been imported before it."""
    modules = sorted(
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
        for path in (REPOSITORY / "aotc").rglob("*.py")
        if path.name != "__main__.py" and "_data" not in path.parts
    )
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, *modules],
        env=process_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(len(modules))], done.stderr


def test_a_stage_takes_what_stages_before_it_make() -> None:
    made: set[str] = set()
    for stage in stages_for(KINDS.values()):
        assert set(stage.takes) <= made, stage.name
        made.add(stage.name)


@pytest.mark.parametrize(
    ("kind", "stages"),
    [
        ("mlir", ["load", "mlir"]),
        ("ptx", ["load", "mlir", "device-mlir", "device-ll", "ptx"]),
        ("host-mlir", ["load", "mlir", "host-mlir"]),
        ("cpu-mlir", ["load", "mlir", "cpu-mlir"]),
    ],
)
def test_a_kind_needs_its_own_stages_alone(kind: str, stages: list[str]) -> None:
    assert [stage.name for stage in stages_for([KINDS[kind]])] == stages


def test_every_kind_can_be_made() -> None:
    for kind in KINDS.values():
        assert stages_for([kind])[-1].name == kind.name
    assert [stage.name for stage in stages_for(KINDS.values())] == list(KINDS)


def test_every_stages_function_is_there() -> None:
    """They are looked up when they are called."""
    for kind in KINDS.values():
        for function in filter(None, (kind.stage, kind.begin)):
            module, _, name = function.rpartition(".")
            assert callable(getattr(importlib.import_module(f"aotc.{module}"), name))


def test_a_build_loads_what_its_stages_need_alone() -> None:
    program = (
        "import sys, aotc\n"
        f"aotc.build({str(SAMPLES / 'saxpy.mlir')!r}, emit='mlir', out=sys.argv[1])\n"
        "print(*(name for name in sys.modules if name.startswith('aotc.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "/dev/null"],
        env=process_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.split()
    assert "aotc.stages.module" in loaded
    absent = {
        "aotc.emit.header",
        "aotc.stages.host",
        "aotc.targets.cuda.stages",
        "aotc.frontends.torch",
    }
    assert not absent & set(loaded)
    assert not [name for name in loaded if name.startswith("aotc.targets.cpu.blocks")]


class Recorder:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def stage_started(self, name: str) -> None:
        self.events.append(f"{name} started")

    def stage_finished(
        self, name: str, artifacts: list[ArtifactFile], seconds: tuple[float, float]
    ) -> None:
        self.events.append(f"{name} made {[a.file_name for a in artifacts]}")


def _build(source: Path, folder: Path, *kinds: ArtifactKind) -> Build:
    """A build for which no tool is there, and whose runner runs nothing."""
    nowhere = {name: Path("/nowhere") / name for name in TOOL_NAMES}
    return Build(
        request=BuildRequest(source, emit=kinds, chips=(Chip("sm_80"),), ptx=None),
        toolchain=Toolchain({}, nowhere),
        runner=RecordingRunner(),
        folder=folder,
        context=mlir.make_context(),
    )


def test_observers_are_told_between_stages(tmp_path: Path) -> None:
    recorder = Recorder()
    build = _build(SAMPLES / "vector_add.mlir", tmp_path, MLIR)
    (artifact,) = run_build(build, [recorder]).files
    assert recorder.events == [
        "load started",
        "load made []",
        "mlir started",
        "mlir made ['vector_add.gpu.mlir']",
    ]
    assert artifact.kind is MLIR


@pytest.mark.parametrize("kind", [MLIR, DEVICE_MLIR, HOST_MLIR])
def test_mlir_needs_no_tool(kind: ArtifactKind, tmp_path: Path) -> None:
    """Neither run nor looked for."""
    build = _build(SAMPLES / "matmul.mlir", tmp_path, kind)
    assert run_build(build).files
    assert isinstance(build.runner, RecordingRunner)
    assert build.runner.commands == []


def test_a_tool_is_missing_when_it_is_needed(tmp_path: Path) -> None:
    recorder = Recorder()
    with pytest.raises(ToolError, match="clang, which does not exist"):
        run_build(_build(SAMPLES / "matmul.mlir", tmp_path, PTX), [recorder])
    assert "device-mlir started" in recorder.events
    assert "ptx started" not in recorder.events


def test_a_kind_that_a_module_cannot_have(tmp_path: Path) -> None:
    source = tmp_path / "host.mlir"
    source.write_text("func.func @f() attributes {llvm.emit_c_interface} { return }\n")
    with pytest.raises(InputError, match=r"Nothing to emit for device-mlir: .* has no kernel"):
        run_build(_build(source, tmp_path, DEVICE_MLIR, MLIR))


def test_an_artifact_is_as_it_was_when_it_was_made(tmp_path: Path) -> None:
    """Later stages change the module; what was printed before stays."""
    alone = run_build(_build(SAMPLES / "normalize.mlir", tmp_path, MLIR)).files
    both = run_build(_build(SAMPLES / "normalize.mlir", tmp_path, MLIR, HOST_MLIR)).files
    assert alone[0].content() == both[0].content()
