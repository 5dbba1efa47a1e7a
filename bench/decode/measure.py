"""Times the libraries beside this file against PyTorch: a line of JSON each.

    ./run [--cases WORD,...] [--rounds N]

First each is held against f64, in a result that was filled with NaN, twice: the bits must be the
same. Then ours and PyTorch's take turns, as `bursts` says. `of_copy` is the time that reading the
operands at the bandwidth of a copy would take, as a part of ours.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

try:
    torch = importlib.import_module("torch")
except ImportError:
    sys.exit("measure: there is no PyTorch here")

# Beside this file, there where it runs.
bursts, modules = importlib.import_module("bursts"), importlib.import_module("modules")

HERE = Path(__file__).resolve().parent
# Of |result - exact| / |exact|: weights and results are rounded to f16.
TOLERANCE = 1e-3


def entry(name: str, count: int) -> Callable[..., None]:
    loaded = ctypes.CDLL(str(HERE / name / "lib" / f"lib{name}.so"))
    message = getattr(loaded, f"{name}_last_error")
    message.restype = ctypes.c_char_p
    function = getattr(loaded, f"{name}_async")
    function.argtypes = [ctypes.c_void_p] * (count + 1)

    def call(*operands: Any) -> None:
        addresses = [x.data_ptr() for x in operands]
        if function(*addresses, torch.cuda.current_stream().cuda_stream) != 0:
            sys.exit(f"{name}: {message().decode()}")

    return call


def bytes_per_second() -> float:
    """What a copy of a gigabyte reads and writes."""
    source = torch.rand(1 << 28, device="cuda")
    target = torch.empty_like(source)
    seconds = []
    for _ in range(15):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        seconds.append(1e-3 * start.elapsed_time(end))
    return float(2 * source.nbytes / statistics.median(seconds))


def check(name: str, case: Any, call: Callable[..., None]) -> dict[str, Any] | None:
    """What is wrong."""
    inputs = case.inputs("cuda")
    doubled = [x.double() if x.is_floating_point() else x for x in inputs]
    exact = case.module().cuda()(*doubled)
    found = []
    for _ in range(2):
        out = torch.full_like(exact, float("nan"), dtype=torch.float16)
        call(*inputs, out)
        found.append(out)
    error = float((found[0].double() - exact).norm() / exact.norm())
    if error <= TOLERANCE and torch.equal(*found):
        return None
    return {"name": name, "error": error, "same": torch.equal(*found)}


def measure(name: str, case: Any, call: Callable[..., None], rounds: int, rate: float) -> Any:
    """One line of the table."""
    bytes_ = sum(x.nbytes for x in case.inputs("cuda"))
    count = bursts.sets_of(bytes_)
    module = case.module().cuda()
    sets = [case.inputs("cuda") for _ in range(count)]
    outs = [torch.full_like(module(*sets[0]), float("nan"), dtype=torch.float16)] * count
    peer, others = module, sets
    if case.peer is not None:
        peer, first = case.peer("cuda")
        of_peer = bursts.sets_of(sum(x.nbytes for x in first))
        others = [first, *(case.peer("cuda")[1] for _ in range(of_peer - 1))]

    def ours(i: int) -> None:
        call(*sets[i % count], outs[i % count])

    def pytorch(i: int) -> None:
        peer(*others[i % len(others)])

    with torch.no_grad():
        seconds = bursts.Bursts({"ours": ours, "pytorch": pytorch}, "ours").medians(rounds)
    return {
        "name": name,
        "microseconds": {who: round(1e6 * taken, 2) for who, taken in seconds.items()},
        "of_copy": round(bytes_ / rate / seconds["ours"], 2),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="")
    parser.add_argument("--rounds", type=int, default=bursts.ROUNDS)
    options = parser.parse_args(arguments)
    words = tuple(word for word in options.cases.split(",") if word)
    rate = bytes_per_second()
    print(json.dumps({"copy": f"{1e-9 * rate:.0f} GB/s"}), flush=True)
    wrong = 0
    for name in json.loads((HERE / "cases.json").read_text()):
        if words and not name.startswith(words):
            continue
        case = modules.CASES[name]
        call = entry(name, len(case.inputs("cuda")) + 1)
        if found := check(name, case, call):
            wrong += 1
            print(json.dumps(found), flush=True)
        print(json.dumps(measure(name, case, call, options.rounds, rate)), flush=True)
    print(f"{wrong} wrong", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
