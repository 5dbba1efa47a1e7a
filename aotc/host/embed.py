"""Host module + images + CPU kernels → one host module in the LLVM dialect, ready to translate.

Each `gpu.binary` becomes

* a constant with the image, and a constructor that passes it to `mgpuModuleLoad` before `main`, or
  when a library is opened (the function only remembers the image);
* a table of the kernels' CPU functions, which the same constructor passes to `aotc_module_register`
  through a weak reference. Upstream's runtime does not have that function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.emit.table import packed_symbol
from aotc.host.assertions import return_from_failed_checks
from aotc.host.device_constants import use_device_copies
from aotc.host.exports import add_packed_calls, internalize
from aotc.host.kernels import CpuKernel, CpuKernels, declared, kernel_table, kernel_table_texts
from aotc.host.large_results import pass_large_results_by_pointer
from aotc.host.launches import LaunchStubs, lower_launch
from aotc.host.llvm_dialect import (
    Initializer,
    append,
    drop_declarations,
    handle_text,
    merge,
    module_handle,
    runtime_declarations,
    string_global,
)
from aotc.host.managed_globals import make_globals_managed
from aotc.host.merge_kernels import check_cpu_kernels, merge_cpu_kernels
from aotc.host.streams import use_one_stream
from aotc.host.weak_calls import call_through_weak_references
from aotc.host.weights import WeightsFile, use_weights
from aotc.manifest import Entry
from aotc.mlir import ir
from aotc.ops import symbol_of

MODULE_INFO_VERSION = 5  # AOTC_MODULE_INFO_VERSION of runtime_c/include/aotc_runtime.h
# The driver reads fat binaries in place, as 8-byte words. This is the size of a cache line.
_IMAGE_ALIGNMENT = 64
_PRIORITY = 123  # upstream's translation of gpu.binary uses the same
_MODULE_INFO = "!llvm.struct<(i32, i32, ptr, i64, ptr, ptr, ptr, i32, i32, ptr)>"


def embed(
    host: Any,
    images: Mapping[str, bytes],
    cpu: CpuKernels | None,
    entries: Sequence[Entry],
    *,
    built_for: Mapping[str, str],
    managed_globals: frozenset[str] = frozenset(),
    lowered_entries: Sequence[str] = (),
    weights: WeightsFile | None = None,
    only_capability: Mapping[str, int] = MappingProxyType({}),
    pdl_kernels: Mapping[str, Sequence[str]],
    initials: Mapping[str, bytes | memoryview] = MappingProxyType({}),
    kernels_apart: bool = False,
) -> None:
    """Changes `host` in place.

    - `images` maps a gpu.module's name to its image, `built_for` to a description of the image for
      messages.
    - `managed_globals` are the variables that are passed to kernels.
    - `lowered_entries` are functions that are exported unchanged.
    - `weights` is the file with the constants that `host` only declares.
    - `only_capability` is the compute capability of the only GPUs that can use an image (90: 9.0).
    - `pdl_kernels` are the kernels of an image for programmatic dependent launch: they may begin
      before the work ahead of them ends.
    - `initials` maps the variables for the initial values of the state's fields to these values.
    - With `kernels_apart`, `host` only declares the functions of `cpu`, which are in other objects.
    """
    with host.context, ir.Location.unknown():
        return_from_failed_checks(host, entries)
        call_through_weak_references(host)
        internalize(host, entries, lowered_entries)
        if cpu is not None and kernels_apart:
            check_cpu_kernels(cpu, host)
            append(host, "\n".join(declared(kernel, hidden=True) for kernel in cpu.kernels))
        elif cpu is not None:
            merge_cpu_kernels(cpu, host.opview)
        merge(host, ir.Module.parse("\n".join(runtime_declarations().values())).operation)
        # This comes first: a copy is made of the variable itself, which may be in a file.
        make_globals_managed(host, sorted(managed_globals))
        if weights is not None:
            use_weights(host, weights)
        use_device_copies(host)
        kernels = cpu.kernels if cpu is not None else ()
        binaries = [op for op in ops.content(host) if op.name == "gpu.binary"]
        for binary in binaries:
            name = symbol_of(binary)
            own = [kernel for kernel in kernels if kernel.module == name]
            use = _Use(only_capability.get(name, 0), pdl_kernels.get(name, ()))
            _embed_image(host, name, images[name], own, built_for[name], use)
        stubs = LaunchStubs(host)
        streams = use_one_stream(host)
        for launch in ops.find(host, "gpu.launch_func"):
            own_stream = streams.get(symbol_of(ops.enclosing(launch, "llvm.func")))
            with launch.location, ir.InsertionPoint(launch):
                lower_launch(launch, stubs, own_stream)
            ops.erase(launch)
        for binary in binaries:
            ops.erase(binary)
        for symbol, initial in initials.items():
            _embed_initial(host, symbol, initial)
        add_packed_calls(host, entries)
        pass_large_results_by_pointer(host, [packed_symbol(entry) for entry in entries])
        host.verify()


def _embed_initial(host: Any, symbol: str, content: bytes | memoryview) -> None:
    """Adds a constant that the table of the state's fields, in another object, refers to."""
    (constant,) = append(
        host,
        f'llvm.mlir.global external hidden constant @"{symbol}"() {{addr_space = 0 : i32}} '
        f": !llvm.array<{len(content)} x i8>",
    )
    type_ = ir.RankedTensorType.get([len(content)], ir.IntegerType.get_signless(8))
    constant.attributes["value"] = ir.DenseResourceElementsAttr.get_from_buffer(
        content, "initial", type_
    )


