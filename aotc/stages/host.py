"""Stages of the host's half: MLIR, LLVM IR with the images inside, an object, an executable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aotc.cpu.units import kernel_symbols
from aotc.host.constants import (
    Constant,
    check_reach,
    describe,
    large_variables,
    take_large_constants,
    write_constants,
)
from aotc.host.elf import check_named_libraries
from aotc.host.embed import embed
from aotc.host.note import manifest_note
from aotc.lower.checks.host_assembly import check_host_assembly
from aotc.lower.host.lower import lower_host
from aotc.lower.leftovers import check_lowered
from aotc.manifest import built_for_text
from aotc.request import EmitKind
from aotc.stages.build import Build, printed
from aotc.stages.file import StageFile
from aotc.stages.glue import glue_for, table_object
from aotc.toolchain import (
    harness_objects,
    runtime_library,
    utilities_library,
)

_NO_GPU = -1  # a compute capability that none has


def lower_to_host(build: Build) -> list[StageFile]:
    assert build.source is not None
    build.host = lower_host(
        build.module, name=build.source.name, lines=build.lines, debug=build.request.debug
    )
    check_lowered(build.host, build.source, ("llvm", "gpu"), what="host code")
    if not build.request.allow_file_directives:
        check_host_assembly(build.source, build.host)
    name = f"{build.request.name}.host.mlir"
    return printed(build, EmitKind.HOST_MLIR, name, build.host.operation)


def translate_host(build: Build) -> list[StageFile]:
    """The LLVM IR of all host code, where it or its assembly is asked for; what objects are made of
    is without the kernels: see `aotc.stages.cpu.compile_cpu`."""
    images = {name: (build.folder / file).read_bytes() for name, file in build.fatbins.items()}
    # It is never loaded, but its address is what its kernels are registered under.
    images |= dict.fromkeys(build.cpu_alone, bytes(8))
    artifacts = []
    texts = [kind.value for kind in (EmitKind.HOST_LL, EmitKind.ASM) if kind in build.request.emit]
    if texts:
        whole = build.host.operation.clone() if build.request.makes_code else build.host.operation
        constants = _embed(build, whole, images, kernels_apart=False)
        if constants:
            build.warn(
                "constants-left-out",
                f"{' and '.join(texts)} only declares {describe(constants)}: large constants "
                "are not written as text. --emit obj has them.",
            )
        file = _translate(build, whole, _whole_name(build))
        artifacts.append(build.file(EmitKind.HOST_LL, file, called=f"{build.request.name}.ll"))
    if build.request.makes_code:
        build.constants += _embed(build, build.host.operation, images, kernels_apart=True)
        assert build.source is not None
        check_reach([*build.constants, *large_variables(build.host.operation)], build.source)
        file = _translate(build, build.host, _host_ll_name(build))
        if not texts:
            artifacts.append(build.file(EmitKind.HOST_LL, file))
    return artifacts


def _embed(
    build: Build, host: Any, images: Mapping[str, bytes], *, kernels_apart: bool
) -> list[Constant]:
    """What `host` lacks yet goes into it; the large constants that it only declares then."""
    embed(
        host,
        images,
        build.cpu,
        build.entries,
        built_for={name: built_for_text(build.built_for(name)) for name in images},
        managed_globals=build.managed_globals,
        lowered_entries=build.lowered_entries,
        weights=build.weights,
        only_capability={
            **{name: chip.capability for name, chip in build.only_for.items()},
            **dict.fromkeys(build.cpu_alone, _NO_GPU),
        },
        early_kernels=build.early_kernels,
        kernels_apart=kernels_apart,
    )
    return take_large_constants(host)


def _translate(build: Build, host: Any, file: str) -> str:
    assert build.manifest is not None
    return build.write(
        file, build.translated(build.translation(host)) + manifest_note(build.manifest)
    )


def _whole_name(build: Build) -> str:
    return f"{build.stem}.ll"


def _host_ll_name(build: Build) -> str:
    return f"{build.stem}.host.ll"


def compile_asm(build: Build) -> list[StageFile]:
    file = f"{build.stem}.s"
    build.host_compiler.compile_ir(_whole_name(build), file, assembly=True)
    return [build.file(EmitKind.ASM, file, called=f"{build.request.name}.s")]


def compile_object(build: Build) -> list[StageFile]:
    """The module's object; beside it, what the C is compiled to that is linked with it."""
    code, data = f"{build.stem}.host.o", f"{build.stem}.constants.o"
    tasks: list[Callable[[], object]] = [
        functools.partial(build.host_compiler.compile_ir, _host_ll_name(build), code)
    ]
    tasks += [functools.partial(make, build) for make in glue_for(build)]
    build.runner.in_parallel(tasks)
    if not build.request.allow_file_directives:
        check_named_libraries(build.folder / code)
    build.objects = [code, *build.cpu_objects]
    if build.constants:
        write_constants(build.constants, build.request.target.architecture, build.folder / data)
        build.objects.append(data)
    if EmitKind.OBJ not in build.request.emit:
        return []
    file = f"{build.stem}.o"
    assert build.cpu is not None
    shared = {*kernel_symbols(build.cpu), *(constant.symbol for constant in build.constants)}
    build.linker.join(build.objects, file, hide=shared)
    return [build.file(EmitKind.OBJ, file, called=f"{build.request.name}.o")]


def link_executable(build: Build) -> list[StageFile]:
    triple = build.request.target.triple
    harness = harness_objects(build.toolchain, build.runner, triple, program_main=build.is_program)
    objects: list[str | Path] = [*build.objects, *harness]
    if not build.is_program:
        objects.append(table_object(build))
    file = f"{build.stem}.exe"
    runtime = runtime_library(build.toolchain, build.runner, triple, kind="static")
    utilities = utilities_library(build.toolchain, build.runner, triple)
    build.linker.link_executable(objects, runtime, utilities, file)
    return [build.file(EmitKind.EXE, file, called=build.request.name)]
