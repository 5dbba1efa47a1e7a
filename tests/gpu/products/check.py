"""Holds the libraries beside this file against f64, at random sizes.

    ./check [--cases WORD,...] [--count 200] [--largest 3000] [--seed 0] [--limit SECONDS]

Operands are random; C begins as NaN (integers: as -1), between guards that must stay. Each element
is within the bound of its sum's and its result's rounding, integers are equal; a second run gives
the same bits. One line of JSON for each case; the last line says how many were wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "i32": torch.int32,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
}
# Half a unit in the last place of 1.
ROUNDING = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "i32": 0.0}
# Tensor cores keep 14 bits or so of sums of f8, of 128 products at most.
OF_F8 = 2.0**-12
# Of operands, where a case is built to round them before they are multiplied.
ALLOWED = {"allow_tf32": 2.0**-10, "allow_3xtf32": 2.0**-21}
GUARD = 64  # elements before and behind C


class _Memref(ctypes.Structure):
    """A descriptor of two dimensions, as the library's header has it."""

    _fields_ = (
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * 2),
        ("strides", ctypes.c_int64 * 2),
    )


class Entry:
    """The entry of a library."""

    def __init__(self, name: str, *, is_strided: bool) -> None:
        loaded = ctypes.CDLL(str(HERE / name / "lib" / f"lib{name}.so"))
        self.name, self.is_strided = name, is_strided
        self._message = getattr(loaded, f"{name}_last_error")
        self._message.restype = ctypes.c_char_p
        self._function = getattr(loaded, f"{name}_memref" if is_strided else f"{name}_async")

    def __call__(self, *tensors: Any) -> None:
        if self.is_strided:
            torch.cuda.synchronize()
            descriptors = [
                _Memref(x.data_ptr(), x.data_ptr(), 0, tuple(x.shape), tuple(x.stride()))
                for x in tensors
            ]
            status = self._function(*map(ctypes.byref, descriptors))
        else:
            arguments: list[Any] = []
            for x in tensors:
                arguments += [ctypes.c_void_p(x.data_ptr()), *map(ctypes.c_int64, x.shape)]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            status = self._function(*arguments, stream)
        if status != 0:
            raise RuntimeError(f"{self.name}: {self._message().decode()}")


