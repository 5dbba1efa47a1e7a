"""Mutates inputs, and keeps what ends neither in an artifact nor in a refusal.

    python -m tests.fuzz.run --seconds 600 --seed 7

Of each category, case number i of a seed is the same in every run. Finds are reduced and go, with
the command and what it said, into --keep; those that look alike are counted. Exit code 1 when
there was one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.command import build_here

from fuzz.case import Case
from fuzz.categories import CATEGORIES, Category, Shared, case_of
from fuzz.corpus import PROGRAM, mlir_texts
from fuzz.execution import Ending, execute, keep
from fuzz.processes import Forks
from fuzz.reduction import reduce
from fuzz.screening import Screen


def cases(
    categories: Sequence[Category], seed: int, first: int, shared: Shared
) -> Iterator[tuple[Category, Case]]:
    """Cases without end, of each category its share."""
    made: Counter[str] = Counter()
    while True:
        category = min(categories, key=lambda one: made[one.name] / one.share)
        yield category, case_of(category, seed, first + made[category.name], shared)
        made[category.name] += 1


def warm_up(folder: Path) -> None:
    """Makes what is made once, the runtime's libraries, which would make the first cases slow."""
    module = folder / "module.mlir"
    module.write_text(PROGRAM)
    for options in ((), ("-g",)):
        kinds = ("--emit", "exe,shared,static", *options, "--no-cache")
        build_here(module, *kinds, "--chip", "sm_90", "-o", f"{folder}/")


def describe(case: Case, ending: Ending, original: Ending) -> str:
    """What a person needs to know of a find."""
    return "\n".join(
        [
            f"{case.name}: {ending.signature}",
            f"exit code {ending.code} after {ending.seconds:.1f} s, of which "
            f"{ending.processor_seconds:.1f} at work: {' '.join(case.arguments)}",
            ending.said[-4000:],
            f"Before it was reduced: {original.seconds:.1f} s",
            original.said[-2000:],
            "",
        ]
    )


def table(endings: dict[str, Counter[str]]) -> str:
    """How many cases of each category ended how."""
    lines = []
    for category, counts in endings.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        lines.append(f"{category:<10} {sum(counts.values()):>6}: {kinds}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="how long (300)")
    parser.add_argument("--count", type=int, help="at most so many cases")
    parser.add_argument("--seed", type=int, help="else a fresh one, printed")
    parser.add_argument("--first", type=int, default=0, help="the first case's number (0)")
    parser.add_argument(
        "--category",
        action="append",
        choices=[category.name for category in CATEGORIES],
        help="only this one; may be given several times",
    )
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), metavar="DIR")
    parser.add_argument(
        "--reduce", type=float, default=60, metavar="SECONDS", help="for each find (60)"
    )
    parser.add_argument(
        "--anew", action="store_true", help="start each process anew, in place of forking it"
    )
    parser.add_argument("--verbose", action="store_true", help="print how each case ended")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
    names = options.category or [category.name for category in CATEGORIES]
    categories = [one for one in CATEGORIES if one.name in names and one.is_available]
    print(f"seed {seed}: {', '.join(one.name for one in categories)}", flush=True)
    endings: dict[str, Counter[str]] = defaultdict(Counter)
    finds: Counter[str] = Counter()
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as folder,
        Screen() as screen,
        Forks() as forks,
    ):
        shared = Shared(Path(folder), screen, mlir_texts())
        warm_up(Path(folder))
        for number, (category, case) in enumerate(cases(categories, seed, options.first, shared)):
            if number == options.count or time.monotonic() - start > options.seconds:
                break
            ending = execute(case, None if options.anew else forks)
            endings[category.name][ending.kind] += 1
            if options.verbose:
                print(f"{case.name} {ending.seconds:.1f} s {ending.signature}", flush=True)
            if not ending.is_find:
                continue
            finds[ending.signature] += 1
            if finds[ending.signature] > 1:
                print(f"again {case.name}: {ending.signature}", flush=True)
                continue
            plainer, now = reduce(case, ending, execute, options.reduce)
            text = describe(plainer, now, ending)
            keep(plainer, options.keep / case.name)
            (options.keep / case.name / "what.txt").write_text(text)
            print(f"{text}It is in {options.keep / case.name}", flush=True)
    print(table(endings))
    for signature, count in finds.most_common():
        print(f"{count:>6} {signature}")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
