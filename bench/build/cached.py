"""What the cache spares: builds of one module after changes, and of fifty modules.

Each time is of a whole process, the median of the rounds; each round begins with a cache that has
the build before the change alone.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

KERNELS = 50
MODULES = 50
CHIP = "sm_90"

_KERNEL = """
gpu.module @module_{i} {{
  gpu.func @kernel(%x: memref<?xf32>) kernel {{
    %b = gpu.block_id x
    %w = gpu.block_dim x
    %t = gpu.thread_id x
    %first = arith.muli %b, %w : index
    %at = arith.addi %first, %t : index
    %v = memref.load %x[%at] : memref<?xf32>
    %c = arith.constant {factor} : f32
    %p = arith.mulf %v, %c : f32
    %e = math.exp %p : f32
    memref.store %e, %x[%at] : memref<?xf32>
    gpu.return
  }}
}}
func.func @entry_{i}(%x: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c{threads} = arith.constant {threads} : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %blocks = arith.divui %n, %c{threads} : index
  gpu.launch_func @module_{i}::@kernel
      blocks in (%blocks, %c1, %c1) threads in (%c{threads}, %c1, %c1) args(%x : memref<?xf32>)
  return
}}
"""


def module(factor: float = 2.0, threads: int = 128, comment: str = "") -> str:
    """Fifty kernels, each in a gpu.module; `factor` is in the last one, `threads` in the host
    function that launches it."""
    parts = [_KERNEL.format(i=i, factor=1.5 + i, threads=128) for i in range(KERNELS - 1)]
    last = _KERNEL.format(i=KERNELS - 1, factor=factor, threads=threads)
    body = "".join([*parts, last])
    return f"{comment}module attributes {{gpu.container_module}} {{\n{body}\n}}\n"


def measure_cached(folder: Path, rounds: int) -> dict[str, float]:
    """Seconds of each kind of build, by what it is called."""
    source, cache = folder / "fifty.mlir", folder / "cache"
    out = folder / "fifty"

    def build() -> float:
        return _seconds("build", str(source), "--chip", CHIP, "--cache", str(cache), "-o", str(out))

    changes: dict[str, str] = {
        "warm: the same again": module(),
        "a comment": module(comment="// Another word.\n"),
        "a host function": module(threads=64),
        "one kernel of fifty": module(factor=3.0),
    }
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, text in changes.items():
            shutil.rmtree(cache, ignore_errors=True)
            source.write_text(module())
            found.setdefault("cold: fifty kernels", []).append(build())
            source.write_text(text)
            found.setdefault(name, []).append(build())
    medians = {name: statistics.median(times) for name, times in found.items()}
    return {**medians, **_many(folder, rounds)}


def _many(folder: Path, rounds: int) -> dict[str, float]:
    """Fifty modules, at -j1 and -j2 in turns: with an empty cache, and again."""
    sources = []
    for number in range(MODULES):
        source = folder / f"one_{number}.mlir"
        source.write_text(_one(number))
        sources.append(str(source))
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for jobs in ("1", "2"):
            cache = folder / f"cache-{jobs}"
            shutil.rmtree(cache, ignore_errors=True)
            words = ("build", *sources, "--chip", CHIP, "-q", "-j", jobs, "--cache", str(cache))
            for name in (f"fifty modules, -j{jobs}", f"fifty modules again, -j{jobs}"):
                found.setdefault(name, []).append(_seconds(*words, "-o", f"{folder}/out/"))
    return {name: statistics.median(times) for name, times in sorted(found.items())}


def _one(number: int) -> str:
    return f"""
func.func @scale_{number}(%x: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c = arith.constant {number}.5 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  affine.parallel (%i) = (0) to (symbol(%n)) {{
    %v = affine.load %x[%i] : memref<?xf32>
    %p = arith.mulf %v, %c : f32
    affine.store %p, %x[%i] : memref<?xf32>
  }}
  return
}}
"""


def _seconds(*words: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "aotc", *words], check=True)
    return time.perf_counter() - begin


def report(times: dict[str, float], write: Callable[[str], object] = print) -> None:
    write(f"\n{'with the cache':<32}{'s':>8}")
    for name, seconds in times.items():
        write(f"{name:<32}{seconds:>8.2f}")
