"""`gpu.launch_func` → a call of the kernel's launch stub.

A stub is an internal function that makes the same `mgpu*` calls as upstream's translation. The
stack slots of the parameters are in the stub, so that a launch in a loop does not grow the stack.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import launched_kernel
from aotc.host.llvm_dialect import (
    append,
    append_with_declarations,
    create_call,
    create_constant,
    handle_text,
    kernel_handle,
    kernel_name,
    module_handle,
    null_pointer_global,
    runtime_declarations,
    string_global,
)
from aotc.mlir import ir
from aotc.ops import symbol_of


class _LaunchKind(Enum):
    """How a kernel is launched."""

    PLAIN = "plain"
    CONCURRENT = "concurrent"  # a plain launch on a stream, which the host does not wait for
    CLUSTER = "cluster"
    COOPERATIVE = "cooperative"

    @property
    def function(self) -> str:
        """The runtime's function for this kind."""
        return {
            _LaunchKind.CLUSTER: "mgpuLaunchClusterKernel",
            _LaunchKind.COOPERATIVE: "mgpuLaunchKernelCooperative",
        }.get(self, "mgpuLaunchKernel")

    @property
    def has_cluster(self) -> bool:
        return self in (_LaunchKind.CLUSTER, _LaunchKind.COOPERATIVE)


# Announces a concurrent launch to the runtime, with the values of its parameters. Other runtimes do
# not have this function.
_TELL_CONCURRENT = """\
%tell = llvm.mlir.addressof @aotc_concurrent_launch_prepare : !llvm.ptr
  %has_tell = llvm.icmp "ne" %tell, %null : !llvm.ptr
  llvm.cond_br %has_tell, ^tell, ^launched
^tell:
  %end = llvm.getelementptr %null[1] : (!llvm.ptr) -> !llvm.ptr, {slots}
  %bytes = llvm.ptrtoint %end : !llvm.ptr to i64
  llvm.call @aotc_concurrent_launch_prepare(%slots, %bytes) : (!llvm.ptr, i64) -> ()
  llvm.br ^launched
^launched:"""


class LaunchStubs:
    """The launch stubs of one host module: one for each kernel, parameter types and kind."""

    def __init__(self, host: Any) -> None:
        self._host = host
        self._names: dict[tuple[str, str, tuple[str, ...], _LaunchKind], str] = {}
        self._variants: Counter[tuple[str, str]] = Counter()
        self._kernel_names = {
            symbol_of(op) for op in ops.content(host) if op.name == "llvm.mlir.global"
        }

    def get(self, module: str, kernel: str, types: tuple[str, ...], kind: _LaunchKind) -> str:
        key = (module, kernel, types, kind)
        if key not in self._names:
            variant = self._variants[module, kernel]
            self._variants[module, kernel] += 1
            name = f"aotc_launch_{module}.{kernel}" + (f".{variant}" if variant else "")
            self._names[key] = name
            self._create(name, *key)
        return self._names[key]

    def _create(
        self, name: str, module: str, kernel: str, types: tuple[str, ...], kind: _LaunchKind
    ) -> None:
        declarations = {}
        name_symbol = kernel_name(module, kernel)
        name_text = string_global(name_symbol, kernel)
        for symbol, global_text in (
            (name_symbol, name_text),
            (kernel_handle(module, kernel), null_pointer_global(kernel_handle(module, kernel))),
        ):
            if symbol not in self._kernel_names:
                self._kernel_names.add(symbol)
                append(self._host, global_text)
            declarations[symbol] = global_text
        declarations[module_handle(module)] = handle_text(module)
        declarations.update(runtime_declarations())
        text = _stub_text(name, module, kernel, types, kind)
        append_with_declarations(self._host, text, declarations)


