"""The stages that make kernels for the CPU."""

from __future__ import annotations

import functools
from pathlib import Path

from msgspec.structs import replace

from aotc import mlir
from aotc.analysis.gpu_modules import gpu_modules, lowered_kernels
from aotc.building.build import Build, translated
from aotc.building.results import KernelCode, KernelObjects, Outlined
from aotc.host.constants import Constant, take_large_constants
from aotc.host.kernels import CpuKernel, CpuKernels
from aotc.host.translate import Translation
from aotc.input.source import Source
from aotc.ops import content, symbol_of
from aotc.symbols import is_kernel
from aotc.targets.cpu.artifacts import CPU_MLIR, CPU_OBJ
from aotc.targets.cpu.kernels import build_cpu_kernels
from aotc.targets.cpu.levels import add_levels
from aotc.targets.cpu.units import kernel_symbols, split_kernels

_LEFT_OUT = "it was built with --no-cpu-kernels"


_LOWERED_BEFORE = "it was in the LLVM dialect before aotc saw it"


def lower_to_cpu(build: Build, outlined: Outlined) -> KernelCode:
    if not build.request.cpu_kernels:
        return KernelCode(functions=_without_cpu_kernels(build, outlined))
    # Its reasons are part of the artifact, so the file is named without its folder.
    name, watch = Path(outlined.source.name).name, build.watch("cpu-mlir")
    cpu = build_cpu_kernels(outlined.module, name, debug=build.request.debug, watch=watch)
    # Debug information belongs to one function: copies would need their own.
    has_copies = not build.request.debug
    add_levels(cpu, build.request.target.architecture, has_copies=has_copies)
    lowered = [
        CpuKernel(symbol_of(gpu_module), symbol_of(function), None, _LOWERED_BEFORE)
        for gpu_module in gpu_modules(outlined.module)
        for function in lowered_kernels(gpu_module)
    ]
    cpu = replace(cpu, kernels=(*cpu.kernels, *lowered, *_given_kernels(outlined)))
    files = build.printed(CPU_MLIR, cpu.module.operation)
    return KernelCode(functions=cpu, files=files)


def compile_cpu(build: Build, outlined: Outlined, cpu: KernelCode) -> KernelObjects:
    """Compiles the kernels' objects, apart from the host's object, so that a change of one side
    does not recompile the other."""
    waiting = []
    assert cpu.functions is not None
    # Several modules may have the same constant.
    constants: dict[str, Constant] = {}
    for number, module in enumerate(split_kernels(cpu.functions)):
        for constant in take_large_constants(module.operation):
            constants.setdefault(constant.symbol, constant)
        waiting.append((f"{build.stem}.cpu{number}", build.translation(module)))
    build.runner.in_parallel(
        [functools.partial(_compile, build, outlined.source, *unit) for unit in waiting]
    )
    return KernelObjects(
        tuple(f"{name}.o" for name, _ in waiting),
        tuple(kernel_symbols(cpu.functions)),
        tuple(constants.values()),
        files=tuple(build.file(CPU_OBJ, f"{name}.o", unit=name) for name, _ in waiting),
    )


def _compile(build: Build, source: Source, name: str, translation: Translation) -> None:
    build.write(f"{name}.ll", translated(translation, source))
    build.host_compiler.compile_ir(f"{name}.ll", f"{name}.o")


_COMPILED_BEFORE = "its module is a gpu.binary: it was compiled before aotc saw it"


def _given_kernels(outlined: Outlined) -> list[CpuKernel]:
    return [
        CpuKernel(binary.name, kernel, None, _COMPILED_BEFORE)
        for binary in outlined.given
        for kernel in binary.kernels
    ]


def _without_cpu_kernels(build: Build, outlined: Outlined) -> CpuKernels:
    """All kernels, none with a CPU form. The runtime and the manifest report the reason."""
    kernels = tuple(
        CpuKernel(symbol_of(gpu_module), symbol_of(operation), None, _LEFT_OUT)
        for gpu_module in gpu_modules(outlined.module)
        for operation in [
            *(op for op in content(gpu_module) if is_kernel(op)),
            *lowered_kernels(gpu_module),
        ]
    )
    kernels += tuple(_given_kernels(outlined))
    if kernels and build.request.target.library == "musl":
        build.warn(
            "nowhere-to-run",
            "The kernels have nowhere to run: a program for musl cannot load a GPU's driver, and "
            "--no-cpu-kernels leaves out the CPU's.",
        )
    with build.context, mlir.ir.Location.unknown():
        return CpuKernels(mlir.ir.Module.create(), kernels)
