"""Times the libraries beside this file against PyTorch's attention: a line of JSON each.

    ./run [--cases WORD,...] [--limit SECONDS] [--rounds N]

First each is held against attention in f64, in a result that was filled with NaN, twice: the bits
must be the same. Then ours and PyTorch's take turns, as `bursts` says: what PyTorch chooses by
itself, and of 16 bits what it has for other GPUs than Hopper (`flash`: FlashAttention-2).
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
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

HERE = Path(__file__).resolve().parent
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
# Bounds on |O - exact| / |exact|: weights are rounded to the type before the second product.
TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5}


def entry(name: str) -> Callable[..., None]:
    loaded = ctypes.CDLL(str(HERE / name / "lib" / f"lib{name}.so"))
    message = getattr(loaded, f"{name}_last_error")
    message.restype = ctypes.c_char_p
    function = getattr(loaded, f"{name}_async")
    function.argtypes = [ctypes.c_void_p] * 5

    def call(*operands: Any) -> None:
        addresses = [x.data_ptr() for x in operands]
        if function(*addresses, torch.cuda.current_stream().cuda_stream) != 0:
            sys.exit(f"{name}: {message().decode()}")

    return call


def operands(case: dict[str, Any]) -> tuple[Any, ...]:
    """Q, K, V and O, heads x tokens x columns."""
    shape = (case["batch"], case["queries"], case["depth"])
    made = [torch.randn(shape, device="cuda").to(DTYPES[case["element"]]) for _ in range(4)]
    made[3].fill_(float("nan"))
    return tuple(made)


def exact_of(case: dict[str, Any], q: Any, k: Any, v: Any) -> Any:
    """In f64, a head at a time."""
    made = []
    for one_q, one_k, one_v in zip(q.double(), k.double(), v.double(), strict=True):
        scores = one_q @ one_k.T * case["scale"]
        if case["mask"] == "causal":
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
        made.append(scores.softmax(-1) @ one_v)
    return torch.stack(made)


def check(case: dict[str, Any], call: Callable[..., None]) -> dict[str, Any] | None:
    """What is wrong."""
    q, k, v, o = operands(case)
    call(q, k, v, o)
    first = o.clone()
    o.fill_(float("nan"))
    call(q, k, v, o)
    exact = exact_of(case, q, k, v)
    error = ((o.double() - exact).norm() / exact.norm()).item()
    same = torch.equal(first, o)
    if error <= TOLERANCE[case["element"]] and same:
        return None
    return {"name": case["name"], "error": error, "same": same}


def measure(case: dict[str, Any], call: Callable[..., None], rounds: int) -> dict[str, Any]:
    """One line of the table."""
    heads, tokens, columns = case["batch"], case["queries"], case["depth"]
    bytes_ = 4 * heads * tokens * columns * DTYPES[case["element"]].itemsize
    sets = [operands(case) for _ in range(bursts.sets_of(bytes_))]
    # PyTorch has batches of heads.
    theirs = [tuple(x[None] for x in given[:3]) for given in sets]
    is_causal = case["mask"] == "causal"
    attention = torch.nn.functional.scaled_dot_product_attention

    def ours(i: int) -> None:
        call(*sets[i % len(sets)])

    def pytorch(i: int) -> None:
        attention(*theirs[i % len(theirs)], is_causal=is_causal)

    def flash(i: int) -> None:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            pytorch(i)

    runs = {"ours": ours, "pytorch": pytorch}
    if case["element"] != "f32":
        runs["flash"] = flash
    seconds = bursts.Bursts(runs, "pytorch").medians(rounds)
    # Two products; of causal ones, half of each is needed.
    work = 4 * heads * tokens * tokens * columns / (2 if is_causal else 1)
    return {
        "name": case["name"],
        "microseconds": {name: round(1e6 * taken, 2) for name, taken in seconds.items()},
        "tflop_per_s": round(1e-12 * work / seconds["ours"], 1),
        **{
            f"of_{name}": round(seconds[name] / seconds["ours"], 3)
            for name in seconds
            if name != "ours"
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="")
    parser.add_argument("--limit", type=float, default=500)
    parser.add_argument("--rounds", type=int, default=bursts.ROUNDS)
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.limit
    words = tuple(word for word in options.cases.split(",") if word)
    wrong = 0
    for case in json.loads((HERE / "cases.json").read_text()):
        if words and not case["name"].startswith(words):
            continue
        if time.monotonic() > end:
            print("no time left", flush=True)
            return 1
        call = entry(case["name"])
        if found := check(case, call):
            wrong += 1
            print(json.dumps(found), flush=True)
        print(json.dumps(measure(case, call, options.rounds)), flush=True)
    print(f"{wrong} wrong", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