class _Use(Struct, frozen=True):
    """How an image's kernels are launched: see `embed`."""

    only_capability: int
    pdl_kernels: Sequence[str]


def _embed_image(
    host: Any,
    name: str,
    image: bytes,
    kernels: Sequence[CpuKernel],
    built_for: str,
    use: _Use,
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
                *_info_text(name, image_symbol, info_symbol, len(image), kernels, built_for, use),
                _constructor_text(name, image_symbol, info_symbol, len(image)),
            ]
        ),
    )
    constant = moved[0]
    constant.attributes["value"] = ir.StringAttr.get(image)
    constant.attributes["global_type"] = ir.TypeAttr.get(
        ir.Type.parse(f"!llvm.array<{len(image)} x i8>")
    )
    drop_declarations(moved)


def _info_text(
    name: str,
    image_symbol: str,
    info_symbol: str,
    image_bytes: int,
    kernels: Sequence[CpuKernel],
    built_for: str,
    use: _Use,
) -> list[str]:
    """aotc_module_info and the variables that it points to (runtime_c/include/aotc_runtime.h)."""
    texts = [
        string_global(f"aotc_modname_{name}", name),
        string_global(f"aotc_builtfor_{name}", built_for),
    ]
    texts += kernel_table_texts(name, kernels)
    info = Initializer(_MODULE_INFO)
    info.put_number(MODULE_INFO_VERSION, "i32", 0)
    info.put_number(len(kernels), "i32", 1)
    info.put_address(image_symbol, 2)
    info.put_number(image_bytes, "i64", 3)
    info.put_address(f"aotc_modname_{name}", 4)
    info.put_address(f"aotc_builtfor_{name}", 5)
    info.put_address(kernel_table(name), 6)
    info.put_number(use.only_capability, "i32", 7)
    if use.pdl_kernels:
        names = Initializer(f"!llvm.array<{len(use.pdl_kernels)} x ptr>")
        for i, kernel in enumerate(use.pdl_kernels):
            symbol = f"aotc_pdl_{name}.{i}"
            texts.append(string_global(symbol, kernel))
            names.put_address(symbol, i)
        texts.append(names.text(f"aotc_pdl_{name}"))
        info.put_number(len(use.pdl_kernels), "i32", 8)
        info.put_address(f"aotc_pdl_{name}", 9)
    texts.append(info.text(info_symbol))
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
