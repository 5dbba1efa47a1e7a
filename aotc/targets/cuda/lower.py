"""gpu.module → a module of its own in the LLVM dialect, for the NVPTX back end."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import lowered_kernels
from aotc.analysis.legality import check_lowered
from aotc.attributes import CPU_LEVEL
from aotc.input.source import Source
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.rewrites.atomics import exchange_folded_updates, expand_atomic_products
from aotc.rewrites.bit_casts import expand_bit_casts
from aotc.rewrites.lines import add_lines
from aotc.rewrites.masked_writes import expand_masked_writes
from aotc.rewrites.math import replace_questions, simplify_powers
from aotc.rewrites.memory_spaces import number_workgroup_space
from aotc.rewrites.neighbour_accesses import vectorize_neighbours
from aotc.rewrites.packed_vectors import widen_packed_vectors
from aotc.rewrites.points import take_points_together
from aotc.rewrites.run import PassWatch, run_group, run_passes
from aotc.rewrites.small_floats import expand_small_floats
from aotc.rewrites.tensor_maps import lower_tensor_maps
from aotc.targets.cuda.assertions import merge_assertions
from aotc.targets.cuda.exchanges import expand_exchanges
from aotc.targets.cuda.float8 import Float8Conversions
from aotc.targets.cuda.masked_bits import merge_masks
from aotc.targets.cuda.matrices import replace_elementwise
from aotc.targets.cuda.tanh import replace_narrow_tanh
from aotc.targets.cuda.wide_products import replace_wide_products

TRIPLE = "nvptx64-nvidia-cuda"

DEVICE_PASSES = (
    "convert-nvgpu-to-nvvm",
    "lower-affine",
    "convert-vector-to-scf",
    "convert-scf-to-cf",
    "convert-nvvm-to-llvm",
    "memref-expand",
    "expand-strided-metadata",
    "lower-affine",
    "arith-expand{include-flush-denormals=true}",
    "convert-complex-to-standard",
    "math-expand-ops{ops=clampf}",
    "canonicalize",
    "cse",
)
# Behind these, memory spaces are numbers.
TO_LLVM_PASSES = (
    # Knows libdevice (exp, erf, ...), ids, shuffles, attributions and printf.
    "gpu.module(convert-gpu-to-nvvm{has-redux=1})",
    "convert-complex-to-llvm",
    "convert-vector-to-llvm",
    "convert-math-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-ub-to-llvm",
    "finalize-memref-to-llvm",
    "convert-cf-to-llvm",
    "convert-func-to-llvm",
    "gpu.module(llvm-optimize-for-nvvm-target)",
    "canonicalize",
    "cse",
    "reconcile-unrealized-casts",
)

# A loop that carries a `!gpu.mma_matrix` is illegal for convert-nvgpu-to-nvvm: branches are not.
# (But only of a loop does it convert what wgmma accumulates into.)
_BRANCHES_FIRST = ("lower-affine", "convert-vector-to-scf", "convert-scf-to-cf")
_MATRIX_PASSES = (*_BRANCHES_FIRST, *DEVICE_PASSES)

_NO_LINES = ("strip-debuginfo",)
# fpowi of i32 exponents is libdevice's.
_POWERS = ("convert-math-to-funcs{min-width-of-fpowi-exponent=33}",)

# What runs of MLIR here, in some build.
ALL_DEVICE_PASSES = (*_POWERS, *_MATRIX_PASSES, *TO_LLVM_PASSES, *_NO_LINES)

# The 128-byte swizzle of TMA and wgmma repeats, in shared addresses, each 1024 bytes; without
# a swizzle TMA wants a multiple of 128 (PTX manual, «Tensor Swizzling Modes»).
_SWIZZLE_ALIGNMENT = 1024
_VECTOR_ALIGNMENT = 128
_TILED = ("nvgpu.tma.", "nvgpu.warpgroup.", "nvvm.wgmma.", "nvvm.cp.async.bulk.tensor.")
_SHARED_SPACE = 3
_SET_REGISTERS = "nvvm.setmaxregister"


def _set_cpu_level(device: Any) -> None:
    """Answers kernels that are for the CPU as well: a GPU has none of its instruction sets."""
    for question in ops.find(device, "vector.vscale"):
        if CPU_LEVEL in question.attributes:
            with question.location, ir.InsertionPoint(question):
                question.results[0].replace_all_uses_with(ops.constant(ir.IndexType.get(), 0))
            ops.erase(question)


def lower_device(gpu_module: Any, source: Source, *, debug: bool, watch: PassWatch) -> Any:
    """A builtin.module holding what `gpu_module` holds, in the LLVM dialect.

    `gpu_module`, of the module `source`, is left as it is. Raises InternalError for operations
    that have no lowering, InputError for lanes that a warp does not have.
    """
    with gpu_module.context, ir.Location.unknown():
        device = ir.Module.create().operation
        _block(device).append(gpu_module.clone())
        _set_cpu_level(device)
        lower_tensor_maps(device)
        take_points_together(device)
        vectorize_neighbours(device)
        replace_questions(device)
        simplify_powers(device)
        replace_narrow_tanh(device)
        merge_masks(device)
        widen_packed_vectors(device)
        expand_masked_writes(device)
        expand_bit_casts(device)
        expand_small_floats(device, watch, Float8Conversions(device))
        expand_atomic_products(device)
        _call_powers(device, watch)
        expand_exchanges(device, source)
        merge_assertions(device, source)
        replace_elementwise(device, source)
        replace_wide_products(device)
        has_tiles = _has_tiles(device)
        has_matrices = any(op.name.startswith("gpu.subgroup_mma_") for op in ops.walk(device))
        run = functools.partial(
            run_passes,
            device,
            name=source.name,
            lines=source.lines,
            doing="lowering the device code",
            watch=watch,
        )
        run(_MATRIX_PASSES if has_matrices else DEVICE_PASSES)
        exchange_folded_updates(device)
        number_workgroup_space(device)
        run(TO_LLVM_PASSES)
        _unwrap(device)
        check_lowered(
            device, source, ("llvm", "nvvm"), what=f"kernels in '{symbol_of(gpu_module)}'"
        )
        if debug:
            # Lines alone (ptxas's -lineinfo): the code is as without.
            add_lines(device, source.name, "DebugDirectivesOnly", watch)
        else:
            # It changes no operation, so there is nothing to verify again.
            run_group(device, _NO_LINES, verifies_each=False, watch=watch)
        _bound_registers(device)
        _place_shared_memory(device, has_tiles=has_tiles)
        device.attributes["llvm.target_triple"] = ir.StringAttr.get(TRIPLE)
    return device


def _call_powers(device: Any, watch: PassWatch) -> None:
    """Powers that libdevice has not: calls of functions that compute them."""
    if not ops.find(device, "math.ipowi", "math.fpowi"):
        return
    gpu_module = _block(device).operations[0].operation
    # The pass puts the functions beside the gpu.module, where its calls do not find them.
    run_group(device, _POWERS, verifies_each=False, watch=watch)
    for function in list(_block(device).operations)[1:]:
        _block(gpu_module).append(function.operation)


def _block(module: Any) -> Any:
    return module.regions[0].blocks[0]


def _unwrap(device: Any) -> None:
    """Moves the gpu.module's operations to the top level, where the translation wants them."""
    wrapper = _block(device).operations[0].operation
    _export_kernels_alone(wrapper)
    for operation in list(_block(wrapper).operations):
        _block(device).append(operation.operation)
    ops.erase(wrapper)


