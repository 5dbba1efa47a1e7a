"""Kernels and C loops → libraries, loaded; calls of their functions with NumPy arrays."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import numpy as np

from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain
from bench.measure import FailedError

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent

Array = np.ndarray[Any, Any]


class Kernels:
    """What `aotc build --emit shared` makes of one module."""

    def __init__(self, source: Path, folder: Path, *options: str) -> None:
        self._name = source.stem
        command = [sys.executable, "-m", "aotc", "build", str(source), "--emit", "shared", "-q"]
        # One chip: its image is never used here, and more would cost time.
        command += ["--chip", "sm_80", "-o", f"{folder}/", *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        built = subprocess.run(
            command, check=False, env=environment, stderr=subprocess.PIPE, text=True
        )
        if built.returncode != 0:
            raise FailedError(f"aotc build {source.name}: {built.stderr.rstrip()}")
        self._library = ctypes.CDLL(str(folder / "lib" / f"lib{self._name}.so"))
        self._status = getattr(self._library, f"{self._name}_status")
        self._last_error = getattr(self._library, f"{self._name}_last_error")
        self._last_error.restype = ctypes.c_char_p
        self._clear_error = getattr(self._library, f"{self._name}_clear_error")

    def call(self, entry: str, *arrays: Array) -> Callable[[], None]:
        """A call of an entry with these arrays, to be made any number of times."""
        function = getattr(self._library, f"_mlir_ciface_{entry}")
        # With the arrays: a descriptor does not keep the memory that it is for.
        held = [(ctypes.byref(_descriptor(array)), array) for array in arrays]

        def run() -> None:
            function(*(descriptor for descriptor, _ in held))
            if self._status() != 0:
                message = self._last_error().decode()
                self._clear_error()
                raise FailedError(message)

        return run


def _descriptor(array: Array) -> ctypes.Structure:
    """MLIR's memref descriptor of a contiguous array."""
    assert array.flags.c_contiguous

    class Descriptor(ctypes.Structure):
        _fields_ = (
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * array.ndim),
            ("strides", ctypes.c_int64 * array.ndim),
        )

    strides = [stride // array.itemsize for stride in array.strides]
    sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
    place = array.ctypes.data
    return Descriptor(place, place, 0, sizes, (ctypes.c_int64 * array.ndim)(*strides))


def find_openmp() -> Path | None:
    """LLVM's OpenMP library, or Intel's, which is the same to programs; zig brings none."""
    for folder in [*sorted(Path("/usr/lib").glob("llvm-*/lib"), reverse=True), Path(sys.prefix)]:
        for name in ("libomp.so", "libomp.so.5", "lib/libiomp5.so"):
            if (folder / name).exists():
                return folder / name
    found = find_library("omp")
    return Path(found) if found else None


class Loops:
    """The C loops of reference.c, compiled as aotc compiles kernels (`is_native` False), or for
    all that this machine's processor has."""

    def __init__(
        self,
        folder: Path,
        *,
        optimization: str,
        threads: int,
        openmp: Path | None,
        is_native: bool,
    ) -> None:
        self._threads = threads
        toolchain = Toolchain(os.environ)
        output = folder / f"reference-{'native' if is_native else 'baseline'}.so"
        # The options of aotc's HostCompiler, which names no processor: the baseline of the
        # architecture.
        command = [
            *toolchain.zig_cc.command,
            *("-target", HostTarget.native().triple),
            *(["-march=native"] if is_native else []),
            *(optimization, "-fPIC", "-fvisibility=hidden", "-fno-sanitize=all", "-std=c11"),
            *("-Wall", "-Wextra", "-Werror", "-pedantic", "-shared"),
            *(["-fopenmp", str(openmp)] if openmp else []),
            *("-x", "c", str(HERE / "reference.c"), "-x", "none", "-lpthread", "-o", str(output)),
        ]
        if openmp:
            # The compiler takes the library as a file, before any "-x".
            command.remove(str(openmp))
            command.append(str(openmp))
            ctypes.CDLL(str(openmp), mode=ctypes.RTLD_GLOBAL)
        Runner(os.environ).run(command, making=output.name)
        self._library = ctypes.CDLL(str(output))

    @property
    def threading(self) -> str:
        """What spreads the loops over threads: OpenMP or pthreads."""
        function = self._library.reference_threading
        function.restype = ctypes.c_char_p
        name: bytes = function()
        return name.decode()

    def call(self, function: str, *arguments: Array | int) -> Callable[[], None]:
        """A call of a function of reference.c, with the number of threads after `arguments`."""
        callee = getattr(self._library, function)
        callee.argtypes = [
            *(ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_int64 for a in arguments),
            ctypes.c_int,
        ]

        def run() -> None:
            values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
            error = callee(*values, self._threads)
            if error != 0:
                raise FailedError(f"{function}: {os.strerror(error)}")

        return run
