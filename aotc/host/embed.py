"""Host module + images + CPU kernels → one host module in the LLVM dialect, ready to translate.

Each `gpu.binary` becomes

* a constant with the fatbin, and a constructor that hands it to `mgpuModuleLoad` (which only
  remembers it) before `main`, or when a library is opened;
* a table of the kernels' CPU forms, given to `aotc_module_register` by the same constructor
  through a weak reference: linked against upstream's runtime, the object does without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aotc import ops
from aotc.cpu.kernels import CpuKernel, CpuKernels
from aotc.cpu.merge import merge_cpu_kernels
from aotc.host.assertions import return_from_failed_checks
from aotc.host.exports import add_packed_call, keep_to_itself
from aotc.host.launches import LaunchStubs, lower_launch
from aotc.host.llvm_dialect import (
    append,
    drop_declarations,
    handle_text,
    initialized_global,
    kernel_name,
    merge,
    module_handle,
    operations,
    runtime_declarations,
    string_global,
)
from aotc.host.managed_globals import make_global_managed
from aotc.manifest import Entry
from aotc.mlir import ir
from aotc.ops import symbol_of

MODULE_INFO_VERSION = 1  # AOTC_MODULE_INFO_VERSION of runtime_c/include/aotc_runtime.h
# The driver reads fat binaries in place, as 8-byte words; a cache line is friendlier.
_IMAGE_ALIGNMENT = 64
_PRIORITY = 123  # upstream's translation of gpu.binary uses the same
_KERNEL_ENTRY = "!llvm.struct<(ptr, ptr, ptr)>"
_MODULE_INFO = "!llvm.struct<(i32, i32, ptr, i64, ptr, ptr, ptr)>"


def embed(
    host: Any,
    images: Mapping[str, bytes],
    cpu: CpuKernels | None,
    entries: Sequence[Entry],
    *,
    built_for: Mapping[str, str],
    managed_globals: frozenset[str] = frozenset(),
) -> None:
    """Changes `host` in place.

    `images` maps a gpu.module's name to its fatbin, `built_for` to what is in it, as messages
    say it; `managed_globals` are the variables that
    kernels are given.
    """
    with host.context, ir.Location.unknown():
        return_from_failed_checks(host, entries)
        keep_to_itself(host, entries)
        if cpu is not None:
            merge_cpu_kernels(cpu, host.opview)
        merge(host, ir.Module.parse("\n".join(runtime_declarations().values())).operation)
        for name in sorted(managed_globals):
            make_global_managed(host, name)
        kernels = cpu.kernels if cpu is not None else ()
        binaries = [op for op in operations(host) if op.name == "gpu.binary"]
        for binary in binaries:
            name = symbol_of(binary)
            own = [kernel for kernel in kernels if kernel.module == name]
            _embed_image(host, name, images[name], own, built_for[name])
        stubs = LaunchStubs(host)
        for launch in ops.find(host, "gpu.launch_func"):
            with launch.location, ir.InsertionPoint(launch):
                lower_launch(launch, stubs)
            launch.erase()
        for binary in binaries:
            binary.erase()
        for entry in entries:
            add_packed_call(host, entry)
        host.verify()


def _embed_image(
    host: Any, name: str, image: bytes, kernels: Sequence[CpuKernel], built_for: str
) -> None:
    image_symbol, info_symbol = f"aotc_image_{name}", f"aotc_info_{name}"
    moved = append(
        host,
        "\n".join(
            [
                f'llvm.mlir.global internal constant @"{image_symbol}"("") '
                f"{{addr_space = 0 : i32, alignment = {_IMAGE_ALIGNMENT} : i64}} "
                ": !llvm.array<0 x i8>",
                handle_text(name),
                *_info_text(name, image_symbol, info_symbol, len(image), kernels, built_for),
                _constructor_text(name, image_symbol, info_symbol, len(image)),
            ]
        ),
    )
    constant = moved[0]
    constant.attributes["value"] = ir.StringAttr.get(image)
    constant.attributes["global_type"] = ir.TypeAttr.get(
        ir.Type.parse(f"!llvm.array<{len(image)} x i8>")
    )
    drop_declarations(host, moved)


def _info_text(
    name: str,
    image_symbol: str,
    info_symbol: str,
    image_bytes: int,
    kernels: Sequence[CpuKernel],
    built_for: str,
) -> list[str]:
    """aotc_module_info and what it points to; see runtime_c/include/aotc_runtime.h."""
    table_symbol = f"aotc_kernels_{name}"
    texts = [
        string_global(f"aotc_modname_{name}", name),
        string_global(f"aotc_builtfor_{name}", built_for),
    ]
    table_type = f"!llvm.array<{len(kernels)} x {_KERNEL_ENTRY.removeprefix('!llvm.')}>"
    lines = [f"%t0 = llvm.mlir.zero : {table_type}"]
    value = "%t0"

    def put(symbol: str, position: str) -> None:
        nonlocal value
        number = len(lines)
        lines.append(f'%p{number} = llvm.mlir.addressof @"{symbol}" : !llvm.ptr')
        lines.append(
            f"%t{number} = llvm.insertvalue %p{number}, {value}[{position}] : {table_type}"
        )
        value = f"%t{number}"

    for i, kernel in enumerate(kernels):
        name_symbol = kernel_name(name, kernel.kernel)
        texts.append(string_global(name_symbol, kernel.kernel))
        put(name_symbol, f"{i}, 0")
        if kernel.symbol is not None:
            # The function itself came with the CPU kernels.
            texts.append(f'llvm.func @"{kernel.symbol}"(!llvm.ptr, !llvm.ptr)')
            put(kernel.symbol, f"{i}, 1")
        else:
            reason_symbol = f"aotc_why_{name}_{kernel.kernel}"
            texts.append(string_global(reason_symbol, kernel.why_not or "it has no CPU form"))
            put(reason_symbol, f"{i}, 2")
    lines.append(f"llvm.return {value} : {table_type}")
    texts.append(initialized_global(table_symbol, table_type, lines))

    fields = (
        ("i32", MODULE_INFO_VERSION),
        ("i32", len(kernels)),
        ("!llvm.ptr", image_symbol),
        ("i64", image_bytes),
        ("!llvm.ptr", f"aotc_modname_{name}"),
        ("!llvm.ptr", f"aotc_builtfor_{name}"),
        ("!llvm.ptr", table_symbol),
    )
    lines = [f"%s0 = llvm.mlir.zero : {_MODULE_INFO}"]
    for i, (type_, content) in enumerate(fields):
        source = (
            f'llvm.mlir.addressof @"{content}" : !llvm.ptr'
            if type_ == "!llvm.ptr"
            else f"llvm.mlir.constant({content} : {type_}) : {type_}"
        )
        lines.append(f"%f{i} = {source}")
        lines.append(f"%s{i + 1} = llvm.insertvalue %f{i}, %s{i}[{i}] : {_MODULE_INFO}")
    lines.append(f"llvm.return %s{len(fields)} : {_MODULE_INFO}")
    texts.append(initialized_global(info_symbol, _MODULE_INFO, lines))
    return texts


def _constructor_text(name: str, image_symbol: str, info_symbol: str, image_bytes: int) -> str:
    declarations = "\n".join(runtime_declarations().values())
    load, unload, handle = f"aotc_load_{name}", f"aotc_unload_{name}", module_handle(name)
    return f"""{declarations}