def _export_kernels_alone(gpu_module: Any) -> None:
    """Lets clang drop the functions that are inlined, and the C interfaces that upstream adds."""
    kernels = lowered_kernels(gpu_module)
    for operation in _block(gpu_module).operations:
        function = operation.operation
        is_function = function.name == "llvm.func" and len(function.regions[0].blocks) > 0
        if is_function and function not in kernels:
            function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")


def _bound_registers(device: Any) -> None:
    """Says that one block a multiprocessor is enough where kernels move registers between warps:
    ptxas ignores setmaxnreg unless it knows how many each thread begins with."""
    i32 = ir.IntegerType.get_signless(32)
    for kernel in ops.find(device, "llvm.func"):
        if not ops.find(kernel, _SET_REGISTERS):
            continue
        if "nvvm.maxntid" in kernel.attributes and "nvvm.minctasm" not in kernel.attributes:
            kernel.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(i32, 1)


def _has_tiles(device: Any) -> bool:
    """Whether kernels use the units that want their tiles of shared memory aligned: TMA, wgmma."""
    return any(
        op.name.startswith(_TILED)
        or (
            op.name == "llvm.inline_asm"
            and re.search(r"cp\.async\.bulk\.tensor|wgmma", str(op.attributes["asm_string"]))
        )
        for op in ops.walk(device)
    )


def _place_shared_memory(device: Any, *, has_tiles: bool) -> None:
    # gpu.dynamic_shared_memory lowers to an internal array without elements. Clang gives that
    # one static byte, and static shared memory then overlaps the dynamic part. As an external
    # array it starts behind everything static.
    for operation in _block(device).operations:
        variable = operation.operation
        if variable.name != "llvm.mlir.global" or not _is_shared(variable):
            continue
        size = _array_bytes(variable)
        if size == 0:
            variable.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
            _align(variable, _SWIZZLE_ALIGNMENT if has_tiles else _VECTOR_ALIGNMENT)
            if "value" in variable.attributes:
                del variable.attributes["value"]
        elif has_tiles and size >= _VECTOR_ALIGNMENT:
            is_large = size >= _SWIZZLE_ALIGNMENT
            _align(variable, _SWIZZLE_ALIGNMENT if is_large else _VECTOR_ALIGNMENT)


def _align(variable: Any, bytes_: int) -> None:
    """Raises the alignment of a global to at least `bytes_`."""
    if "alignment" in variable.attributes:
        bytes_ = max(bytes_, ir.IntegerAttr(variable.attributes["alignment"]).value)
    i64 = ir.IntegerType.get_signless(64)
    variable.attributes["alignment"] = ir.IntegerAttr.get(i64, bytes_)


def _is_shared(variable: Any) -> bool:
    return bool(ir.IntegerAttr(variable.attributes["addr_space"]).value == _SHARED_SPACE)


def _array_bytes(variable: Any) -> int:
    """The bytes of an array of arrays of numbers; a few for another type."""
    text = str(ir.TypeAttr(variable.attributes["global_type"]).value)
    sizes = [int(size) for size in re.findall(r"array<(\d+) x ", text)]
    element = re.search(r"(?:i|f|bf)(\d+)>*$", text)
    if not sizes or (element is None and 0 not in sizes):
        return 1
    return math.prod(sizes) * (int(element[1]) + 7) // 8 if element is not None else 0
