"""Times the library beside this file against cuBLAS (PyTorch's matmul): a line of JSON each.

    ./run [--cases WORD,...] [--sizes 1024,4096] [--sustained] [--limit SECONDS]

First each entry is held against a product in f64, in a C that was filled with NaN, twice: the bits
must be the same. Then ours and cuBLAS take turns, as `bursts` says. `--sustained` adds rates
without pauses, at the power that the GPU can keep up.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

try:
    torch = importlib.import_module("torch")
except ImportError:
    sys.exit("measure: there is no PyTorch here")

# Beside this file, there where it runs.
bursts = importlib.import_module("bursts")
rivals = importlib.import_module("rivals")

HERE = Path(__file__).resolve().parent
DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn,
    "i8": torch.int8,
    "i32": torch.int32,
}
# Bounds on |C - exact| / |exact|, by the type of the result: of its rounding, and of sums in f32.
TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5, "f64": 1e-14, "i32": 0.0}
# Likewise, where factors are rounded to tf32, by mma.sync cut off behind 10 bits, or sums of f8 are
# those of tensor cores.
TF32_TOLERANCE, F8_TOLERANCE = 2**-9, 3e-4
CHECKED = (
    *((256, 256, 256), (1000, 1000, 1000), (3000, 2008, 1000), (256, 304, 128), (33, 65, 17)),
    *((127, 1025, 36), (304, 8, 1024), (8, 304, 104), (1, 1, 1), (1, 4096, 8), (4096, 64, 4096)),
)
# Of f64 on a GPU, some seconds.
MOST_CHECKED = 10**12


def entry(case: dict[str, Any]) -> Any:
    """A call of the generated library, by ctypes alone: `aotc.load` looks at its arguments."""
    name = case["name"]
    loaded = ctypes.CDLL(str(HERE / name / "lib" / f"lib{name}.so"))
    message = getattr(loaded, f"{name}_last_error")
    message.restype = ctypes.c_char_p
    function = getattr(loaded, f"{name}_async")
    is_static = bool(case["m"])
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    each = [pointer] if is_static else [pointer, size, size]
    function.argtypes = [*each * (4 if case["has_gelu"] else 3), pointer]

    def call(*operands: Any) -> None:
        arguments: list[int] = []
        for x in operands:
            arguments += [x.data_ptr()] if is_static else [x.data_ptr(), *x.shape]
        if function(*arguments, torch.cuda.current_stream().cuda_stream) != 0:
            sys.exit(f"{name}: {message().decode()}")

    return call


def operands(case: dict[str, Any], m: int, n: int, k: int, offset: int = 0) -> tuple[Any, ...]:
    """A, B, the bias if there is one, and C."""

    def matrix(rows: int, columns: int, dtype: Any) -> Any:
        flat = torch.rand(rows * columns + offset, device="cuda", dtype=torch.float32) - 0.5
        if dtype is torch.int8:
            flat *= 200
        return flat.to(dtype)[offset:].view(rows, columns)

    dtype = DTYPES[case["element"]]
    a = matrix(*((m, k) if case["layout"][0] == "n" else (k, m)), dtype)
    b = matrix(*((k, n) if case["layout"][1] == "n" else (n, k)), dtype)
    bias = (matrix(1, n, dtype)[0],) if case["has_gelu"] else ()
    c = torch.empty((m, n), device="cuda", dtype=DTYPES[case["result"]])
    poison(c)
    return a, b, *bias, c


def poison(c: Any) -> None:
    c.fill_(float("nan") if c.is_floating_point() else -1)


def tolerance(case: dict[str, Any]) -> float:
    bound = TOLERANCE[case["result"]]
    if case["allows"] == "tf32":
        return TF32_TOLERANCE
    return max(bound, F8_TOLERANCE) if case["element"].startswith("f8") else bound


def exact_of(case: dict[str, Any], a: Any, b: Any, *bias: Any) -> Any:
    """In f64."""
    left, right = rivals.seen(case, a, b)
    exact = left.double() @ right.double()
    return torch.nn.functional.gelu(exact + bias[0].double()) if bias else exact


def check(case: dict[str, Any], call: Any) -> list[dict[str, Any]]:
    """What is wrong."""
    wrong = []
    shapes = ((case["m"], case["n"], case["k"]),) if case["m"] else CHECKED
    for shape in shapes:
        if math.prod(shape) > MOST_CHECKED:
            continue
        for offset in (0, 1):
            m, n, k = shape
            *given, c = operands(case, m, n, k, offset)
            call(*given, c)
            first = c.clone()
            poison(c)
            call(*given, c)
            exact = exact_of(case, *given)
            error = ((c.double() - exact).norm() / exact.norm()).item()
            same = torch.equal(first, c)
            if not error <= tolerance(case) or not same:
                wrong.append(
                    {"name": case["name"], "shape": shape, "offset": offset, "error": error,
                     "same": same}
                )  # fmt: skip
    return wrong


def measure(
    case: dict[str, Any], call: Any, m: int, n: int, k: int, *, rounds: int, sustained: bool
) -> dict[str, Any]:
    """One line of the table."""
    size = DTYPES[case["element"]].itemsize
    bytes_ = (m * k + k * n + m * n) * size
    count = bursts.sets_of(bytes_)
    sets = [operands(case, m, n, k) for _ in range(count)]
    torch.backends.cuda.matmul.allow_tf32 = case["allows"] == "tf32"
    others = rivals.rivals(case, sets)
    runs = {
        "ours": lambda i: call(*sets[i % count]),
        **{name: functools.partial(_run, each) for name, each in others.items()},
    }
    timed = bursts.Bursts(runs, "cublas")
    seconds = timed.medians(rounds)
    more = {}
    if sustained:
        of_call = timed.sustained()
        more = {
            "sustained": round(2e-12 * m * n * k / of_call["ours"], 1),
            "sustained_of_cublas": round(of_call["cublas"] / of_call["ours"], 3),
        }
    if "compiled" in seconds:
        more["of_compiled"] = round(seconds["compiled"] / seconds["ours"], 3)
    return {
        "name": case["name"],
        "shape": [m, n, k],
        "tflop_per_s": round(2e-12 * m * n * k / seconds["ours"], 1),
        "cublas": round(2e-12 * m * n * k / seconds["cublas"], 1),
        "gb_per_s": round(1e-9 * bytes_ / seconds["ours"]),
        "microseconds": {name: round(1e6 * taken, 2) for name, taken in seconds.items()},
        "of_cublas": round(seconds["cublas"] / seconds["ours"], 3),
        "calls": timed.calls,
        **more,
    }


def _run(each: Sequence[Callable[[], Any]], i: int) -> None:
    each[i % len(each)]()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="")
    parser.add_argument("--sizes", default="1024,2048,4096,8192")
    parser.add_argument("--limit", type=float, default=500)
    parser.add_argument("--rounds", type=int, default=bursts.ROUNDS)
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--sustained", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    end = time.monotonic() + options.limit
    words = [word for word in options.cases.split(",") if word]
    wrong = []
    for case in json.loads((HERE / "cases.json").read_text()):
        if words and not any(case["name"].startswith(word) for word in words):
            continue
        call = entry(case)
        if not options.no_check:
            found = check(case, call)
            wrong += found
            for line in found:
                print(json.dumps(line), flush=True)
        shapes = [(int(size),) * 3 for size in options.sizes.split(",")]
        for shape in [(case["m"], case["n"], case["k"])] if case["m"] else shapes:
            if time.monotonic() > end:
                print("no time left", flush=True)
                return 1
            line = measure(case, call, *shape, rounds=options.rounds, sustained=options.sustained)
            print(json.dumps(line), flush=True)
    print(f"{len(wrong)} wrong", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
