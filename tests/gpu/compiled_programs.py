"""Programs around kernels that were compiled before: as images in gpu.binary, and in a constant.

The images are aotc's own, of a small kernel; what is tested is how they travel.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from helpers.command import build_here

from samples import Case, Values, rng

CHIPS = ("sm_80", "sm_90")

KERNEL = """
gpu.module @device {
  gpu.func @scale(%x: memref<?xi32>, %factor: i32) kernel {
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %width = gpu.block_dim x
    %first = arith.muli %b, %width : index
    %i = arith.addi %first, %t : index
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %is_inside = arith.cmpi ult, %i, %n : index
    scf.if %is_inside {
      %v = memref.load %x[%i] : memref<?xi32>
      %scaled = arith.muli %v, %factor : i32
      memref.store %scaled, %x[%i] : memref<?xi32>
    }
    gpu.return
  }
}
"""
ENTRY = """
func.func @scale(%x: memref<?xi32>, %factor: i32) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  %blocks = arith.ceildivui %n, %c128 : index
  gpu.launch_func @device::@scale blocks in (%blocks, %c1, %c1) threads in (%c128, %c1, %c1)
      args(%x : memref<?xi32>, %factor : i32)
  return
}
"""
# Seven times 6, by a kernel whose image is a constant of the program: what is left when upstream
# has lowered everything.
MAIN = """
llvm.mlir.global internal constant @image("@IMAGE@\\00") {{addr_space = 0 : i32}}
llvm.mlir.global internal constant @name("scale\\00") {{addr_space = 0 : i32}}
llvm.func @main() -> i32 {{
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c6 = llvm.mlir.constant(6 : i32) : i32
  %c7 = llvm.mlir.constant(7 : i32) : i32
  %slots_count = llvm.mlir.constant(6 : i64) : i64
  %no_bytes = llvm.mlir.constant(0 : i32) : i32
  %none = llvm.mlir.zero : !llvm.ptr
  %is_shared = llvm.mlir.constant(1 : i8) : i8
  %bytes = llvm.mlir.constant(4 : i64) : i64
  %size = llvm.mlir.constant({size} : i64) : i64
  %image = llvm.mlir.addressof @image : !llvm.ptr
  %name = llvm.mlir.addressof @name : !llvm.ptr
  %module = llvm.call @mgpuModuleLoad(%image, %size) : (!llvm.ptr, i64) -> !llvm.ptr
  %kernel = llvm.call @mgpuModuleGetFunction(%module, %name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %stream = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
  %x = llvm.call @mgpuMemAlloc(%bytes, %none, %is_shared) : (i64, !llvm.ptr, i8) -> !llvm.ptr
  llvm.store %c6, %x : i32, !llvm.ptr
  %values = llvm.alloca %c1 x !llvm.struct<(ptr, ptr, i64, i64, i64, i32)> : (i64) -> !llvm.ptr
  %slots = llvm.alloca %slots_count x !llvm.ptr : (i64) -> !llvm.ptr
  {stores}
  llvm.call @mgpuLaunchKernel(%kernel, %c1, %c1, %c1, %c1, %c1, %c1, %no_bytes, %stream, %slots,
                              %none, %slots_count)
    : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.call @mgpuStreamSynchronize(%stream) : (!llvm.ptr) -> ()
  llvm.call @mgpuStreamDestroy(%stream) : (!llvm.ptr) -> ()
  %product = llvm.load %x : !llvm.ptr -> i32
  llvm.call @mgpuMemFree(%x, %none) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.call @mgpuModuleUnload(%module) : (!llvm.ptr) -> ()
  llvm.return %product : i32
}}
llvm.func @mgpuModuleLoad(!llvm.ptr, i64) -> !llvm.ptr
llvm.func @mgpuModuleGetFunction(!llvm.ptr, !llvm.ptr) -> !llvm.ptr
llvm.func @mgpuModuleUnload(!llvm.ptr)
llvm.func @mgpuStreamCreate() -> !llvm.ptr
llvm.func @mgpuStreamSynchronize(!llvm.ptr)
llvm.func @mgpuStreamDestroy(!llvm.ptr)
llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
llvm.func @mgpuMemFree(!llvm.ptr, !llvm.ptr)
llvm.func @mgpuLaunchKernel(!llvm.ptr, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr,
                            !llvm.ptr, i64)
"""
IN_A_CONSTANT = "compiled_constant"


def _quoted(data: bytes) -> str:
    """Bytes within an MLIR string literal."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data
    )


