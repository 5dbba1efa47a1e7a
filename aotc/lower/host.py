"""Outlined module → the host's half, in the LLVM dialect.

The gpu.modules are replaced by empty `gpu.binary` operations of the same name, so that
launches keep something to name; `aotc.host.embed` puts the images there.
"""

from __future__ import annotations

from typing import Any

from aotc.load.entries import symbol_of
from aotc.lower.outlining import gpu_modules
from aotc.lower.passes import run_passes
from aotc.mlir import ir

HOST_PASSES = (
    "lower-affine",
    "convert-vector-to-scf",
    # convert-scf-to-cf runs what is left of scf.parallel in sequence: reductions, small loops.
    "convert-scf-to-cf",
    "memref-expand",
    # Makes affine.apply again, hence the second lower-affine.
    "expand-strided-metadata",
    "lower-affine",
    "arith-expand",
    "convert-complex-to-standard",
    # What LLVM has an intrinsic for; the rest (erf, atan2, ...) is libm's.
    "convert-math-to-llvm",
    "math-extend-to-supported-types",
    "convert-math-to-libm",
    "convert-vector-to-llvm",
    "convert-nvgpu-to-nvvm",
    "convert-nvvm-to-llvm",
    # Functions before gpu-to-llvm, which expects launches inside LLVM functions.
    "convert-func-to-llvm",
    "gpu-to-llvm",
    "convert-complex-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-ub-to-llvm",
    "finalize-memref-to-llvm",
    "convert-cf-to-llvm",
    "canonicalize",
    "cse",
    "reconcile-unrealized-casts",
)


def lower_host(module: Any, *, name: str, lines: tuple[str, ...], debug: bool) -> Any:
    """A copy of `module`'s host half in the LLVM dialect, launches still as gpu.launch_func."""
    with module.context, ir.Location.unknown():
        host = module.operation.clone()
        for gpu_module in gpu_modules(host):
            with gpu_module.location:
                _replace_by_binary(gpu_module)
        debug_passes = ("ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}",)
        run_passes(
            host,
            (*HOST_PASSES, *(debug_passes if debug else ())),
            name=name,
            lines=lines,
            doing="lowering the host code",
        )
    return host


def _replace_by_binary(gpu_module: Any) -> None:
    symbol = symbol_of(gpu_module)
    binary = ir.Operation.parse(
        f'gpu.binary @"{symbol}" <#gpu.select_object<0 : i64>> '
        '[#gpu.object<#nvvm.target, bin = "">]'
    )
    gpu_module.block.append(binary)
    gpu_module.erase()
