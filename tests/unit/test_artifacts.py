"""The table of artifact kinds: a new kind is one row and one function of a stage."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pickle
import re
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from helpers.command import REPOSITORY, SAMPLES, process_environment

import aotc
from aotc.artifact_kind import MLIR, ArtifactKind
from aotc.artifacts import (
    HEADER,
    HOST_LL,
    KINDS,
    MANIFEST,
    OBJ,
    PACKAGE,
    SHARED,
    STATIC,
    named_kinds,
)
from aotc.building import results
from aotc.building.build import Build
from aotc.building.results import HostCode, KernelCode, KernelObjects, Objects, StageResult
from aotc.delivery import known_outputs
from aotc.errors import InputError
from aotc.request_words import make_request
from aotc.targets.cuda import results as cuda_results
from aotc.targets.cuda.artifacts import PTX
from aotc.targets.cuda.results import CompiledPtx

SAMPLE = SAMPLES / "vector_add.mlir"


def _function(name: str) -> Callable[..., StageResult]:
    module, _, function = name.rpartition(".")
    found: Callable[..., StageResult] = getattr(importlib.import_module(f"aotc.{module}"), function)
    return found


def _types(function: Callable[..., object]) -> tuple[list[object], type]:
    """Those of the parameters, and of what it returns."""
    hints = typing.get_type_hints(function)
    returned = hints.pop("return")
    return [hints[name] for name in inspect.signature(function).parameters], returned


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_stage_is_a_function_of_the_results_that_it_takes(kind: ArtifactKind) -> None:
    """Its parameters have the types that the stages of its row return; a checker of types does not
    see that, because the table names functions by text."""
    expected: list[object] = [Build]
    expected += [_types(_function(taken.stage))[1] for taken in kind.takes]
    expected += [_types(_function(taken.stage))[1] | None for taken in kind.may_take]
    if kind.of_targets:
        common = KernelObjects if kind is OBJ else KernelCode
        expected.append(tuple[common, ...])
        for taken in kind.of_targets:
            assert issubclass(_types(_function(taken.stage))[1], common)
    if kind.begin is not None:
        parameters, begun = _types(_function(kind.begin))
        assert parameters == expected
        expected.append(begun)
    parameters, result = _types(_function(kind.stage))
    assert parameters == expected
    assert issubclass(result, StageResult)


def test_a_result_cannot_be_changed() -> None:
    for module in (results, cuda_results):
        for name, value in vars(module).items():
            if inspect.isclass(value) and value.__module__ == module.__name__:
                assert value.__struct_config__.frozen, name


def test_a_kind_is_the_row_of_its_name_in_another_process() -> None:
    for kind in KINDS.values():
        assert pickle.loads(pickle.dumps(kind)) is kind


def test_the_documentation_lists_every_kind() -> None:
    table = (
        (REPOSITORY / "docs" / "build.md")
        .read_text()
        .split("| `--emit` | what |")[1]
        .split("\n\n")[0]
    )
    listed = re.findall(r"\| `([a-z-]+)`", table)
    assert sorted(listed) == sorted(kind.name for kind in named_kinds())


@pytest.mark.parametrize("kind", [SHARED, STATIC, HEADER, MANIFEST, PACKAGE], ids=str)
def test_cmake_knows_the_paths_of_a_package(kind: ArtifactKind) -> None:
    text = (REPOSITORY / "aotc" / "cmake" / "aotcConfig.cmake").read_text()
    for path in kind.paths(library="${name}"):
        assert f'"${{package}}/{path}"' in text


# --- A kind that aotc does not have ----------------------------------------------------


def _count_lines(build: Build, host: HostCode) -> StageResult:
    assert host.whole is not None
    lines = (build.folder / host.whole).read_text().count("\n")
    return StageResult(files=build.texts(KINDS["line-count"], f"{lines}\n"))


def _hash_objects(build: Build, objects: Objects) -> StageResult:
    digest = hashlib.sha256()
    for file in objects.module:
        digest.update((build.folder / file).read_bytes())
    (build.folder / "it.hash").write_bytes(digest.digest())
    return StageResult(files=(build.file(KINDS["object-hash"], "it.hash"),))


def _shorten(build: Build, ptx: CompiledPtx) -> StageResult:
    files = []
    for (_, chip), original in zip(ptx.images, ptx.files, strict=True):
        file = build.write(f"{original.file_name}.short", f"{len(original.content())}\n")
        gpu_module = original.file_name.removesuffix(f".{chip.name}.ptx")
        words = {"gpu_module": gpu_module, "chip": chip.name}
        files.append(build.file(KINDS["short-ptx"], file, **words))
    return StageResult(files=tuple(files))


ROWS = (
    ArtifactKind("line-count", "stages.made_up.count", ("{name}.lines",), takes=(HOST_LL,)),
    ArtifactKind(
        "object-hash", "stages.made_up.hash", ("hashes/{library}.bin",), takes=(OBJ,), is_text=False
    ),
    ArtifactKind(
        "short-ptx",
        "stages.made_up.shorten",
        ("{gpu_module}.{chip}.short",),
        takes=(PTX,),
        is_concurrent=True,
        needs="module",
    ),
)


def _add_rows(
    setitem: Callable[[dict[str, ArtifactKind], str, ArtifactKind], None],
) -> ModuleType:
    for row in ROWS:
        setitem(KINDS, row.name, row)
    module = ModuleType("aotc.stages.made_up")
    vars(module).update(count=_count_lines, hash=_hash_objects, shorten=_shorten)
    return module


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three kinds more: a text, a file of bytes that needs objects, and one for each image."""
    monkeypatch.setitem(sys.modules, "aotc.stages.made_up", _add_rows(monkeypatch.setitem))