def _stub_text(
    name: str, module: str, kernel: str, types: tuple[str, ...], kind: _LaunchKind
) -> str:
    sizes = [f"%{what}{axis}" for what in ("g", "b") for axis in "xyz"]
    cluster = [f"%c{axis}" for axis in "xyz"] if kind.has_cluster else []
    parameters = [f"{size}: i64" for size in [*sizes, *cluster]]
    parameters += ["%shared: i32", "%stream: !llvm.ptr"]
    parameters += [f"%v{i}: {type_}" for i, type_ in enumerate(types)]
    slots = f"!llvm.struct<({', '.join(t.removeprefix('!llvm.') for t in types)})>"
    lines = [
        "%one = llvm.mlir.constant(1 : i64) : i64",
        f"%count = llvm.mlir.constant({len(types)} : i64) : i64",
        "%null = llvm.mlir.zero : !llvm.ptr",
    ]
    values = "%null"
    if types or kind is _LaunchKind.CONCURRENT:
        values = "%values"
        lines.append(f"%slots = llvm.alloca %one x {slots} : (i64) -> !llvm.ptr")
        lines.append("%values = llvm.alloca %count x !llvm.ptr : (i64) -> !llvm.ptr")
    for i, type_ in enumerate(types):
        lines += [
            f"%s{i} = llvm.getelementptr %slots[0, {i}] : (!llvm.ptr) -> !llvm.ptr, {slots}",
            f"llvm.store %v{i}, %s{i} : {type_}, !llvm.ptr",
            f"%a{i} = llvm.getelementptr %values[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr",
            f"llvm.store %s{i}, %a{i} : !llvm.ptr, !llvm.ptr",
        ]
    lines += [
        # The handle is looked up once, for all launches on every device.
        f'%known_place = llvm.mlir.addressof @"{kernel_handle(module, kernel)}" : !llvm.ptr',
        "%known = llvm.load %known_place atomic monotonic {alignment = 8 : i64} "
        ": !llvm.ptr -> !llvm.ptr",
        '%is_known = llvm.icmp "ne" %known, %null : !llvm.ptr',
        "llvm.cond_br %is_known, ^launch(%known : !llvm.ptr), ^find",
        "^find:",
        f'%place = llvm.mlir.addressof @"{module_handle(module)}" : !llvm.ptr',
        "%module = llvm.load %place : !llvm.ptr -> !llvm.ptr",
        f'%name = llvm.mlir.addressof @"{kernel_name(module, kernel)}" : !llvm.ptr',
        "%found = llvm.call @mgpuModuleGetFunction(%module, %name) "
        ": (!llvm.ptr, !llvm.ptr) -> !llvm.ptr",
        "llvm.store %found, %known_place atomic monotonic {alignment = 8 : i64} "
        ": !llvm.ptr, !llvm.ptr",
        "llvm.br ^launch(%found : !llvm.ptr)",
        "^launch(%kernel: !llvm.ptr):",
    ]
    if kind is _LaunchKind.CONCURRENT:
        lines.append(_TELL_CONCURRENT.format(slots=slots))
    # A plain launch has a count at the end. The others have the cluster sizes, before the grid
    # or (cooperative) after it.
    order = (
        [*sizes[:3], *cluster, *sizes[3:]]
        if kind is _LaunchKind.COOPERATIVE
        else [
            *cluster,
            *sizes,
        ]
    )
    count, count_type = ("", "") if kind.has_cluster else (", %count", ", i64")
    lines.append(
        f"llvm.call @{kind.function}(%kernel, {', '.join(order)}, %shared, %stream, "
        f"{values}, %null{count}) : (!llvm.ptr, {', '.join(['i64'] * len(order))}, i32, "
        f"!llvm.ptr, !llvm.ptr, !llvm.ptr{count_type}) -> ()"
    )
    lines.append("llvm.return")
    body = "\n  ".join(lines)
    return f'llvm.func internal @"{name}"({", ".join(parameters)}) {{\n  {body}\n}}'


def lower_launch(launch: Any, stubs: LaunchStubs, own_stream: Any | None) -> None:
    """Inserts a call of the stub, before `launch`.

    If neither the launch nor its function has a stream (`own_stream`), the host waits for the
    kernel.
    """
    groups = ops.operand_groups(launch)
    # Groups: tokens, grid and block (three each), cluster (three), shared bytes, operands, stream.
    sizes = [group[0] for group in groups[1:7]]
    cluster = [group[0] for group in groups[7:10] if group]
    shared, operands = groups[10], groups[11]
    stream = groups[12] or ([own_stream] if own_stream is not None else [])
    if groups[0] or len(launch.results) > 0:
        raise AssertionError("gpu-to-llvm leaves no token on a launch")
    module, kernel = launched_kernel(launch)
    types = tuple(str(operand.type) for operand in operands)
    kind = _LaunchKind.CONCURRENT if groups[12] else _LaunchKind.PLAIN
    if cluster:
        kind = _LaunchKind.CLUSTER
    if "cooperative" in launch.attributes:
        kind = _LaunchKind.COOPERATIVE
        cluster = cluster or [create_constant(0, 64)] * 3
    stub = stubs.get(module, kernel, types, kind)
    handle = stream[0] if stream else create_call("mgpuStreamCreate", [], "!llvm.ptr")
    arguments = [
        *(_as_i64(size) for size in [*sizes, *cluster]),
        shared[0] if shared else create_constant(0, 32),
        handle,
        *operands,
    ]
    create_call(stub, arguments)
    if not stream:
        create_call("mgpuStreamSynchronize", [handle])
        create_call("mgpuStreamDestroy", [handle])


def _as_i64(value: Any) -> Any:
    if str(value.type) == "i64":
        return value
    i64 = ir.IntegerType.get_signless(64)
    return ops.unary("llvm.sext", value, i64)
