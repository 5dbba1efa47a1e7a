"""Stages from the input to MLIR: the outlined module, the kernels for the CPU, the host's half."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from aotc import mlir
from aotc.cpu.kernels import CpuKernel, CpuKernels, build_cpu_kernels
from aotc.cpu.symbols import content, is_kernel
from aotc.device.given import given_binaries
from aotc.emit.names import name_functions
from aotc.errors import AotcError, InputError
from aotc.frontends.registry import frontend_for, run_frontend
from aotc.input.entries import (
    check_program_main,
    describe_again,
    describe_entries,
    has_program_main,
    lowered_entries,
    mark_entries,
)
from aotc.input.source import Source, adopt_module, parse_source, read_source
from aotc.lower.analysis.access import describe_accesses
from aotc.lower.checks import check_input, check_outlined
from aotc.lower.checks.host_code import check_host_code
from aotc.lower.host.lower import lower_host
from aotc.lower.kernels.outlining import gpu_modules, lowered_kernels
from aotc.lower.leftovers import check_kernels, check_lowered, check_supported
from aotc.lower.outline import outline
from aotc.lower.plan.explanation import Explanation
from aotc.lower.plan.remarks import Remarks
from aotc.ops import symbol_of
from aotc.output import write_file
from aotc.request import EmitKind
from aotc.stages.build import Build, StageFile, printed


def load(build: Build) -> list[StageFile]:
    r = build.request
    name = "<stdin>" if str(r.source) == "-" else str(r.source)
    build.source = _read(build, name)
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
    content = r.content
    if content is None and (frontend is None or str(r.source) == "-"):
        content = read_source(r.source)
    if frontend is not None:
        path = r.source
        if content is not None:
            path = build.folder / "input" / r.source.name
            write_file(path, content)
        try:
            module = run_frontend(frontend, path, dict(r.frontend_options))
        except AotcError as error:
            raise error.renamed(str(path), name) from None
        return adopt_module(name, frontend.name, module, path, build.context)
    assert content is not None
    return parse_source(name, content, build.context, locations=r.debug)


def outline_module(build: Build) -> list[StageFile]:
    assert build.source is not None
    r = build.request
    build.explanation = Explanation(Remarks(build.source))
    build.managed_globals = outline(build.source, r, build.explanation)
    # Tensors are memrefs now, and results may be arguments.
    build.entries = describe_again(build.source, build.entries)
    build.warnings += check_outlined(build.source, r)
    check_host_code(build.source, is_outlined=True)
    check_kernels(build.source)
    build.given = given_binaries(build.source)
    build.entries = name_functions(describe_accesses(build.module, build.entries), r.prefix)
    goes_on = any(kind is not EmitKind.MLIR for kind in r.emit)
    if r.pipeline is not None and goes_on and not gpu_modules(build.module):
        build.warn(
            "host-only",
            "The pipeline left no kernel: everything runs on the host. (To have aotc map the "
            "loops that it makes, take them with --emit mlir, and build those.)",
        )
    return printed(build, EmitKind.MLIR, f"{r.name}.gpu.mlir", build.module.operation)


_LEFT_OUT = "it was built with --no-cpu-kernels"


_LOWERED_BEFORE = "it was in the LLVM dialect before aotc saw it"


def lower_to_cpu(build: Build) -> list[StageFile]:
    assert build.source is not None
    if not build.request.cpu_kernels:
        build.cpu = _without_cpu_kernels(build)
        return []
    # The reasons that it gives go into the artifact: the file is named without its folder.
    cpu = build_cpu_kernels(build.module, Path(build.source.name).name, debug=build.request.debug)
    lowered = [
        CpuKernel(symbol_of(gpu_module), symbol_of(function), None, _LOWERED_BEFORE)
        for gpu_module in gpu_modules(build.module)
        for function in lowered_kernels(gpu_module)
    ]
    build.cpu = replace(cpu, kernels=(*cpu.kernels, *lowered, *_given_kernels(build)))
    name = f"{build.request.name}.cpu.mlir"
    return printed(build, EmitKind.CPU_MLIR, name, build.cpu.module.operation)


_COMPILED_BEFORE = "its module is a gpu.binary: it was compiled before aotc saw it"


def _given_kernels(build: Build) -> list[CpuKernel]:
    return [
        CpuKernel(binary.name, kernel, None, _COMPILED_BEFORE)
        for binary in build.given
        for kernel in binary.kernels
    ]


def _without_cpu_kernels(build: Build) -> CpuKernels:
    """Every kernel, none with a CPU form: the runtime and the manifest still tell why."""
    kernels = tuple(
        CpuKernel(symbol_of(gpu_module), symbol_of(operation), None, _LEFT_OUT)
        for gpu_module in gpu_modules(build.module)
        for operation in [
            *(op for op in content(gpu_module) if is_kernel(op)),
            *lowered_kernels(gpu_module),
        ]
    )
    kernels += tuple(_given_kernels(build))
    if kernels and build.request.target.library == "musl":
        build.warn(
            "nowhere-to-run",
            "The kernels have nowhere to run: a program for musl cannot load NVIDIA's driver, and "
            "--no-cpu-kernels leaves out the CPU's.",
        )
    with build.context, mlir.ir.Location.unknown():
        return CpuKernels(mlir.ir.Module.create(), kernels)


def lower_to_host(build: Build) -> list[StageFile]:
    assert build.source is not None
    build.host = lower_host(
        build.module, name=build.source.name, lines=build.lines, debug=build.request.debug
    )
    check_lowered(build.host, build.source, ("llvm", "gpu"), what="host code")
    name = f"{build.request.name}.host.mlir"
    return printed(build, EmitKind.HOST_MLIR, name, build.host.operation)
