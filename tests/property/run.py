"""Runs random programs: builds them by aotc, compares what they give with their evaluation.

    python -m tests.property.run --count 2000 --seed 7

Program number i has the seed (--seed) + i. A failure is shrunk and written, as NAME.mlir and
NAME.txt, into --keep. Exit code 1 when there was one.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from property.batch import BUILD_OPTIONS, Settings, Verdict, judge
from property.features import Features
from property.generate import generate
from property.mlir_text import module_text
from property.program import Program
from property.shrink import Judge, shrink

# Programs of one module: more make a build slower, and a failing one dearer to find.
BATCH = 25


def judge_seeds(
    seeds: Sequence[int], judge: Judge, features: Features, workers: int
) -> Iterator[Verdict]:
    """The verdicts on the programs of these seeds, as they come."""
    batches = [seeds[first : first + BATCH] for first in range(0, len(seeds), BATCH)]

    def one(batch: Sequence[int]) -> list[Verdict]:
        return judge([generate(f"p{seed}", seed, features) for seed in batch])

    with ThreadPoolExecutor(max_workers=workers) as pool:
        for verdicts in pool.map(one, batches):
            yield from verdicts


def describe(verdict: Verdict, seed: int, original: Verdict) -> str:
    """What a person needs to know of a failure."""
    program = verdict.program
    return "\n".join(
        [
            f"seed {seed}: {verdict.kind}",
            f"grid {program.grid}, block {program.block}",
            verdict.message,
            f"The seed's program, before it was shrunk: {original.kind}",
            original.message,
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="how many programs (100)")
    parser.add_argument("--seed", type=int, help="the first one's seed; else a fresh one, printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("build/property"), metavar="DIR")
    parser.add_argument(
        "--shrink", type=float, default=120, metavar="SECONDS", help="for each failure (120)"
    )
    parser.add_argument("--device", default="cpu", help="AOTC_DEVICE of the runs (cpu)")
    parser.add_argument("--cpu-threads", type=int, default=0, metavar="N")
    parser.add_argument("--options", default="", help="more options for aotc build: '-O0 -g'")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=[field.name for field in fields(Features)],
        help="leave out what has this; may be given several times",
    )
    parser.add_argument("--print", action="store_true", help="print the programs, and stop")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
    seeds = range(seed, seed + options.count)
    features = Features(**dict.fromkeys(options.without, False))
    if options.print:
        print(module_text(generate(f"p{number}", number, features) for number in seeds))
        return 0
    extra = tuple(options.options.split())
    settings = Settings(options.device, (*BUILD_OPTIONS, *extra), options.cpu_threads)
    print(f"{options.count} programs from seed {seed} on", flush=True)
    start, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="property-") as folder:

        def judge_these(programs: Sequence[Program]) -> list[Verdict]:
            # Each in a folder of its own: builds at the same time do not meet.
            with tempfile.TemporaryDirectory(dir=folder) as own:
                return judge(programs, Path(own), settings)

        verdicts = judge_seeds(seeds, judge_these, features, options.jobs)
        for number, verdict in enumerate(verdicts):
            if verdict.kind == "ok":
                continue
            failed += 1
            found = verdict
            if options.shrink > 0:
                found = shrink(verdict, judge_these, options.shrink)
            text = describe(found, seeds[number], verdict)
            options.keep.mkdir(parents=True, exist_ok=True)
            file = options.keep / f"{verdict.program.name}.mlir"
            file.write_text(module_text([found.program]))
            file.with_suffix(".txt").write_text(text)
            print(f"{text}The program is in {file}", flush=True)
    seconds = time.monotonic() - start
    print(f"{options.count - failed} as evaluated, {failed} not; {seconds:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
