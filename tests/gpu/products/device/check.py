"""Holds the libraries beside this file against f64, at random sizes.

    ./check [--cases WORD,...] [--every N] [--count 200] [--largest 3000] [--seed 0]
            [--limit SECONDS] [--huge] [--sanitize [TOOL,...]]

Operands are random; results begin as NaN, and in a second run as 77 (integers: as -1), between
guards that must stay. Each element is within the bound of its sum's and its result's rounding,
integers are equal; the second run gives the same bits. One line of JSON for each case, whose
`error` is the largest one, in parts of what is allowed; the last line says how many were wrong.

--huge is of plain products alone: those of matrices with more than 2^31 elements, on a GPU with
80 GB or more.

--sanitize runs all that under NVIDIA's compute-sanitizer, which is to be in PATH: without a TOOL
once looking for accesses outside of any allocation (memcheck), once for races in shared memory
(racecheck). It is slow: name few cases, or one in N, few and small sizes.
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
from collections.abc import Sequence
from typing import Any

import attention
import contraction
import product
import torch
from entry import HERE, Entry

KINDS = {"product": product, "contraction": contraction, "attention": attention}
_MOST_WRONG = 5
SANITIZERS = ("memcheck", "racecheck")
# In the names of all kernels of ours, as the programs' names end with their chips.
OURS = "kns=_sm_"
# That of `proof`.
WRONG_KERNEL = "proof_sm_90a_kernel"


def what_is_wrong(entry: Entry, trial: Any) -> tuple[str, float]:
    """Of a trial; nothing, if nothing is; and how much of the error that is allowed there was."""
    result = trial.result
    bits, used = [], 0.0
    for number in range(2):
        result.poison(number)
        entry(*trial.operands, result.values)
        bits.append(result.bits())
        if number == 0:
            what, used = min(
                (_compared(trial.looked_at().double(), *one) for one in trial.expected()),
                key=lambda found: found[1],
            )
            if what:
                return what, used
        if not result.is_guard_whole():
            return "something else was written", used
    return "" if torch.equal(*bits) else "other bits in a second run", used


def _compared(found: Any, exact: Any, bound: Any) -> tuple[str, float]:
    """Where what was found is too far from what is exact, and how far that is at most, in parts of
    what is allowed."""
    if not found.numel():
        return "", 0.0
    off = torch.where(exact.isnan() & found.isnan(), 0.0, (found - exact).abs())
    used = torch.where(off == 0, 0.0, off / bound).nan_to_num(math.inf)
    wrong = used > 1
    most = used.max().item()
    if not bool(wrong.any()):
        return "", most
    first = wrong.nonzero()[0].tolist()
    return (
        f"off by {most:.3g} times what is allowed, {int(wrong.sum())} of {wrong.numel()}, "
        f"first {first}",
        most,
    )


def check(
    case: dict[str, Any], count: int, largest: int, rng: random.Random, *, huge: bool = False
) -> tuple[int, float]:
    """How many of so many trials are wrong, which are printed; and how much of the error that is
    allowed the others have at most."""
    kind = KINDS[case["kind"]]
    entry = Entry(case["name"], kind.Trial.types(case), is_strided=case["strided"])
    wrong, most = 0, 0.0
    trials = range(len(product.HUGE) if huge else count)
    for number in trials:
        trial = kind.Trial(case, rng, largest, *([number] if huge else []))
        try:
            what, used = what_is_wrong(entry, trial)
        except RuntimeError as error:
            what, used = str(error), 0.0
        if what:
            wrong += 1
            said = {"name": case["name"], "shape": trial.shape, "wrong": what}
            print(json.dumps(said), flush=True)
            if wrong == _MOST_WRONG:
                break
        else:
            most = max(most, used)
    return wrong, most


def sanitize(tools: Sequence[str], arguments: Sequence[str]) -> int:
    """Runs this program with these arguments under each tool, which first has to find something in
    a kernel that is wrong."""
    wrong = 0
    for tool in tools:
        print(f"{tool}:", flush=True)
        proof = _sanitized(tool, "proof.py", capture_output=True)
        is_looking = WRONG_KERNEL in proof.stdout
        if not is_looking:
            print(f"it found nothing in a kernel that is wrong: {proof.stdout}{proof.stderr}")
        done = _sanitized(tool, "check.py", *arguments)
        wrong += not is_looking or done.returncode != 0
    return int(wrong > 0)


def _sanitized(tool: str, *command: str, capture_output: bool = False) -> Any:
    """What became of it. No buffer has a neighbour in its allocation."""
    sanitizer = ["compute-sanitizer", "--tool", tool, "--kernel-name", OURS]
    sanitizer += ["--error-exitcode", "1", "--print-limit", "20", sys.executable]
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    return subprocess.run(
        [*sanitizer, *command],
        env=environment,
        cwd=HERE,
        check=False,
        text=True,
        capture_output=capture_output,
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--largest", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=500)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--huge", action="store_true")
    parser.add_argument("--sanitize", nargs="?", const=",".join(SANITIZERS))
    options = parser.parse_args()
    if options.sanitize:
        given = vars(options).items()
        others = [f"--{name}={value}" for name, value in given if name not in ("huge", "sanitize")]
        return sanitize(options.sanitize.split(","), others)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(options.seed)
    end = time.monotonic() + options.limit
    words = [word for word in options.cases.split(",") if word]
    wrong = done = 0
    cases = json.loads((HERE / "cases.json").read_text())
    cases = [case for case in cases if not words or case["name"].startswith(tuple(words))]
    if options.huge:
        cases = [case for case in cases if case.get("form") == "plain"]
    for case in cases[:: options.every]:
        if time.monotonic() > end:
            print("no time left", flush=True)
            return 1
        start = time.monotonic()
        rng = random.Random(f"{options.seed} {case['name']}")
        found, most = check(case, options.count, options.largest, rng, huge=options.huge)
        wrong, done = wrong + found, done + 1
        seconds = round(time.monotonic() - start, 2)
        said = {"name": case["name"], "wrong": found, "error": round(most, 3), "seconds": seconds}
        print(json.dumps(said), flush=True)
    print(f"{done} cases at {options.count} sizes, {wrong} wrong", flush=True)
    return 1 if wrong or not done else 0


if __name__ == "__main__":
    sys.exit(main())
