"""Builds MLIR text into a shared library and calls its entries, on the CPU device."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from aotc import build
from aotc.attributes import RUNS_ON
from aotc.cli import run

_SCALARS = {
    "bool": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
_NUMPY = {
    "bool": np.bool_,
    "i32": np.int32,
    "c64": np.complex64,
    "c128": np.complex128,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


def build_library(text: str, folder: Path, *options: str, name: str = "program") -> Library:
    """What `aotc build --emit shared,manifest` makes of `text`, loaded."""
    source = folder / f"{name}.mlir"
    source.write_text(text, encoding="utf-8")
    # One chip: kernels run on the CPU here, and the other images would only cost time.
    chips = [] if "--chip" in options else ["--chip", "sm_80"]
    command = ["build", str(source), "--emit", "shared,manifest", "-o", f"{folder}/", "-q"]
    assert run([*command, *chips, *options]) == 0
    return Library(folder / "lib" / f"lib{name}.so", folder / f"{name}.json")


def run_both(text: str, folder: Path, *arguments: Any) -> tuple[str, list[Any]]:
    """What the kernel for GPUs is, and the last argument after a call of the CPU's kernel and after
    one of the GPUs'."""
    (folder / "cpu").mkdir()
    module, for_gpus = build_for_gpus(text, folder)
    found = []
    for library in (build_library(text, folder / "cpu", "-O1"), for_gpus):
        given = [x.copy() for x in arguments]
        library.call("f", *given)
        found.append(given[-1])
    return module, found


def build_for_gpus(text: str, folder: Path) -> tuple[str, Library]:
    """What the kernels for GPUs are, and a library in which the CPU runs them."""
    module = build(
        text, name="gpus", emit="mlir", out=folder / "x.mlir", chips="sm_90", cpu_kernels=False
    ).path.read_text()
    # The CPU device would refuse kernels that are for GPUs alone.
    anywhere = re.sub(rf'{RUNS_ON} = "[^"]*"(, )?', "", module)
    (folder / "gpu").mkdir()
    return module, build_library(anywhere, folder / "gpu", "-O1")


class Library:
    """A shared library's entries, called with NumPy arrays for memrefs."""

    def __init__(self, library: Path, manifest: Path) -> None:
        self.manifest: dict[str, Any] = json.loads(manifest.read_text())
        self._library = ctypes.CDLL(str(library))
        self._name = library.stem.removeprefix("lib")
        self._entries = {entry["name"]: entry for entry in self.manifest["entries"]}

    def call(self, entry: str, *arguments: Any) -> Any:
        """What the entry returns: None, a number, an array, or a tuple of them.

        Arrays that come back are copies; what they were copied from is not freed. An error of the
        runtime, such as a launch that the device refuses, is one of the test.
        """
        result = self._called(entry, *arguments)
        if getattr(self._library, f"{self._name}_status")():
            last_error = getattr(self._library, f"{self._name}_last_error")
            last_error.restype = ctypes.c_char_p
            raise AssertionError(last_error().decode())
        return result

    def _called(self, entry: str, *arguments: Any) -> Any:
        description = self._entries[entry]
        function = getattr(self._library, f"_mlir_ciface_{entry}")
        results = description["results"]
        values = [
            _argument(value, argument)
            for value, argument in zip(description["arguments"], arguments, strict=True)
        ]
        if len(results) == 1 and results[0]["shape"] is None:
            function.restype = _SCALARS[results[0]["dtype"]]
            return function(*values)
        function.restype = None
        if not results:
            function(*values)
            return None
        packed = _packed_type(results)()
        function(ctypes.byref(packed), *values)
        read = tuple(_result(v, getattr(packed, f"r{i}")) for i, v in enumerate(results))
        return read if len(read) > 1 else read[0]


def _descriptor_type(rank: int) -> type[ctypes.Structure]:
    sizes = [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]

    class Descriptor(ctypes.Structure):
        _fields_ = (
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            *(sizes if rank else []),
        )

    return Descriptor


def _argument(value: dict[str, Any], argument: Any) -> Any:
    if value["shape"] is None:
        return _SCALARS[value["dtype"]](argument)
    assert isinstance(argument, np.ndarray)
    rank = argument.ndim
    assert rank == len(value["shape"])
    descriptor = _descriptor_type(rank)(argument.ctypes.data, argument.ctypes.data, 0)
    if rank:
        descriptor.sizes[:] = argument.shape
        descriptor.strides[:] = [stride // argument.itemsize for stride in argument.strides]
    return ctypes.byref(descriptor)


def _packed_type(results: list[dict[str, Any]]) -> type[ctypes.Structure]:
    class Packed(ctypes.Structure):
        _fields_ = tuple(
            (
                f"r{i}",
                _SCALARS[value["dtype"]]
                if value["shape"] is None
                else _descriptor_type(len(value["shape"])),
            )
            for i, value in enumerate(results)
        )

    return Packed


def _result(value: dict[str, Any], content: Any) -> Any:
    if value["shape"] is None:
        return content
    dtype = np.dtype(_NUMPY.get(value["dtype"]) or value["dtype"])
    rank = len(value["shape"])
    sizes = tuple(content.sizes) if rank else ()
    strides = tuple(stride * dtype.itemsize for stride in content.strides) if rank else ()
    start = content.aligned + content.offset * dtype.itemsize
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    buffer = (ctypes.c_char * (last + dtype.itemsize)).from_address(start)
    return np.ndarray(sizes, dtype, buffer, 0, strides).copy()
