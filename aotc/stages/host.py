"""Stages from the host's half, with the images inside, to an object and an executable."""

from __future__ import annotations

from pathlib import Path

from aotc.emit.table import generate_table
from aotc.host.constants import describe, take_large_constants, write_constants
from aotc.host.embed import embed
from aotc.host.translate import translate
from aotc.manifest import built_for_text
from aotc.request import EmitKind
from aotc.stages.build import Build, StageFile
from aotc.toolchain import (
    data_dir,
    harness_objects,
    runtime_library,
    utilities_library,
)


def translate_host(build: Build) -> list[StageFile]:
    assert build.manifest is not None
    images = {name: (build.folder / file).read_bytes() for name, file in build.fatbins.items()}
    embed(
        build.host.operation,
        images,
        build.cpu,
        build.entries,
        built_for={name: built_for_text(build.built_for(name)) for name in images},
        managed_globals=build.managed_globals,
        lowered_entries=build.lowered_entries,
    )
    build.constants = take_large_constants(build.host.operation)
    texts = [kind.value for kind in (EmitKind.HOST_LL, EmitKind.ASM) if kind in build.request.emit]
    if build.constants and texts:
        build.warn(
            "constants-left-out",
            f"{' and '.join(texts)} only declares {describe(build.constants)}: large constants "
            "are not written as text. --emit obj has them.",
        )
    file = build.write(_host_ll_name(build), build.downlevel(translate(build.host)))
    return [build.file(EmitKind.HOST_LL, file, called=f"{build.request.name}.ll")]


def _host_ll_name(build: Build) -> str:
    return f"{build.stem}.ll"


def compile_asm(build: Build) -> list[StageFile]:
    file = f"{build.stem}.s"
    build.host_compiler.compile_ir(_host_ll_name(build), file, assembly=True)
    return [build.file(EmitKind.ASM, file, called=f"{build.request.name}.s")]


def object_name(build: Build) -> str:
    return f"{build.stem}.o"


def compile_object(build: Build) -> list[StageFile]:
    file = object_name(build)
    if not build.constants:
        build.host_compiler.compile_ir(_host_ll_name(build), file)
    else:
        code, data = f"{build.stem}.code.o", f"{build.stem}.constants.o"
        build.host_compiler.compile_ir(_host_ll_name(build), code)
        write_constants(build.constants, build.request.target.architecture, build.folder / data)
        build.linker.join([code, data], file, hide={c.symbol for c in build.constants})
    return [build.file(EmitKind.OBJ, file, called=f"{build.request.name}.o")]


def compile_generated(build: Build, name: str, text: str, *options: str) -> str:
    """A generated C file → its object, which is named."""
    build.write(name, text)
    includes = (data_dir("templates") / "harness", data_dir("runtime_c") / "include")
    output = f"{Path(name).stem}.o"
    build.host_compiler.compile_c(name, output, includes=includes, options=options)
    return output


def link_executable(build: Build) -> list[StageFile]:
    assert build.manifest is not None
    triple = build.request.target.triple
    harness = harness_objects(build.toolchain, build.runner, triple, program_main=build.is_program)
    objects: list[str | Path] = [object_name(build), *harness]
    if not build.is_program:
        objects.append(compile_generated(build, *generate_table(build.manifest)))
    file = f"{build.stem}.exe"
    runtime = runtime_library(build.toolchain, build.runner, triple, kind="static")
    utilities = utilities_library(build.toolchain, build.runner, triple)
    build.linker.link_executable(objects, runtime, utilities, file)
    return [build.file(EmitKind.EXE, file, called=build.request.name)]
