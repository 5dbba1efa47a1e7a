"""Stages that make a library: header, package, static and shared."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from aotc.artifacts import HEADER, PACKAGE, SHARED, STATIC, ArtifactFile
from aotc.emit.header import generate_header
from aotc.emit.names import exported_functions
from aotc.emit.package import generate_package
from aotc.errors import InputError
from aotc.stages.build import Build
from aotc.stages.glue import library_object
from aotc.toolchain import (
    runtime_library,
    utilities_library,
)


def declare(build: Build) -> list[ArtifactFile]:
    assert build.manifest is not None
    _require_entries(build, "a header")
    exported_functions(build.manifest)
    _, text = generate_header(build.manifest)
    return build.texts(HEADER, text)


def package(build: Build) -> list[ArtifactFile]:
    assert build.manifest is not None
    _require_entries(build, "a package")
    texts = generate_package(
        build.manifest,
        has_shared=SHARED in build.request.emit,
        shares_runtime=build.request.shares_runtime,
    )
    return build.texts(PACKAGE, *texts)


def link_static(build: Build) -> list[ArtifactFile]:
    _require_entries(build, "a static library")
    file = f"lib{build.request.library}.a"
    objects = [*build.objects, library_object(build)]
    runtime = None if build.request.shares_runtime else _runtime(build)
    build.linker.archive(objects, runtime, _utilities(build), file, _exports(build))
    made = [build.file(STATIC, file)]
    is_alone = SHARED not in build.request.emit
    return [*made, *(_shared_runtime(build) if is_alone else [])]


def link_shared(build: Build) -> list[ArtifactFile]:
    _require_entries(build, "a shared library")
    file = f"lib{build.request.library}.so"
    if build.request.shares_runtime and not build.request.names_folder:
        build.warn(
            "runtime-beside",
            "The library needs libmlir_cuda_runtime.so beside it: -o DIRECTORY/ puts both there.",
        )
    objects = [*build.objects, library_object(build)]
    build.linker.link_shared(
        objects,
        _runtime(build),
        _utilities(build),
        file,
        _exports(build),
        soname=build.request.soname,
    )
    return [build.file(SHARED, file), *_shared_runtime(build)]


def _runtime(build: Build) -> Path:
    """The runtime of a library: a part of it, or a file beside it."""
    kind: Literal["static", "shared"] = "shared" if build.request.shares_runtime else "static"
    return runtime_library(build.toolchain, build.runner, build.request.target.triple, kind=kind)


def _utilities(build: Build) -> Path:
    return utilities_library(build.toolchain, build.runner, build.request.target.triple)


def _shared_runtime(build: Build) -> list[ArtifactFile]:
    """The runtime as a file beside the library, for those who want it so."""
    if not build.request.shares_runtime or not build.request.names_folder:
        return []
    runtime = _runtime(build)
    is_shared = SHARED in build.request.emit
    kind = SHARED if is_shared else STATIC
    return [ArtifactFile(kind, runtime.name, runtime.read_bytes, kind.folder)]


def _exports(build: Build) -> list[str]:
    """All that a library has for others."""
    assert build.manifest is not None
    return exported_functions(build.manifest)


def _require_entries(build: Build, what: str) -> None:
    if not build.entries:
        if SHARED in build.request.emit:
            what = "a shared library"
        elif STATIC in build.request.emit:
            what = "a static library"
        raise InputError(
            f"Nothing to export: {build.request.source} has a main of its own and no entry, so it "
            f"makes an executable, not {what}."
        )
