"""Holds the libraries beside this file against f64, at random sizes.

    ./check [--cases WORD,...] [--every N] [--count 200] [--largest 3000] [--seed 0]
            [--limit SECONDS] [--sanitize]

Operands are random; results begin as NaN, and in a second run as 77 (integers: as -1), between
guards that must stay. Each element is within the bound of its sum's and its result's rounding,
integers are equal; the second run gives the same bits. One line of JSON for each case; the last
line says how many were wrong.

--sanitize runs all that under NVIDIA's compute-sanitizer, which is to be in PATH: once looking for
accesses outside of any allocation, once for races in shared memory. It is slow: name few cases, or
one in N, few and small sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from typing import Any

import attention
import contraction
import product
import torch
from entry import HERE, Entry

KINDS = {"product": product, "contraction": contraction, "attention": attention}
SANITIZERS = ("memcheck", "racecheck")
# In the names of all kernels of ours, as the programs' names end with their chips.
OURS = "kns=_sm_"


def what_is_wrong(entry: Entry, trial: Any) -> str:
    """Of a trial; nothing, if nothing is."""
    result = trial.result
    bits = []
    for number in range(2):
        result.poison(number)
        entry(*trial.operands, result.values)
        bits.append(result.bits())
        if number == 0:
            exact, bound = trial.expected()
            found = result.values.double()
            off = torch.where(exact.isnan() & found.isnan(), 0.0, (found - exact).abs())
            if not bool((off <= bound).all()):
                more = (off - bound).nan_to_num(math.inf)
                return f"off by {more.max().item():.3g} more than is allowed, in {_count(more)}"
        if not result.is_guard_whole():
            return "something else was written"
    return "" if torch.equal(*bits) else "other bits in a second run"


def _count(more: Any) -> str:
    wrong = more > 0
    first = wrong.nonzero()[0].tolist()
    return f"{int(wrong.sum())} of {wrong.numel()}, first {first}"


def check(case: dict[str, Any], count: int, largest: int, rng: random.Random) -> int:
    """How many of so many trials are wrong; each is printed."""
    kind = KINDS[case["kind"]]
    entry = Entry(case["name"], kind.Trial.types(case), is_strided=case["strided"])
    wrong = 0
    for _ in range(count):
        trial = kind.Trial(case, rng, largest)
        try:
            what = what_is_wrong(entry, trial)
        except RuntimeError as error:
            what = str(error)
        if what:
            wrong += 1
            said = {"name": case["name"], "shape": trial.shape, "wrong": what}
            print(json.dumps(said), flush=True)
            if wrong == 5:
                break
    return wrong


def sanitize(arguments: list[str]) -> int:
    """Runs this program with these arguments under each of SANITIZERS. No buffer has a neighbour in
    its allocation there."""
    wrong = 0
    for tool in SANITIZERS:
        command = ["compute-sanitizer", "--tool", tool, "--kernel-name", OURS]
        command += ["--error-exitcode", "1", "--print-limit", "20", sys.executable, __file__]
        environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        print(f"{tool}:", flush=True)
        done = subprocess.run([*command, *arguments], env=environment, check=False)
        wrong += done.returncode != 0
    return int(wrong > 0)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--largest", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=500)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    if options.sanitize:
        return sanitize([one for one in sys.argv[1:] if one != "--sanitize"])
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(options.seed)
    end = time.monotonic() + options.limit
    words = [word for word in options.cases.split(",") if word]
    wrong = done = 0
    cases = json.loads((HERE / "cases.json").read_text())
    cases = [case for case in cases if not words or case["name"].startswith(tuple(words))]
    for case in cases[:: options.every]:
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