@pytest.mark.usefixtures("made_up")
def test_a_new_kind_is_built(tmp_path: Path) -> None:
    """By its row and its function alone: with its files' names, by a cache, with others."""
    options = {"chips": "sm_80,sm_90", "cache": tmp_path / "cache"}
    kinds = ["host-ll", "ptx", *(row.name for row in ROWS)]
    made = aotc.build(SAMPLE, emit=kinds, out=f"{tmp_path}/out/", **options)
    files = {name: [file.name for file in made.files[name]] for name in kinds}
    assert files["line-count"] == ["vector_add.lines"]
    assert files["object-hash"] == ["vector_add.bin"]
    assert files["short-ptx"] == [
        "vector_add_kernels.sm_80.short",
        "vector_add_kernels.sm_90.short",
    ]
    lines = made.paths["host-ll"].read_text().count("\n")
    assert made.paths["line-count"].read_text() == f"{lines}\n"
    assert len(made.paths["object-hash"].read_bytes()) == 32
    size = made.paths["ptx"].stat().st_size
    assert made.paths["short-ptx"].read_text() == f"{size}\n"
    again = aotc.build(SAMPLE, emit=kinds, out=f"{tmp_path}/again/", **options)
    assert list(again.times) == ["cache"]
    for kind in kinds:
        assert again.paths[kind].read_bytes() == made.paths[kind].read_bytes()


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_new_kind_is_built_alone(row: ArtifactKind, tmp_path: Path) -> None:
    """What its stage takes is made, and nothing else; --save-temps has it, too."""
    temps = tmp_path / "temps"
    made = aotc.build(
        SAMPLE, emit=row.name, out=tmp_path / "file", chips="sm_80", save_temps=temps, cache=False
    )
    assert (tmp_path / "file").read_bytes()
    (saved,) = temps.glob(f"*-{row.name}.*")
    assert saved.read_bytes() == (tmp_path / "file").read_bytes()
    assert list(made.times)[-1] == row.name


@pytest.mark.usefixtures("made_up")
def test_a_new_kind_is_known_before_it_is_built(tmp_path: Path) -> None:
    def outputs(kind: str) -> list[str]:
        request = make_request(SAMPLE, emit=[kind, "shared"], out=f"{tmp_path}/")
        return [str(path.relative_to(tmp_path)) for path in known_outputs(request)]

    assert outputs("line-count")[0] == "vector_add.lines"
    assert outputs("object-hash")[0] == "hashes/vector_add.bin"
    assert outputs("short-ptx")[0] == "vector_add.short"
    with pytest.raises(InputError, match="line-count"):
        make_request(SAMPLE, emit=["line-counts"])


@pytest.mark.usefixtures("made_up")
def test_what_a_new_kind_needs_is_checked(tmp_path: Path) -> None:
    """By its row: a module of kernels has what needs no entry."""
    kernels = (
        "module attributes {gpu.container_module} { gpu.module @k {\n"
        "  gpu.func @f(%a: memref<4xf32>) kernel { gpu.return }\n} }\n"
    )
    for kind in (MLIR, KINDS["short-ptx"]):
        out = tmp_path / kind.name
        aotc.build(kernels, emit=kind.name, out=out, chips="sm_80", cache=False)
        assert out.read_bytes()
    with pytest.raises(InputError, match="Nothing to export"):
        aotc.build(kernels, emit="line-count", out=tmp_path / "none", cache=False)


COMMAND = """
import sys
from aotc.artifacts import KINDS
from unit.test_artifacts import _add_rows
sys.modules["aotc.stages.made_up"] = _add_rows(dict.__setitem__)
from aotc.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_command_knows_a_new_kind() -> None:
    """Its help has it, and its text goes to standard output."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        path = {"PYTHONPATH": f"{REPOSITORY}/tests:{REPOSITORY}"}
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *map(str, arguments)],
            env=process_environment(path),
            capture_output=True,
            text=True,
            check=False,
        )

    listed = "".join(run("build", "-h").stdout.split())  # which breaks lines at hyphens
    assert "Artifactstomake:short-ptx,object-hash,line-count,exe,shared" in listed
    build = ("build", SAMPLE, "--chip", "sm_80", "-o", "-", "--emit")
    assert run(*build, "line-count").stdout.strip().isdigit()
    refused = run(*build, "object-hash")
    assert (refused.returncode, refused.stderr) == (
        2,
        "aotc: error: -o - is for text, and object-hash is not: name a file.\n",
    )
