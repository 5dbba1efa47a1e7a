"""Runs kernels on the CPU device in tests: kernel text → library → calls with NumPy arrays."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aotc import mlir
from aotc.host.kernels import CpuKernel, CpuKernels, SyncScope
from aotc.mlir import ir, llvm, make_context
from aotc.targets.cpu.kernels import build_cpu_kernels
from aotc.toolchain.llvm_text import downlevel
from aotc.toolchain.version import Version

HOST_TARGET = "x86_64-linux-gnu.2.28"


class Block(ctypes.Structure):
    """aotc_cpu_block of aotc_runtime.h."""

    _fields_ = (
        ("block_id", ctypes.c_int64 * 3),
        ("grid_dim", ctypes.c_int64 * 3),
        ("block_dim", ctypes.c_int64 * 3),
        ("dynamic_shared", ctypes.c_void_p),
        ("dynamic_shared_bytes", ctypes.c_int64),
        ("shared", ctypes.c_void_p),
        ("threads", ctypes.c_void_p),
        ("fail", ctypes.c_void_p),
    )


_FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64))


def build(source: str, name: str = "test.mlir") -> CpuKernels:
    """The CPU kernels of MLIR text."""
    context = make_context()
    with context:
        module = ir.Module.parse(source)
        kernels = build_cpu_kernels(module, name)
        kernels.module.operation.verify()
        return kernels


def gpu_module(*functions: str) -> str:
    """A gpu.module called m."""
    return "gpu.module @m {\n" + "\n".join(functions) + "\n}"


@functools.cache
def clang_version() -> Version:
    command = [sys.executable, "-m", "ziglang", "cc", "--version"]
    return Version.parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def llvm_ir(kernels: CpuKernels) -> str:
    """The LLVM IR, for clang, with the block functions exported."""
    with kernels.module.context:
        external = ir.Attribute.parse("#llvm.linkage<external>")
        symbols = {kernel.symbol or kernel.step for kernel in kernels.kernels}
        for operation in kernels.module.body.operations:
            if ir.StringAttr(operation.attributes["sym_name"]).value in symbols:
                operation.attributes["linkage"] = external
        text = llvm.translate_module_to_llvmir(kernels.module.operation)
    return downlevel(
        text, writer=Version.parse(mlir.bindings().llvm_version), reader=clang_version()
    )


def compile_ir(text: str, folder: Path, output: str, *options: str) -> tuple[Path, str]:
    """Compiles LLVM IR by clang; the output's path, and what clang said."""
    source = folder / f"{output}.ll"
    source.write_text(text)
    command = [
        *[sys.executable, "-m", "ziglang", "cc", "-Wno-override-module", "-g0", "-fPIC"],
        *["-fno-sanitize=all", *options, str(source), "-o", str(folder / output)],
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / output, done.stderr


class CpuDevice:
    """The kernels of a module, compiled and loaded."""

    _numbers = itertools.count()

    def __init__(self, source: str, folder: Path, optimization: str = "-O3") -> None:
        self.kernels = build(source)
        refused = [kernel for kernel in self.kernels.kernels if kernel.why_not is not None]
        assert not refused, refused
        self.text = llvm_ir(self.kernels)
        output = f"kernels{next(self._numbers)}.so"
        options = ("-target", HOST_TARGET, "-shared", optimization)
        self.path, _ = compile_ir(self.text, folder, output, *options)
        self._library = ctypes.CDLL(str(self.path))
        self._kernels = {kernel.kernel: kernel for kernel in self.kernels.kernels}

    def run(
        self,
        kernel: str,
        grid: Sequence[int] | int,
        block: Sequence[int] | int,
        *arguments: Any,
        dynamic_shared_bytes: int = 0,
    ) -> None:
        """Launches `kernel`: every block of the grid, one after the other."""
        grid_dim = _three(grid)
        for z, y, x in itertools.product(*(range(size) for size in reversed(grid_dim))):
            self.run_block(
                kernel,
                (x, y, z),
                grid_dim,
                block,
                *arguments,
                dynamic_shared_bytes=dynamic_shared_bytes,
            )

    def run_block(
        self,
        kernel: str,
        block_id: tuple[int, int, int],
        grid: Sequence[int] | int,
        block: Sequence[int] | int,
        *arguments: Any,
        dynamic_shared_bytes: int = 0,
    ) -> None:
        """Runs one block. Other threads may run others meanwhile."""
        found = self._kernels[kernel]
        function = getattr(self._library, str(found.symbol or found.step))
        function.restype = None if found.step is None else ctypes.c_int32
        flat = [part for argument in arguments for part in _flatten(argument)]
        parameters = (ctypes.c_void_p * max(1, len(flat)))(
            *[part.ctypes.data_as(ctypes.c_void_p).value for part in flat]
        )
        sizes = _three(block)
        threads = math.prod(sizes)
        padded = -(-threads // 32) * 32
        # Poisoned: what a kernel reads without having written it does not look like a result.
        dynamic, shared, own = (
            np.full(count // 128 + 2, 0xA5, np.dtype("V128")).view(np.uint8)
            for count in (dynamic_shared_bytes, found.shared_bytes, found.thread_bytes * padded)
        )
        place = Block(
            block_id,
            _three(grid),
            sizes,
            _aligned(dynamic),
            dynamic_shared_bytes,
            _aligned(shared),
            _aligned(own),
            ctypes.cast(_failure, ctypes.c_void_p),
        )
        if found.step is None:
            function(parameters, ctypes.byref(place))
            return
        run_steps(
            found,
            threads,
            lambda thread, state: int(
                function(parameters, ctypes.byref(place), ctypes.c_int64(thread), state)
            ),
        )


class DeadlockError(Exception):
    """Threads wait at a barrier that others do not come to."""


def run_steps(kernel: CpuKernel, threads: int, step: Callable[[int, int], int]) -> None:
    """The runtime's rules, said once more: warps go on when all lanes stopped, blocks likewise."""
    states = [step(thread, 0) for thread in range(threads)]
    while any(states):
        for warp in range(0, threads, 32):
            lanes = range(warp, min(warp + 32, threads))
            # Of lanes that wait at different exchanges, those at the first one go on.
            while waiting := [
                states[lane]
                for lane in lanes
                if states[lane] and kernel.sync_points[states[lane] - 1].scope is SyncScope.WARP
            ]:
                first = min(waiting)
                for lane in [lane for lane in lanes if states[lane] == first]:
                    states[lane] = step(lane, first)
        if len(set(states)) != 1:
            raise DeadlockError(states)
        if states[0]:
            states = [step(thread, states[thread]) for thread in range(threads)]


def _aligned(memory: np.ndarray[Any, Any]) -> int:
    address = memory.ctypes.data
    return int(-(-address // 128) * 128)


def _fail(block: int, message: bytes, thread_id: Any) -> None:
    # A kernel cannot be left from here; the process can.
    os.write(2, b"kernel failure: " + message + b"\n")
    os._exit(86)


_failure = _FAIL(_fail)


def _three(size: Sequence[int] | int) -> tuple[int, int, int]:
    sizes = [size] if isinstance(size, int) else list(size)
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z


def _flatten(argument: Any) -> list[np.ndarray[Any, Any]]:
    """A kernel argument as gpu.launch_func passes it: a memref in its descriptor's parts.

    An array of raw bytes (dtype V) is one value, passed where it lies.
    """
    if isinstance(argument, np.ndarray) and argument.dtype.kind == "V":
        return [argument]
    if not isinstance(argument, np.ndarray):
        return [np.asarray(argument)]
    numbers = [argument.ctypes.data, argument.ctypes.data, 0, *argument.shape]
    numbers += [stride // argument.itemsize for stride in argument.strides]
    return [np.array(number, np.int64) for number in numbers]