def _object(chip: str, kind: str, data: bytes) -> str:
    return f'#gpu.object<#nvvm.target<chip = "{chip}">, {kind} = "{_quoted(data)}">'


def _module(*objects: str, handler: str = "") -> str:
    chosen = f" <{handler}>" if handler else ""
    return _container(f"gpu.binary @device{chosen} [{', '.join(objects)}]")


def _container(device: str) -> str:
    """The module of the entry, around what holds its kernel."""
    return f"module attributes {{gpu.container_module}} {{\n{device}\n{ENTRY}}}\n"


def _main(ptx: bytes) -> str:
    values = ("%x", "%x", "%c0", "%c1", "%c1", "%c7")
    types = ("!llvm.ptr", "!llvm.ptr", "i64", "i64", "i64", "i32")
    stores = "\n  ".join(
        f"%s{i} = llvm.getelementptr %values[0, {i}] : (!llvm.ptr) -> !llvm.ptr, "
        f"!llvm.struct<(ptr, ptr, i64, i64, i64, i32)>\n  "
        f"llvm.store {value}, %s{i} : {type_}, !llvm.ptr\n  "
        f"%a{i} = llvm.getelementptr %slots[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n  "
        f"llvm.store %s{i}, %a{i} : !llvm.ptr, !llvm.ptr"
        for i, (value, type_) in enumerate(zip(values, types, strict=True))
    )
    return MAIN.format(size=len(ptx) + 1, stores=stores).replace("@IMAGE@", _quoted(ptx))


def _images(folder: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Cubins and PTX of the kernel, by chip."""
    source = folder / "kernel.mlir"
    source.write_text(_container(KERNEL))
    build_here(source, "--emit", "cubin,ptx", "--chip", ",".join(CHIPS), "-o", f"{folder}/")
    cubins, ptxs = (
        {chip: (folder / f"kernel.device.{chip}.{kind}").read_bytes() for chip in CHIPS}
        for kind in ("cubin", "ptx")
    )
    return cubins, ptxs


def sources() -> dict[str, str]:
    """The modules, by program."""
    with tempfile.TemporaryDirectory() as folder:
        cubins, ptxs = _images(Path(folder))
    ptx = _object("sm_80", "assembly", ptxs["sm_80"])
    all_cubins = [_object(chip, "bin", data) for chip, data in cubins.items()]
    return {
        # The driver chooses among several, and compiles PTX where none fits.
        "compiled_several": _module(*all_cubins, ptx),
        "compiled_ptx": _module(ptx),
        # Who names a handler names one object: PTX here.
        "compiled_chosen": _module(
            all_cubins[0], ptx, all_cubins[1], handler="#gpu.select_object<1 : i64>"
        ),
        "compiled_cubin": _module(all_cubins[1]),
        IN_A_CONSTANT: _main(ptxs["sm_80"]),
    }


def _values(name: str) -> Values:
    x = rng(name).integers(-(2**20), 2**20, 1003).astype(np.int32)
    return Values({"x": x, "factor": -7}, {"x": -7 * x}, {})


def _case(program: str) -> Case:
    least = {"least_major": 9, "only_major": 9} if program == "compiled_cubin" else {}
    return Case(program, program, partial(_values, program), 0, runs_on_cpu=False, **least)


CASES: Mapping[str, Case] = {
    name: _case(name)
    for name in ("compiled_several", "compiled_ptx", "compiled_chosen", "compiled_cubin")
}
