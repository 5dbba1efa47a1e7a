"""The stage that makes kernels for the CPU."""

from __future__ import annotations

import functools
from pathlib import Path

from msgspec.structs import replace

from aotc import mlir
from aotc.cpu.kernels import CpuKernel, CpuKernels, build_cpu_kernels
from aotc.cpu.levels import add_levels
from aotc.cpu.symbols import content, is_kernel
from aotc.cpu.units import split_kernels
from aotc.host.constants import take_large_constants
from aotc.host.translate import Translation
from aotc.lower.kernels.outlining import gpu_modules, lowered_kernels
from aotc.ops import symbol_of
from aotc.request import EmitKind
from aotc.stages.build import Build, printed
from aotc.stages.file import StageFile

_LEFT_OUT = "it was built with --no-cpu-kernels"


_LOWERED_BEFORE = "it was in the LLVM dialect before aotc saw it"


def lower_to_cpu(build: Build) -> list[StageFile]:
    assert build.source is not None
    if not build.request.cpu_kernels:
        build.cpu = _without_cpu_kernels(build)
        return []
    # The reasons that it gives go into the artifact: the file is named without its folder.
    cpu = build_cpu_kernels(
        build.module,
        Path(build.source.name).name,
        debug=build.request.debug,
        watch=build.watch("cpu-mlir"),
    )
    # A function's debug information is its own: copies would need their own, too.
    if not build.request.debug:
        add_levels(cpu, build.request.target.architecture)
    lowered = [
        CpuKernel(symbol_of(gpu_module), symbol_of(function), None, _LOWERED_BEFORE)
        for gpu_module in gpu_modules(build.module)
        for function in lowered_kernels(gpu_module)
    ]
    build.cpu = replace(cpu, kernels=(*cpu.kernels, *lowered, *_given_kernels(build)))
    name = f"{build.request.name}.cpu.mlir"
    return printed(build, EmitKind.CPU_MLIR, name, build.cpu.module.operation)


def compile_cpu(build: Build) -> list[StageFile]:
    """The kernels' objects, apart from the host's: a change on either side leaves the other's."""
    assert build.cpu is not None
    waiting = []
    for number, module in enumerate(split_kernels(build.cpu)):
        taken = take_large_constants(module.operation)
        known = {constant.symbol for constant in build.constants}
        build.constants += [one for one in taken if one.symbol not in known]
        waiting.append((f"{build.stem}.cpu{number}", build.translation(module)))
    build.runner.in_parallel([functools.partial(_compile, build, *unit) for unit in waiting])
    build.cpu_objects = [f"{name}.o" for name, _ in waiting]
    return [build.file(EmitKind.CPU_OBJ, file) for file in build.cpu_objects]


def _compile(build: Build, name: str, translation: Translation) -> None:
    build.write(f"{name}.ll", build.translated(translation))
    build.host_compiler.compile_ir(f"{name}.ll", f"{name}.o")


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
