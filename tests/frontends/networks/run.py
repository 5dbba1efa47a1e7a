"""Runs random networks of PyTorch's layers: builds them by aotc, compares with eager PyTorch.

    python -m tests.frontends.networks.run --count 500 --seed 7

Network number i has the seed (--seed) + i. A failure is shrunk, and printed with its layers. Exit
code 1 when there was one.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from frontends.networks.generate import Network, generate, made, smaller
from frontends.networks.judge import Verdict, judge, shrink


def describe(verdict: Verdict) -> str:
    """What a person needs to know of a failure."""
    network = verdict.network
    module, _, names = made(network)
    layers = "\n".join(
        f"  {name}: {str(layer).splitlines()[0]}"
        for name, layer in zip(names, module.layers, strict=True)
    )
    return f"{verdict.kind}: {network}\n{verdict.message}\n{layers}"


def judged(seed: int) -> Verdict:
    return judge(generate(seed))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="how many networks (100)")
    parser.add_argument("--seed", type=int, help="the first one's seed; else a fresh one, printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--shrink", type=float, default=120, metavar="SECONDS", help="for each failure (120)"
    )
    parser.add_argument(
        "--layers", help="a network that was printed: its layers' seeds, with commas, of --seed"
    )
    parser.add_argument("--verbose", action="store_true", help="print each verdict")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
    if options.layers is not None:
        first = generate(seed)
        layers = tuple(int(word) for word in options.layers.split(",") if word.strip())
        verdict = judge(Network(seed, first.sizes, first.start, layers))
        print(describe(verdict))
        return int(verdict.is_fault)
    print(f"{options.count} networks from seed {seed} on", flush=True)
    start, kinds, reasons = time.monotonic(), Counter[str](), Counter[str]()
    with ProcessPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(judged, range(seed, seed + options.count)):
            kinds[verdict.kind] += 1
            if options.verbose:
                print(verdict.network.seed, verdict.kind, flush=True)
            if verdict.message and not verdict.is_fault:
                reasons[" ".join(verdict.signature)[:150]] += 1
            if verdict.is_fault:
                found = shrink(verdict, options.shrink, smaller) if options.shrink else verdict
                print(describe(found), flush=True)
    for reason, count in reasons.most_common():
        print(f"{count:5} {reason}")
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"{shown}; {time.monotonic() - start:.0f} s")
    return 1 if set(kinds) - {"right", "refused", "export"} else 0


if __name__ == "__main__":
    sys.exit(main())
