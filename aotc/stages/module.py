"""Stages from the input to the outlined module."""

from __future__ import annotations

from aotc import mlir
from aotc.device.given import given_binaries
from aotc.emit.names import name_functions
from aotc.errors import AotcError, InputError
from aotc.frontends.importing import import_file
from aotc.frontends.registry import frontend_for
from aotc.input.bytecode import check_bytecode
from aotc.input.entries import (
    check_program_main,
    describe_again,
    describe_entries,
    has_program_main,
    lowered_entries,
    mark_entries,
)
from aotc.input.kernels import mark_kernels
from aotc.input.source import Source, adopt_module, parse_source, read_source
from aotc.lower.analysis.access import describe_accesses
from aotc.lower.checks import check_input, check_outlined
from aotc.lower.checks.host_code import check_host_code
from aotc.lower.checks.module import check_module
from aotc.lower.kernels.outlining import gpu_modules
from aotc.lower.leftovers import check_kernels, check_supported
from aotc.lower.outline import outline
from aotc.lower.plan.explanation import Explanation
from aotc.lower.remarks import Remarks
from aotc.lower.rewrites.allocations import check_allocations
from aotc.output import write_file
from aotc.pipes import is_special
from aotc.request import EmitKind
from aotc.stages.build import Build, printed
from aotc.stages.file import StageFile


def load(build: Build) -> list[StageFile]:
    r = build.request
    name = "<stdin>" if str(r.source) == "-" else str(r.source)
    build.source = _read(build, name)
    check_module(
        build.source, architecture=r.target.architecture, has_pipeline=r.pipeline is not None
    )
    mark_kernels(build.module)
    build.warnings += check_input(build.source, r)
    mark_entries(build.source, r.entries, r.emit)
    check_supported(build.source, has_pipeline=r.pipeline is not None)
    build.entries = describe_entries(build.source)
    build.lowered_entries = lowered_entries(build.source)
    # A function that the user names is called by the harness, whatever else is there.
    build.is_program = has_program_main(build.module) and not r.entries
    if build.is_program and (EmitKind.EXE in r.emit or not build.entries):
        check_program_main(build.source)
    return []


def _read(build: Build, name: str) -> Source:
    """The source: MLIR as it is, or what a front end makes of another format."""
    r = build.request
    frontend = frontend_for(r.source, r.frontend)
    if frontend is None and r.frontend_options:
        raise InputError(f"{name} is MLIR, which takes no --frontend-option.")
    # Held no longer than it is needed: it may be large.
    content, build.content = build.content if r.content is None else r.content, None
    if content is None and (frontend is None or str(r.source) == "-" or is_special(r.source)):
        content = read_source(r.source)
    if frontend is not None:
        path = r.source
        if content is not None:
            path = build.folder / "input" / r.source.name
            write_file(path, content)
        try:
            bytecode = import_file(frontend, path, dict(r.frontend_options), named=r.frontend)
        except AotcError as error:
            raise error.renamed(str(path), name) from None
        return adopt_module(name, frontend.name, bytecode, path, build.context)
    assert content is not None
    build.input_size = len(content)
    mlir.without_classes()
    check_bytecode(name, content)
    return parse_source(name, content, build.context, locations=r.debug)


def outline_module(build: Build) -> list[StageFile]:
    assert build.source is not None
    r = build.request
    explanation = Explanation(Remarks(build.source))
    build.explanation = explanation
    build.managed_globals = outline(build.source, r, explanation, build.watch("mlir"))
    build.warnings += explanation.remarks.warnings
    # Tensors are memrefs now, and results may be arguments.
    build.entries = describe_again(build.source, build.entries)
    build.warnings += check_outlined(build.source, r)
    check_host_code(build.source, is_outlined=True)
    check_kernels(build.source)
    build.given = given_binaries(build.source)
    build.entries = name_functions(describe_accesses(build.module, build.entries), r.prefix)
    for gpu_module in gpu_modules(build.module):
        check_allocations(gpu_module)
    goes_on = any(kind is not EmitKind.MLIR for kind in r.emit)
    if r.pipeline is not None and goes_on and not gpu_modules(build.module):
        build.warn(
            "host-only",
            "The pipeline left no kernel: everything runs on the host. (To have aotc map the "
            "loops that it makes, take them with --emit mlir, and build those.)",
        )
    return printed(build, EmitKind.MLIR, f"{r.name}.gpu.mlir", build.module.operation)
