"""Calls an entry on a fake GPU of some compute capability, and says what it launched.

    launched.py libprogram.so ENTRY CAPABILITY BYTES...      (JSON on stdout)

The entry's arguments are pointers to as many bytes each of the fake GPU's memory.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_Launched = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
_Run = ctypes.CFUNCTYPE(None, ctypes.c_int)


class _Launch(ctypes.Structure):
    """`fake_launch` of runtime_c/tests/fake_driver.h, up to what is read here."""

    _fields_ = (
        ("kernel", ctypes.c_char * 64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("dynamic_shared_bytes", ctypes.c_uint32),
        ("flags", ctypes.c_bool * 2),
        ("stream", ctypes.c_void_p),
        ("first_parameter", ctypes.c_int),
    )


class _Driver(ctypes.Structure):
    """`fake_driver`, likewise."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("device_count", ctypes.c_int),
        ("capability", ctypes.c_int * 4),
        ("has_memory_pools", ctypes.c_bool),
        ("fail_at", ctypes.c_int),
        ("fail_count", ctypes.c_int),
        ("fail_symbol", ctypes.c_char_p),
        ("fail_result", ctypes.c_int),
        ("is_shut_down", ctypes.c_bool),
        ("asynchronous_result", ctypes.c_int),
        ("is_capturing", ctypes.c_bool),
        ("call_count", ctypes.c_int),
        ("log", ctypes.c_char_p * 4096),
        ("failed_symbol", ctypes.c_char_p),
        ("failed_index", ctypes.c_int),
        ("launch_count", ctypes.c_int),
        ("last_launch", _Launch),
    )


def launches_on(
    capability: int, library: Path, entry: str, sizes: list[int], driver: Path
) -> dict[str, Any]:
    """The entry's `status` and `error`, and its `launches`: blocks, threads, and dynamic shared
    memory of each. `driver`: the folder of the fake one."""
    done = subprocess.run(
        [sys.executable, __file__, library, entry, str(capability), *map(str, sizes)],
        env={"LD_LIBRARY_PATH": str(driver), "AOTC_DEVICE": "cuda"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    path, entry, capability, *sizes = sys.argv[1:]
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_driver_get.restype = ctypes.POINTER(_Driver)
    state = driver.fake_driver_get().contents
    state.capability[0] = int(capability)
    launches = []

    def launched(kernel: bytes, parameters: Any) -> int:
        last = state.last_launch
        launches.append((last.grid[0], last.block[0], last.dynamic_shared_bytes))
        return 0

    keep = (_Launched(launched), _Run(lambda number: None))
    driver.fake_work_late(*keep)
    context, device, pointers = ctypes.c_void_p(), ctypes.c_int(), []
    assert driver.cuInit(0) == 0
    assert driver.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert driver.cuCtxPushCurrent_v2(context) == 0
    for size in sizes:
        pointers.append(ctypes.c_uint64())
        assert (
            driver.cuMemAllocManaged(ctypes.byref(pointers[-1]), ctypes.c_size_t(int(size)), 1) == 0
        )
    library = ctypes.CDLL(path)
    status = getattr(library, entry)(*pointers)
    name = Path(path).stem.removeprefix("lib")
    last_error = getattr(library, f"{name}_last_error")
    last_error.restype = ctypes.c_char_p
    json.dump({"status": status, "error": last_error().decode(), "launches": launches}, sys.stdout)


if __name__ == "__main__":
    main()
