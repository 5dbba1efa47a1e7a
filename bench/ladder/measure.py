"""Times the libraries beside this file against cuBLAS, on a GPU: a line of JSON each.

For each size all kernels take turns in an order that changes, on random matrices: the median of
ROUNDS, each measured by events, behind a call that is not. Before that, each is held against a
product in f64, of sizes that tiles divide and others, in a C that was filled with NaN.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    torch = importlib.import_module("torch")
except ImportError:
    sys.exit("measure: there is no PyTorch here")

HERE = Path(__file__).resolve().parent
SIZES = (256, 512, 1024, 2048, 4096)
CHECKED = (
    *((256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)),
    *((4096, 4096, 4096), (1000, 1000, 1000), (3000, 2001, 999), (257, 301, 129), (33, 65, 17)),
    *((127, 1025, 36), (300, 4, 1024), (4, 300, 100), (1, 1, 1), (1, 4096, 1)),
)
# Of products of numbers in [-0.5, 0.5), in the order of k: a bound on |C - exact| / |exact|.
TOLERANCE = {"f32": 1e-5, "f64": 1e-14}
ROUNDS = 21

Kernel = Callable[[Any, Any, Any], None]


def kernels(library: str) -> dict[str, tuple[str, Kernel]]:
    """A library's entries by name: the element type, and what enqueues a call for PyTorch."""
    folder = HERE / library
    loaded = ctypes.CDLL(str(folder / "lib" / f"lib{library}.so"))
    manifest = json.loads((folder / f"{library}.json").read_text())
    found = {}
    for entry in manifest["entries"]:
        element = "f64" if "f64" in entry["arguments"][0]["type"] else "f32"
        found[entry["name"]] = element, _enqueue(loaded, library, entry["name"])
    return found


def _enqueue(loaded: Any, library: str, name: str) -> Kernel:
    """A call by ctypes alone: `aotc.load` would look at the arrays for as long as small products
    take."""
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    function = getattr(loaded, f"{name}_async")
    function.argtypes = [*[pointer, size, size] * 3, pointer]
    message = getattr(loaded, f"{library}_last_error")
    message.restype = ctypes.c_char_p

    def enqueue(a: Any, b: Any, c: Any) -> None:
        arguments = [value for x in (a, b, c) for value in (x.data_ptr(), *x.shape)]
        if function(*arguments, torch.cuda.current_stream().cuda_stream) != 0:
            sys.exit(f"{name}: {message().decode()}")

    return enqueue


def is_right(name: str, element: str, run: Kernel) -> bool:
    """Whether all CHECKED sizes are within TOLERANCE, with matrices that begin anywhere, too."""
    dtype = {"f32": torch.float32, "f64": torch.float64}[element]
    right = True
    for m, n, k in CHECKED:
        for offset in (0, 1):  # elements: the second one is at no multiple of 16 bytes
            a = torch.rand(m * k + offset, device="cuda", dtype=dtype)[offset:].view(m, k) - 0.5
            b = (torch.rand(k * n + offset, device="cuda", dtype=dtype) - 0.5)[offset:].view(k, n)
            c = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
            run(a, b, c)
            exact = a.double() @ b.double()
            error = ((c.double() - exact).norm() / exact.norm()).item()
            if not error <= TOLERANCE[element]:
                print(json.dumps({"name": name, "size": [m, n, k], "error": error}), flush=True)
                right = False
    return right


def measure(runs: dict[str, Kernel], element: str, size: int) -> None:
    """Prints the rate of each, of square matrices."""
    dtype = {"f32": torch.float32, "f64": torch.float64}[element]
    a, b, c = (torch.rand(size, size, device="cuda", dtype=dtype) - 0.5 for _ in "abc")
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name in random.sample(list(runs), len(runs)):
            runs[name](a, b, c)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            runs[name](a, b, c)
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end) * 1e-3)
    seconds = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in seconds.items():
        line = {
            "name": name,
            "element": element,
            "size": size,
            "gflop_per_s": round(2e-9 * size**3 / taken),
            "of_cublas": round(seconds["cublas"] / taken, 3),
        }
        print(json.dumps(line), flush=True)


def main() -> None:
    """Arguments: the libraries to measure, all of them by default. 1: something is wrong."""
    torch.backends.cuda.matmul.allow_tf32 = False
    right = True
    for library in sys.argv[1:] or ("ladder", "candidates", "gemm"):
        found = kernels(library)
        for name, (element, run) in found.items():
            right = is_right(name, element, run) and right
        for element in ("f32", "f64"):
            runs: dict[str, Kernel] = {n: run for n, (e, run) in found.items() if e == element}
            runs["cublas"] = lambda a, b, c: torch.mm(a, b, out=c)
            for size in SIZES if len(runs) > 1 else ():
                measure(runs, element, size)
    sys.exit(not right)


if __name__ == "__main__":
    main()
