"""Files to inspect: what aotc makes of a small module, and fat binaries in each compression."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from helpers.command import build_here

from aotc.toolchain import Toolchain

MODULE = """
func.func @scale(%x: memref<64xf32>, %a: f32) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%i, %j, %k) in (%l = %c1, %m = %c1, %n = %c1)
             threads(%t, %u, %v) in (%o = %c64, %p = %c1, %q = %c1) {
    %e = memref.load %x[%t] : memref<64xf32>
    %s = arith.mulf %e, %a : f32
    memref.store %s, %x[%t] : memref<64xf32>
    gpu.terminator
  }
  return
}
"""
KERNEL = "scale_kernel"


@dataclass(frozen=True)
class Built:
    """The files of one build of `MODULE`, for sm_80, sm_90 and with PTX."""

    folder: Path

    @property
    def executable(self) -> Path:
        return self.folder / "small"

    @property
    def shared(self) -> Path:
        return self.folder / "lib" / "libsmall.so"

    @property
    def static(self) -> Path:
        return self.folder / "lib" / "libsmall.a"

    @property
    def object(self) -> Path:
        return self.folder / "small.o"

    @property
    def fatbin(self) -> Path:
        return self.folder / "small_kernels.fatbin"

    @property
    def manifest(self) -> Path:
        return self.folder / "small.json"

    def cubin(self, chip: str = "sm_80") -> Path:
        return self.folder / f"small_kernels.{chip}.cubin"

    @property
    def ptx(self) -> Path:
        return self.folder / "small_kernels.sm_80.ptx"

    @property
    def hosts(self) -> tuple[Path, ...]:
        return (self.executable, self.shared, self.static, self.object)


def build_small(folder: Path) -> Built:
    """Builds `MODULE` into `folder`."""
    source = folder / "small.mlir"
    source.write_text(MODULE, encoding="utf-8")
    out = folder / "out"
    options = ["--chip", "sm_80,sm_90", "--ptx", "compute_80", "-q", "-o", f"{out}/"]
    kinds = "exe,shared,static,obj,fatbin,cubin,ptx,manifest"
    build_here(source, "--emit", kinds, *options)
    return Built(out)


def pack(images: list[tuple[str, str, Path]], out: Path, mode: str) -> Path:
    """A fat binary of (kind, chip's number, file) in a mode of fatbinary's `--compress-mode`."""
    command = [
        *Toolchain(os.environ).tool("fatbinary").command,
        *("--64", f"--create={out}", f"--compress-mode={mode}"),
        *(["--compress-all"] if mode != "none" else []),
        *(f"--image3=kind={kind},sm={number},file={file}" for kind, number, file in images),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return out