def sizes(rng: random.Random, largest: int) -> tuple[int, int, int]:
    """M, N and K: of any magnitude, every second one a multiple of 8, some of them few."""
    found = []
    for _ in range(3):
        size = rng.randint(1, largest)
        if rng.random() < 0.25:
            size = round(math.exp(rng.uniform(0, math.log(largest))))
        if rng.random() < 0.5:
            size = max(8, size // 8 * 8)
        found.append(size)
    return found[0], found[1], found[2]


def matrix(shape: Sequence[int], element: str, *, offset: int, more: int) -> Any:
    """Random elements; `more` of them lie between two rows, `offset` in front."""
    dtype = DTYPES[element]
    *outer, columns = shape
    flat = math.prod(outer) * (columns + more) + offset
    if dtype == torch.int8:
        values = torch.randint(-128, 128, (flat,), device="cuda", dtype=dtype)
    else:
        values = (torch.rand(flat, device="cuda") * 2 - 1).to(dtype)
    return values[offset:].view(*outer, columns + more)[..., :columns]


def guarded(shape: Sequence[int], element: str, *, offset: int, more: int) -> tuple[Any, Any]:
    """C, and the memory around it."""
    *outer, columns = shape
    count = math.prod(outer) * (columns + more)
    fill = -1 if element.startswith("i") else float("nan")
    whole = torch.full((count + 2 * GUARD + offset,), fill, device="cuda", dtype=DTYPES[element])
    inner = whole[GUARD + offset : GUARD + offset + count]
    return inner.view(*outer, columns + more)[..., :columns], whole


def expected(case: dict[str, Any], a: Any, b: Any, others: Sequence[Any]) -> tuple[Any, Any]:
    """Of each element: its value in f64, and how far C's may be from it."""
    left = (a if case["layout"][0] == "n" else a.mT).double()
    right = (b if case["layout"][1] == "n" else b.mT).double()
    exact, k = left @ right, left.shape[-1]
    if case["result"].startswith("i"):
        return exact, torch.zeros_like(exact)
    # Tensor cores cut sums off, which has one direction: the bound grows with K, not its root.
    unit = 2.0**-53 if case["result"] == "f64" else 2.0**-24
    part = (8 + k / 4) * unit
    part += OF_F8 * case["element"].startswith("f8")
    for option in case["options"]:
        part += ALLOWED[option] * 2
    bound = part * (left.abs() @ right.abs())
    if case["form"] == "relu":
        exact = exact.clamp(min=0)
    elif case["form"] == "gelu":
        bias, residual = (other.double() for other in others)
        inner = exact * 0.125 + bias
        gelu = inner * 0.5 * (1 + torch.erf(inner * math.sqrt(0.5)))
        exact = gelu + residual
        # The slope of gelu is below 1.13; some operations in f32 follow.
        bound = 1.13 * 0.125 * bound + 2.0**-20 * (1 + inner.abs() + exact.abs())
    return exact, bound + 1.01 * ROUNDING[case["result"]] * exact.abs() + 1e-7 * (
        case["result"] == "f16"
    )


def wrong_at(case: dict[str, Any], entry: Entry, shape: Sequence[int], rng: random.Random) -> str:
    """What is wrong with a product of this shape; nothing, if nothing is."""
    m, n, k = shape
    is_strided = entry.is_strided
    batch = (rng.choice((1, 2, 3)),) if case["form"] == "batched" else ()
    size = DTYPES[case["element"]].itemsize

    def place() -> dict[str, int]:
        """Every second matrix begins at a multiple of 16 bytes, with rows that do."""
        unit = rng.choice((1, max(1, 16 // size)))
        return {"offset": unit * rng.randint(0, 2), "more": unit * rng.randint(0, 3) * is_strided}

    a = matrix((*batch, *((m, k) if case["layout"][0] == "n" else (k, m))), case["element"],
               **place())  # fmt: skip
    b = matrix((*batch, *((k, n) if case["layout"][1] == "n" else (n, k))), case["element"],
               **place())  # fmt: skip
    if is_strided and rng.random() < 0.1:
        a = a[:1].expand(a.shape)  # rows that are one, at a distance of 0
    others = []
    if case["form"] == "gelu":
        others = [matrix(size, case["element"], **place()) for size in ((n,), (m, n))]
    c, whole = guarded((*batch, m, n), case["result"], **place())
    untouched = whole.clone()
    entry(a, b, *others, c)
    first = whole.clone()
    whole.copy_(untouched)
    entry(a, b, *others, c)
    exact, bound = expected(case, a, b, others)
    off = (c.double() - exact).abs()
    if not bool((off <= bound).all()):
        return f"off by {(off - bound).nan_to_num(math.inf).max().item():.3g} more than is allowed"
    if not torch.equal(_bits(first), _bits(whole)):
        return "other bits in a second run"
    c.copy_(untouched.as_strided(c.shape, c.stride(), c.storage_offset()))
    if not torch.equal(_bits(untouched), _bits(whole)):
        return "something else was written"
    return ""


def _bits(values: Any) -> Any:
    return values.view(torch.uint8)


def check(case: dict[str, Any], count: int, largest: int, rng: random.Random) -> int:
    """How many of so many sizes are wrong; each is printed."""
    entry = Entry(case["name"], is_strided=case["form"] == "strided")
    wrong = 0
    for _ in range(count):
        shape = sizes(rng, largest)
        try:
            what = wrong_at(case, entry, shape, rng)
        except RuntimeError as error:
            what = str(error)
        if what:
            wrong += 1
            print(json.dumps({"name": case["name"], "shape": shape, "wrong": what}), flush=True)
            if wrong == 5:
                break
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--largest", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=500)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(options.seed)
    end = time.monotonic() + options.limit
    words = [word for word in options.cases.split(",") if word]
    wrong = done = 0
    for case in json.loads((HERE / "cases.json").read_text()):
        if words and not any(case["name"].startswith(word) for word in words):
            continue
        if time.monotonic() > end:
            print("no time left", flush=True)
            return 1
        start = time.monotonic()
        rng = random.Random(f"{options.seed} {case['name']}")
        found = check(case, options.count, options.largest, rng)
        wrong, done = wrong + found, done + 1
        seconds = round(time.monotonic() - start, 2)
        print(json.dumps({"name": case["name"], "wrong": found, "seconds": seconds}), flush=True)
    print(f"{done} cases at {options.count} sizes, {wrong} wrong", flush=True)
    return 1 if wrong or not done else 0


if __name__ == "__main__":
    sys.exit(main())
