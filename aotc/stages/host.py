"""The stages of the host code: MLIR, LLVM IR with the images inside, an object, an executable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from aotc.analysis.legality import check_lowered
from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import ASM, EXE, HOST_LL, HOST_MLIR, OBJ, needed_for
from aotc.building.build import Build, translated
from aotc.building.results import (
    Described,
    DeviceImage,
    HostCode,
    HostModule,
    KernelCode,
    KernelObjects,
    Objects,
    Outlined,
    StageResult,
    TakenWeights,
    functions_of,
    images_of,
)
from aotc.emit.table import initial_symbol, weight_symbol
from aotc.host.constants import (
    LARGE,
    TEXT_LIMIT,
    Constant,
    check_reach,
    describe,
    drop_unused_variables,
    large_variables,
    take_large_constants,
    write_constants,
)
from aotc.host.elf import check_named_libraries
from aotc.host.embed import embed
from aotc.host.note import manifest_note
from aotc.lower.checks.host_assembly import check_host_assembly
from aotc.lower.host.lower import lower_host
from aotc.manifest import built_for_text
from aotc.stages.glue import library_object, table_object
from aotc.toolchain import harness_objects, runtime_library, utilities_library

_NO_GPU = -1  # a compute capability that no GPU has


def lower_to_host(build: Build, outlined: Outlined) -> HostModule:
    source = outlined.source
    host = lower_host(
        source.module,
        name=source.name,
        lines=source.lines,
        debug=build.has_host_lines,
        watch=build.watch("host-mlir"),
    )
    check_lowered(host, source, ("llvm", "gpu"), what="host code")
    if not build.request.allow_file_directives:
        check_host_assembly(source, host)
    return HostModule(host, files=build.printed(HOST_MLIR, host.operation))


def translate_host(
    build: Build,
    outlined: Outlined,
    host: HostModule,
    described: Described,
    weights: TakenWeights | None,
    code: tuple[KernelCode, ...],
) -> HostCode:
    """The LLVM IR of all host code, if it or its assembly is requested. Objects are made from code
    without the kernels: see `KernelObjects`."""

    def embedded(module: Any, *, kernels_apart: bool) -> list[Constant]:
        """Embeds images and tables into `module`; returns the large constants that it then only
        declares."""
        embed(
            module,
            content,
            functions_of(code),
            outlined.entries,
            built_for={image.name: built_for_text(image.built_for) for image in images},
            managed_globals=outlined.managed_globals,
            lowered_entries=outlined.lowered_entries,
            weights=None if weights is None else weights.file,
            only_capability={
                image.name: _NO_GPU if image.only_chip is None else image.only_chip.capability
                for image in images
                if image.file is None or image.only_chip is not None
            },
            pdl_kernels={image.name: image.pdl_kernels for image in images},
            initials={
                initial_symbol(i): field.content()
                for i, field in enumerate(outlined.state)
                if field.element is None
            },
            kernels_apart=kernels_apart,
        )
        drop_unused_variables(module)
        return take_large_constants(module, LARGE if kernels_apart else TEXT_LIMIT)

    def written(module: Any, file: str) -> str:
        text = translated(build.translation(module), outlined.source)
        return build.write(file, text + manifest_note(described.manifest))

    r = build.request
    images = images_of(code, outlined)
    content = {image.name: _image_bytes(build, image) for image in images}
    whole = apart = None
    constants: list[Constant] = []
    variables: list[Constant] = []
    texts = _kinds_of_text(r.emit)
    if texts:
        module = host.module.operation.clone() if r.makes_code else host.module.operation
        left_out = embedded(module, kernels_apart=False)
        if left_out:
            build.warn(
                "constants-left-out",
                f"{' and '.join(texts)} only declares {describe(left_out)}: large constants "
                "are not written as text. --emit obj has them.",
            )
        whole = written(module, f"{build.stem}.ll")
    if r.makes_code:
        constants = embedded(host.module.operation, kernels_apart=True)
        variables = large_variables(host.module.operation)
        apart = written(host.module, f"{build.stem}.host.ll")
    if whole is not None:
        file = build.file(HOST_LL, whole)
    else:
        assert apart is not None
        file = build.file(HOST_LL, apart, name=f"{build.stem}.host")
    return HostCode(whole, apart, tuple(constants), tuple(variables), files=(file,))


def _kinds_of_text(kinds: Collection[ArtifactKind]) -> list[str]:
    """The names of the requested kinds that need all host code as text, which objects do not."""
    needed = needed_for(kinds)
    takers = [kind for kind in needed if HOST_LL in kind.takes and kind is not OBJ]
    return [kind.name for kind in (HOST_LL, *takers) if kind in takers or kind in kinds]


def _image_bytes(build: Build, image: DeviceImage) -> bytes:
    """The bytes of an image. One without a file is never loaded, but its kernels are registered
    with its address."""
    return bytes(8) if image.file is None else (build.folder / image.file).read_bytes()


def compile_asm(build: Build, host: HostCode) -> StageResult:
    assert host.whole is not None
    file = f"{build.stem}.s"
    build.host_compiler.compile_ir(host.whole, file, assembly=True)
    return StageResult(files=(build.file(ASM, file),))


def compile_object(
    build: Build,
    outlined: Outlined,
    described: Described,
    host: HostCode,
    of_targets: tuple[KernelObjects, ...],
) -> Objects:
    """The module's objects, and those of the generated C that is linked with them."""
    r = build.request
    assert host.code is not None
    constants = [constant for one in of_targets for constant in one.constants]
    constants += host.constants
    check_reach([*constants, *host.variables], outlined.source)
    code, data = f"{build.stem}.host.o", f"{build.stem}.constants.o"
    needed = needed_for(r.emit)
    makes_table = EXE in needed and not outlined.is_program
    makes_library = any(kind.is_library for kind in needed) and bool(outlined.entries)
    tasks: list[Callable[[], Any]] = [
        functools.partial(build.host_compiler.compile_ir, host.code, code)
    ]
    if makes_table:
        tasks.append(functools.partial(table_object, build, described.manifest))
    if makes_library:
        tasks.append(functools.partial(library_object, build, described.manifest))
    made = build.runner.in_parallel(tasks)
    if not r.allow_file_directives:
        check_named_libraries(build.folder / code)
    module = [code, *(file for one in of_targets for file in one.objects)]
    if constants:
        write_constants(constants, r.target.architecture, build.folder / data)
        module.append(data)
    objects = Objects(
        tuple(module), made[1] if makes_table else None, made[-1] if makes_library else None
    )
    if OBJ not in r.emit:
        return objects
    file = f"{build.stem}.o"
    shared = {constant.symbol for constant in constants}
    shared.update(*(one.functions for one in of_targets))
    shared.update(map(weight_symbol, range(len(described.manifest.replaceable))))
    build.linker.join(module, file, hide=shared)
    return replace(objects, files=(build.file(OBJ, file),))


def link_executable(build: Build, outlined: Outlined, objects: Objects) -> StageResult:
    triple = build.request.target.triple
    is_program = outlined.is_program
    harness = harness_objects(build.toolchain, build.runner, triple, program_main=is_program)
    linked: list[str | Path] = [*objects.module, *harness]
    if objects.table is not None:
        linked.append(objects.table)
    file = f"{build.stem}.exe"
    runtime = runtime_library(build.toolchain, build.runner, triple, kind="static")
    utilities = utilities_library(build.toolchain, build.runner, triple)
    build.linker.link_executable(linked, runtime, utilities, file)
    return StageResult(files=(build.file(EXE, file),))