llvm.func internal @"{load}"() {{
  %image = llvm.mlir.addressof @"{image_symbol}" : !llvm.ptr
  %size = llvm.mlir.constant({image_bytes} : i64) : i64
  %handle = llvm.call @mgpuModuleLoad(%image, %size) : (!llvm.ptr, i64) -> !llvm.ptr
  %place = llvm.mlir.addressof @"{handle}" : !llvm.ptr
  llvm.store %handle, %place : !llvm.ptr, !llvm.ptr
  %register = llvm.mlir.addressof @aotc_module_register : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %register, %null : !llvm.ptr
  llvm.cond_br %is_there, ^register, ^done
^register:
  %info = llvm.mlir.addressof @"{info_symbol}" : !llvm.ptr
  llvm.call @aotc_module_register(%info) : (!llvm.ptr) -> ()
  llvm.br ^done
^done:
  llvm.return
}}
llvm.func internal @"{unload}"() {{
  %place = llvm.mlir.addressof @"{handle}" : !llvm.ptr
  %handle = llvm.load %place : !llvm.ptr -> !llvm.ptr
  llvm.call @mgpuModuleUnload(%handle) : (!llvm.ptr) -> ()
  llvm.return
}}
llvm.mlir.global_ctors
    ctors = [@"{load}"], priorities = [{_PRIORITY} : i32], data = [#llvm.zero]
llvm.mlir.global_dtors
    dtors = [@"{unload}"], priorities = [{_PRIORITY} : i32], data = [#llvm.zero]"""
