"""Operations that cannot run on the CPU, described for the user.

An operation is an obstacle if only a GPU has it, or if this package cannot lower it. A kernel with
an obstacle gets no CPU form, never a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aotc.analysis.types import is_workgroup
from aotc.attributes import CPU_LEVEL
from aotc.input.source import find_place
from aotc.mlir import ir
from aotc.ops import symbol_of, walk
from aotc.symbols import FUNCTIONS, has_body
from aotc.targets.cpu.expand.exchange import EXCHANGE_CHECKS, EXCHANGES
from aotc.targets.cpu.expand.failures import FAILURES
from aotc.targets.cpu.expand.matrix import MATRICES
from aotc.targets.cpu.expand.matrix_types import MATRIX_CHECKS
from aotc.targets.cpu.shared_memory import is_workgroup_global

_TENSOR_CORES = "this operation of the tensor cores has no CPU form"
_HARDWARE = "only a GPU has it"
_STOPS = "a kernel does not stop in a debugger on the CPU"
_FUNCTION_POINTER = "function pointers have no CPU form"
_SCALABLE = "scalable vectors have no CPU form"

# Operations whose results are arguments of the thread function: the ids and sizes.
ID_OPERATIONS = frozenset(
    {
        "gpu.thread_id",
        "gpu.block_id",
        "gpu.block_dim",
        "gpu.grid_dim",
        "gpu.global_id",
        "gpu.cluster_id",
        "gpu.cluster_dim",
        "gpu.cluster_dim_blocks",
        "gpu.cluster_block_id",
    }
)
# The operations of the gpu dialect that run in kernels. All others are for the host.
_GPU_OPERATIONS_THAT_RUN = frozenset(
    {
        "gpu.func",
        "gpu.return",
        "gpu.yield",
        "gpu.printf",
        "gpu.barrier",
        "gpu.dynamic_shared_memory",
        *ID_OPERATIONS,
    }
)
# Operations that need the thread's context, which an llvm.func does not get.
_OF_THREADS = frozenset(
    {"gpu.barrier", "gpu.dynamic_shared_memory", *ID_OPERATIONS, *EXCHANGES, *MATRICES, *FAILURES}
)
_OBSTACLES = {
    # aotc-decompose-aggregated-ops lowers these. They are left only by a user's pipeline.
    "gpu.warp_execute_on_lane_0": "aotc-decompose-aggregated-ops lowers it",
    "gpu.launch": "a kernel cannot launch kernels on the CPU",
    "gpu.launch_func": "a kernel cannot launch kernels on the CPU",
    "llvm.intr.debugtrap": _STOPS,
    "llvm.inline_asm": "it is assembly for the GPU",
    "func.constant": _FUNCTION_POINTER,
    "func.call_indirect": _FUNCTION_POINTER,
    "vector.print": "aotc-decompose-aggregated-ops lowers it",
    "vector.vscale": _SCALABLE,
    "vector.scalable.insert": _SCALABLE,
    "vector.scalable.extract": _SCALABLE,
    "llvm.intr.vscale": _SCALABLE,
}
_OBSTACLE_PREFIXES = (
    ("gpu.subgroup_mma_", _TENSOR_CORES),
    ("nvvm.wgmma", _TENSOR_CORES),
    ("nvvm.mma", _TENSOR_CORES),
    ("nvvm.wmma", _TENSOR_CORES),
    ("nvgpu.mma", _TENSOR_CORES),
    ("nvgpu.warpgroup", _TENSOR_CORES),
    ("nvgpu.mbarrier", _HARDWARE),
    ("nvvm.mbarrier", _HARDWARE),
    ("nvvm.barrier", _HARDWARE),
    ("nvvm.bar.", _HARDWARE),
    ("nvvm.shfl", _HARDWARE),
)
_DIALECTS_THAT_RUN = frozenset(
    "affine arith builtin cf complex func index llvm math memref scf ub vector".split()
)
_GPU_DIALECTS = frozenset({"gpu", "nvgpu", "nvvm", "amdgpu", "rocdl", "xegpu", "xevm"})
_DEVICE_INTRINSIC = re.compile(r"llvm\.(nvvm|amdgcn|r600|spv|genx)\.")


def find_obstacle(reached: dict[str, Any], name: str) -> str | None:
    """The reason why the kernel that reaches these symbols (`symbols.reach`) has no CPU form, or
    None.

    `name` is the name of the input in locations that have no file name.
    """
    for symbol in reached.values():
        for operation in walk(symbol):
            reason = _obstacle(operation, reached)
            if reason is not None:
                return describe(operation, reason, name)
    return None


def describe(operation: Any, reason: str, name: str) -> str:
    """A message such as `gpu.barrier at matmul.mlir:12:5: reason`."""
    place = find_place(str(operation.location), name)
    return f"{operation.name}{'' if place is None else f' at {place}'}: {reason}"


def _obstacle(operation: Any, reached: dict[str, Any]) -> str | None:
    if CPU_LEVEL in operation.attributes:
        return None
    found = _by_name(operation.name)
    if found is not None:
        return found
    check = _CHECKS.get(operation.name)
    if check is not None:
        found = check(operation, reached)
        if found is not None:
            return found
    return _by_types(operation)


def _by_name(name: str) -> str | None:
    if name in MATRICES or name in EXCHANGES:
        return None
    if name in _OBSTACLES:
        return _OBSTACLES[name]
    for prefix, reason in _OBSTACLE_PREFIXES:
        if name.startswith(prefix):
            return reason
    dialect = name.split(".")[0]
    if dialect == "gpu" and name not in _GPU_OPERATIONS_THAT_RUN:
        return "it belongs to the host, not into a kernel"
    if dialect in _GPU_DIALECTS and dialect != "gpu":
        return _HARDWARE
    if dialect not in _DIALECTS_THAT_RUN | {"gpu"}:
        return f"aotc does not lower the dialect '{dialect}' in kernels for the CPU"
    return None


def _by_types(operation: Any) -> str | None:
    values = list(operation.results)
    for region in operation.regions:
        for block in region.blocks:
            values += block.arguments
    for value in values:
        if isinstance(value.type, ir.VectorType) and value.type.scalable:
            return _SCALABLE
    return None


def _check_kernel(kernel: Any, _: dict[str, Any]) -> str | None:
    attributes = kernel.attributes
    if "known_cluster_size" in attributes and any(
        size != 1 for size in ir.DenseI32ArrayAttr(attributes["known_cluster_size"])
    ):
        return "clusters of more than one block do not exist on the CPU"
    if "arg_attrs" in attributes and "llvm.byval" in str(attributes["arg_attrs"]):
        return "an argument passed by value (llvm.byval) has no CPU form"
    return None


def _check_function(function: Any, reached: dict[str, Any]) -> str | None:
    if not has_body(function):
        return f"@{symbol_of(function)} is only declared: its body is not in the module"
    if function.name != "llvm.func":
        return None
    for operation in walk(function):
        if operation.name in _OF_THREADS or _names_workgroup(operation, reached):
            return f"{operation.name} inside an llvm.func has no CPU form; use a func.func"
    return None


def _names_workgroup(operation: Any, reached: dict[str, Any]) -> bool:
    if operation.name != "llvm.mlir.addressof":
        return False
    target = reached.get(ir.FlatSymbolRefAttr(operation.attributes["global_name"]).value)
    return target is not None and is_workgroup_global(target)


def _check_call(call: Any, reached: dict[str, Any]) -> str | None:
    # An llvm.func has no arguments for the ids that its callee may need.
    if not _is_inside(call, "llvm.func"):
        return None
    callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    return (
        f"@{callee}, a func.func, is called from an llvm.func: that has no CPU form"
        if callee in reached
        else None
    )


def _is_inside(operation: Any, name: str) -> bool:
    parent = operation.parent
    while parent is not None:
        if parent.operation.name == name:
            return True
        parent = parent.operation.parent
    return False


def _check_llvm_call(call: Any, _: dict[str, Any]) -> str | None:
    return None if "callee" in call.attributes else _FUNCTION_POINTER


def _check_address(address: Any, reached: dict[str, Any]) -> str | None:
    target = reached.get(ir.FlatSymbolRefAttr(address.attributes["global_name"]).value)
    return _FUNCTION_POINTER if target is not None and target.name in FUNCTIONS else None


def _check_intrinsic(call: Any, _: dict[str, Any]) -> str | None:
    intrinsic = ir.StringAttr(call.attributes["intrin"]).value
    return f"{intrinsic}: {_HARDWARE}" if _DEVICE_INTRINSIC.match(intrinsic) else None


def _check_memref_global(variable: Any, _: dict[str, Any]) -> str | None:
    if is_workgroup_global(variable):
        return None
    if "initial_value" not in variable.attributes:
        return f"@{symbol_of(variable)} is only declared: its value is not in the module"
    return None


def _check_llvm_global(variable: Any, _: dict[str, Any]) -> str | None:
    if is_workgroup_global(variable):
        return None
    has_value = "value" in variable.attributes or len(variable.regions[0].blocks) > 0
    if not has_value and "extern" in str(variable.attributes["linkage"]):
        return f"@{symbol_of(variable)} is only declared: its value is not in the module"
    return None


def _check_copy(copy: Any, _: dict[str, Any]) -> str | None:
    if any(not isinstance(operand.type, ir.MemRefType) for operand in copy.operands):
        return "copies of unranked memrefs have no CPU form"
    return None


def _check_allocation(allocation: Any, _: dict[str, Any]) -> str | None:
    if is_workgroup(allocation.results[0].type):
        return "workgroup (shared) memory is not allocated while a kernel runs"
    return None


def _check_printf(printf: Any, _: dict[str, Any]) -> str | None:
    for operand in printf.operands:
        type_ = operand.type
        if isinstance(type_, ir.IntegerType) and type_.width > 64:
            return f"printing an {type_} has no CPU form"
    return None


_CHECKS: dict[str, Callable[[Any, dict[str, Any]], str | None]] = {
    **EXCHANGE_CHECKS,
    **MATRIX_CHECKS,
    "gpu.func": _check_kernel,
    "func.func": _check_function,
    "llvm.func": _check_function,
    "func.call": _check_call,
    "llvm.call": _check_llvm_call,
    "llvm.mlir.addressof": _check_address,
    "llvm.call_intrinsic": _check_intrinsic,
    "memref.global": _check_memref_global,
    "llvm.mlir.global": _check_llvm_global,
    "memref.copy": _check_copy,
    "gpu.printf": _check_printf,
    "memref.alloc": _check_allocation,
    "memref.alloca": _check_allocation,
    "llvm.alloca": _check_allocation,
}
