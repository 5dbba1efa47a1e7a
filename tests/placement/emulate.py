"""Calls the entries of a library on a fake GPU that works as late as it may.

    emulate.py libprogram.so < requests > answers      (both JSON)

What a launch does is done here, by the kernel's name, when its stream is waited for: a copy or a
wait that is missing shows in the numbers. A request is {"entry", "arguments", "has_result"}; an
argument is a number, or a list of numbers in the fake GPU's memory. Each entry is called twice.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections import Counter
from typing import Any

import numpy as np

_Launched = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
_Run = ctypes.CFUNCTYPE(None, ctypes.c_int)
_ALLOCATIONS = ("cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocFromPoolAsync")
_FREES = ("cuMemFree_v2", "cuMemFreeAsync")
_WAITS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")


def _fill(a: Any) -> None:
    a[:] = np.arange(len(a))


def _inc(a: Any) -> None:
    a += 1


def _add(a: Any, b: Any) -> None:
    b += a


def _next(a: Any, b: Any) -> None:
    b[:] = a + 1


def _last(a: Any, s: Any) -> None:
    s[...] = a[-1]


# Kernel → (what it does, the sizes of its memrefs)
_KERNELS: dict[str, tuple[Any, list[int | None]]] = {
    "fill": (_fill, [32]),
    "inc": (_inc, [32]),
    "inc_part": (_inc, [16]),
    "add": (_add, [32, 32]),
    "next": (_next, [32, 32]),
    "last": (_last, [32, None]),
}


KERNEL_NAMES = tuple(_KERNELS)


class Gpu:
    """The fake driver of this process."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._driver.fake_call.restype = ctypes.c_char_p
        self._launches: list[tuple[Any, list[Any]]] = []
        self._keep = (_Launched(self._launched), _Run(self._run))
        self._driver.fake_work_late(*self._keep)
        self._seen = 0

    def _launched(self, kernel: bytes, parameters: Any) -> int:
        work, sizes = _KERNELS[kernel.decode()]
        views, position = [], 0
        for size in sizes:
            values = [
                ctypes.cast(parameters[position + i], ctypes.POINTER(ctypes.c_int64))[0]
                for i in range(3 if size is None else 5)
            ]
            views.append((values[1] + 4 * values[2], size))
            position += len(values)
        self._launches.append((work, views))
        return len(self._launches) - 1

    def _run(self, number: int) -> None:
        work, views = self._launches[number]
        work(*(array_at(address, size) for address, size in views))

    def new_calls(self) -> Counter[str]:
        """The driver's functions that were called since this was asked last."""
        names: Counter[str] = Counter()
        while name := self._driver.fake_call(self._seen):
            names[name.decode()] += 1
            self._seen += 1
        return names

    def allocate(self, values: list[float]) -> Any:
        address = ctypes.c_uint64()
        assert self._driver.cuMemAllocManaged(ctypes.byref(address), 4 * len(values), 1) == 0
        array = array_at(address.value, len(values))
        array[:] = values
        return array

    def make_context(self) -> None:
        context, device = ctypes.c_void_p(), ctypes.c_int()
        assert self._driver.cuInit(0) == 0
        assert self._driver.cuDeviceGet(ctypes.byref(device), 0) == 0
        assert self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert self._driver.cuCtxPushCurrent_v2(context) == 0


def array_at(address: int, size: int | None) -> Any:
    shape = () if size is None else (size,)
    buffer = (ctypes.c_float * (size or 1)).from_address(address)
    return np.frombuffer(buffer, np.float32, size or 1).reshape(shape)


def call(library: Any, gpu: Gpu, request: dict[str, Any]) -> dict[str, Any]:
    buffers = [a if not isinstance(a, list) else gpu.allocate(a) for a in request["arguments"]]
    function = getattr(library, request["entry"])
    passed: list[Any] = [
        ctypes.c_int64(a) if isinstance(a, int) else ctypes.c_void_p(a.ctypes.data) for a in buffers
    ]
    result = ctypes.c_float()
    if request["has_result"]:
        passed.append(ctypes.byref(result))
    gpu.new_calls()
    status = function(*passed)
    last_error = library.program_last_error
    last_error.restype = ctypes.c_char_p
    counted = gpu.new_calls()
    return {
        "status": status,
        "error": last_error().decode(),
        "result": result.value,
        "buffers": [b.tolist() for b in buffers if not isinstance(b, int)],
        "allocations": sum(counted[name] for name in _ALLOCATIONS),
        "frees": sum(counted[name] for name in _FREES),
        "copies": counted["cuMemcpyAsync"],
        "launches": counted["cuLaunchKernel"] + counted["cuLaunchKernelEx"],
        "waits": sum(counted[name] for name in _WAITS),
        "managed": counted["cuMemAllocManaged"],
    }


def main() -> None:
    gpu = Gpu()
    gpu.make_context()
    library = ctypes.CDLL(sys.argv[1])
    answers = [[call(library, gpu, request) for _ in range(2)] for request in json.load(sys.stdin)]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
