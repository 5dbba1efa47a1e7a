"""The stages from the input to the outlined module."""

from __future__ import annotations

from aotc import mlir
from aotc.analysis.access import describe_accesses
from aotc.analysis.gpu_modules import gpu_modules, runs_on
from aotc.artifact_kind import MLIR
from aotc.artifacts import EXE
from aotc.building.build import Build
from aotc.building.results import Loaded, Outlined
from aotc.emit.names import name_functions, state_type
from aotc.errors import AotcError, InputError
from aotc.frontends.importing import import_file
from aotc.frontends.registry import frontend_for
from aotc.input.bytecode import check_bytecode
from aotc.input.entries import (
    check_program_main,
    describe_again,
    describe_entries,
    describe_workspaces,
    has_program_main,
    lowered_entries,
    mark_entries,
    sized_entries,
)
from aotc.input.kernels import mark_kernels
from aotc.input.source import Source, adopt_module, parse_source, read_source
from aotc.input.state import find_state
from aotc.input.weights import hold_weights
from aotc.kernels.family import CPU
from aotc.lower.checks import check_input, check_outlined
from aotc.lower.checks.host_code import check_host_code
from aotc.lower.checks.module import check_module
from aotc.lower.checks.supported import check_kernels, check_supported, check_vector_casts
from aotc.lower.outline import outline
from aotc.lower.plan.explanation import Explanation
from aotc.lower.shards import partition
from aotc.lower.tensors.sparse_entries import assemble_sparse_entries
from aotc.ops import symbol_of
from aotc.output import write_file
from aotc.pipes import is_special
from aotc.remarks import Remarks
from aotc.request import BuildRequest
from aotc.rewrites.allocations import check_allocations
from aotc.target import TARGETS


def load(build: Build) -> Loaded:
    r = build.request
    name = "<stdin>" if str(r.source) == "-" else str(r.source)
    source, size = _read(build, name)
    mark_kernels(source.module)
    check_module(source, architecture=r.target.architecture, has_pipeline=r.pipeline is not None)
    build.log.warnings += check_input(source, r)
    mark_entries(source, r.entries, r.emit)
    partition(source, build.watch("mlir"))
    if r.pipeline is None:
        assemble_sparse_entries(source)
    check_supported(source, has_pipeline=r.pipeline is not None)
    state = find_state(source)
    entries = describe_entries(source)
    lowered = lowered_entries(source)
    # The harness calls a function that the user names, even if the module has a main.
    is_program = has_program_main(source.module) and not r.entries
    if is_program and (EXE in r.emit or not entries):
        check_program_main(source)
    held = hold_weights(source, r.replaceable) if r.replaceable else ()
    return Loaded(source, entries, lowered, is_program, size, state, held)


def _read(build: Build, name: str) -> tuple[Source, int]:
    """The source and the size of its MLIR in bytes. The input is MLIR, or a front end converts
    it."""
    r = build.request
    frontend = frontend_for(r.source, r.frontend)
    if frontend is None and r.frontend_options:
        raise InputError(f"{name} is MLIR, which takes no --frontend-option.")
    content = build.content if r.content is None else r.content
    if content is None and (frontend is None or str(r.source) == "-" or is_special(r.source)):
        content = read_source(r.source)
    if frontend is not None:
        path = r.source
        if content is not None:
            path = build.folder / "input" / r.source.name
            write_file(path, content)
        try:
            options = dict(r.frontend_options)
            if r.replaceable and "replaceable" in frontend.options:
                options.setdefault("replaceable", ",".join(r.replaceable))
            bytecode = import_file(frontend, path, options, named=r.frontend)
        except AotcError as error:
            raise error.renamed(str(path), name) from None
        if build.cache is not None and frontend.is_own:
            build.cache.note_import(frontend.beside(path))
        source = adopt_module(name, frontend.name, bytecode, path, build.context)
        return source, len(bytecode)
    assert content is not None
    mlir.without_classes()
    if not r.is_module:
        check_bytecode(name, content)
    return parse_source(name, content, build.context, locations=build.has_lines), len(content)


def outline_module(build: Build, loaded: Loaded) -> Outlined:
    r, source = build.request, loaded.source
    explanation = Explanation(Remarks(source), _quick(build.request))
    # This comes first, so that the explanation is also printed if the build fails.
    build.log.explanation = explanation
    by_hand = frozenset(symbol_of(op) for op in gpu_modules(source.module))
    managed_globals = outline(source, r, explanation, build.watch("mlir"))
    build.log.warnings += explanation.remarks.warnings
    # Tensors are memrefs by now, and results may be arguments.
    entries = describe_again(source, loaded.entries)
    build.log.warnings += check_outlined(source, r)
    check_host_code(source, is_outlined=True)
    check_vector_casts(source)
    check_kernels(source)
    given = tuple(binary for target in TARGETS for binary in target.given_binaries(source))
    entries = name_functions(
        describe_workspaces(source, describe_accesses(source.module, entries)),
        r.prefix,
        state_type(r.name, r.prefix),
        sized_entries(source, entries),
    )
    modules = gpu_modules(source.module)
    for gpu_module in modules:
        check_allocations(gpu_module)
    if r.pipeline is not None and r.emit != (MLIR,) and not modules:
        build.warn(
            "host-only",
            "The pipeline left no kernel: everything runs on the host. (To have aotc map the "
            "loops that it makes, take them with --emit mlir, and build those.)",
        )
    return Outlined(
        source,
        entries,
        loaded.lowered_entries,
        loaded.is_program,
        managed_globals,
        given,
        frozenset(symbol_of(op) for op in modules if runs_on(op) == CPU),
        loaded.state,
        loaded.held,
        by_hand,
        files=build.printed(MLIR, source.module.operation),
    )


def _quick(request: BuildRequest) -> str | None:
    """The text of --explain for a build at -O1."""
    if not request.is_for_trying:
        return None
    chips = ", ".join(chip.name for chip in request.cubin_chips)
    ptx = "" if request.ptx is None else f", and PTX {request.ptx.compute} for others"
    return (
        f"-O1 is for trying things: code for {chips}{ptx}, and one kernel for each matmul and "
        "attention, of small tiles, for all sizes."
    )
