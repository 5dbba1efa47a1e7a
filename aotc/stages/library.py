"""The stages that make a library: header, package, static and shared library."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import HEADER, PACKAGE, SHARED, STATIC, ArtifactFile
from aotc.building.build import Build
from aotc.building.results import Described, Objects, StageResult
from aotc.emit.header import generate_header
from aotc.emit.names import exported_functions
from aotc.emit.package import generate_package
from aotc.errors import InputError
from aotc.manifest import Manifest
from aotc.toolchain import runtime_library, utilities_library


def declare(build: Build, described: Described) -> StageResult:
    _require_entries(build, described.manifest, "a header")
    exported_functions(described.manifest)
    _, text = generate_header(described.manifest)
    return StageResult(files=build.texts(HEADER, text))


def package(build: Build, described: Described) -> StageResult:
    _require_entries(build, described.manifest, "a package")
    texts = generate_package(
        described.manifest,
        has_shared=SHARED in build.request.emit,
        shares_runtime=build.request.shares_runtime,
    )
    return StageResult(files=build.texts(PACKAGE, *texts))


def link_static(build: Build, objects: Objects, described: Described) -> StageResult:
    _require_entries(build, described.manifest, "a static library")
    file = f"lib{build.request.library}.a"
    runtime = None if build.request.shares_runtime else _runtime(build)
    exports = exported_functions(described.manifest)
    build.linker.archive(_linked(objects), runtime, _utilities(build), file, exports)
    is_alone = SHARED not in build.request.emit
    runtimes = _shared_runtime(build, STATIC) if is_alone else ()
    return StageResult(files=(build.file(STATIC, file), *runtimes))


def link_shared(build: Build, objects: Objects, described: Described) -> StageResult:
    _require_entries(build, described.manifest, "a shared library")
    file = f"lib{build.request.library}.so"
    if build.request.shares_runtime and not build.request.names_folder:
        build.warn(
            "runtime-beside",
            "The library needs libmlir_cuda_runtime.so beside it: -o DIRECTORY/ puts both there.",
        )
    build.linker.link_shared(
        _linked(objects),
        _runtime(build),
        _utilities(build),
        file,
        exported_functions(described.manifest),
        soname=build.request.soname,
    )
    return StageResult(files=(build.file(SHARED, file), *_shared_runtime(build, SHARED)))


def _linked(objects: Objects) -> list[str]:
    assert objects.library is not None
    return [*objects.module, objects.library]


def _runtime(build: Build) -> Path:
    """The runtime of a library: linked into it, or a file in the same folder."""
    kind: Literal["static", "shared"] = "shared" if build.request.shares_runtime else "static"
    return runtime_library(build.toolchain, build.runner, build.request.target.triple, kind=kind)


def _utilities(build: Build) -> Path:
    return utilities_library(build.toolchain, build.runner, build.request.target.triple)


def _shared_runtime(build: Build, kind: ArtifactKind) -> tuple[ArtifactFile, ...]:
    """The runtime as a file in the library's folder, if it is requested."""
    if not build.request.shares_runtime or not build.request.names_folder:
        return ()
    runtime = _runtime(build)
    return (ArtifactFile(kind, runtime.name, runtime.read_bytes, kind.folder),)


def _require_entries(build: Build, manifest: Manifest, what: str) -> None:
    if not manifest.entries:
        if SHARED in build.request.emit:
            what = "a shared library"
        elif STATIC in build.request.emit:
            what = "a static library"
        raise InputError(
            f"Nothing to export: {build.request.source} has a main of its own and no entry, so it "
            f"makes an executable, not {what}."
        )
