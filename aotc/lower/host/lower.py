"""Lowers the host part of the outlined module to the LLVM dialect.

The gpu.modules are replaced by empty `gpu.binary` operations of the same name, so that launches
have a symbol to refer to. `aotc.host.embed` inserts the images later.
"""

from __future__ import annotations

import functools
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import gpu_modules
from aotc.lower.host.assertions import mark_assertions
from aotc.lower.host.async_tasks import ASYNC_PASSES, lower_async
from aotc.lower.host.results import announce_results
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.rewrites.allocations import check_allocations
from aotc.rewrites.atomics import exchange_folded_updates
from aotc.rewrites.bfloat import add_bfloat_functions
from aotc.rewrites.bit_casts import expand_bit_casts
from aotc.rewrites.host_passes import TO_BRANCHES, TO_LOOPS
from aotc.rewrites.intersections import expand_intersections
from aotc.rewrites.lines import add_lines
from aotc.rewrites.masked_writes import expand_masked_writes
from aotc.rewrites.math import replace_math
from aotc.rewrites.memory_spaces import SpaceStripper
from aotc.rewrites.packed_vectors import widen_packed_vectors
from aotc.rewrites.run import PassWatch, run_passes
from aotc.rewrites.small_floats import expand_small_floats
from aotc.rewrites.tensor_map_types import encode_tensor_maps
from aotc.rewrites.tensor_maps import lower_tensor_maps

_TO_LLVM = (
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

# All upstream passes that may run here.
ALL_HOST_PASSES = (*ASYNC_PASSES, *TO_LOOPS, *TO_BRANCHES, *_TO_LLVM)


def lower_host(
    module: Any,
    *,
    name: str,
    lines: tuple[str, ...],
    debug: bool,
    watch: PassWatch,
) -> Any:
    """A copy of `module`'s host part in the LLVM dialect. Launches remain gpu.launch_func."""
    with module.context, ir.Location.unknown():
        host = module.operation.clone()
        for gpu_module in gpu_modules(host):
            with gpu_module.location:
                _replace_by_binary(gpu_module)
        encode_tensor_maps(host)
        lower_tensor_maps(host.operation)
        # Host code has one address space; device pointers are plain numbers there.
        SpaceStripper().strip_operation(host.operation)
        check_allocations(host.operation)
        announce_results(host.operation)
        lower_async(host, name=name, lines=lines, watch=watch)
        mark_assertions(host, name)
        run = functools.partial(
            run_passes,
            host,
            name=name,
            lines=lines,
            doing="lowering the host code",
            watch=watch,
        )
        widen_packed_vectors(host)
        expand_masked_writes(host)
        expand_bit_casts(host)
        expand_intersections(host)
        run(TO_LOOPS)
        replace_math(host)
        expand_small_floats(host, watch)
        run(TO_BRANCHES)
        exchange_folded_updates(host)
        run(_TO_LLVM)
        add_bfloat_functions(host)
        if debug:
            add_lines(host, name, "LineTablesOnly", watch)
    return host


def _replace_by_binary(gpu_module: Any) -> None:
    symbol = symbol_of(gpu_module)
    # Upstream's verifier requires an object with a vendor's target. Nothing reads it: `embed`
    # replaces the operation by the target's image.
    binary = ir.Operation.parse(
        f'gpu.binary @"{symbol}" <#gpu.select_object<0 : i64>> '
        '[#gpu.object<#nvvm.target, bin = "">]'
    )
    gpu_module.block.append(binary)
    ops.erase(gpu_module)
