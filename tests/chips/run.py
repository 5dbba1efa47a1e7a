"""Every kernel that the choosers can choose, built for chips, and their cubins read.

    python -m tests.chips.run [--chip sm_86,sm_90a]

Says how many kernels of each chip's cubins were read, and each that the chip would refuse. Exit
code 1 when there was one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from chips.cubins import refused
from chips.kernels import Kernel, capabilities_of, distinct

from aotc.request import Chip

# Kernels of one module: more make a build that fails dearer to find.
BATCH = 25
EVERY = 5  # batches
CHIPS = "sm_86,sm_120,sm_90a,sm_80,sm_89,sm_100a"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chips.run", description=__doc__)
    parser.add_argument("--chip", default=CHIPS, help=f"default: {CHIPS}")
    options = parser.parse_args()
    chips = [Chip.parse(name) for name in options.chip.split(",")]
    groups: dict[tuple[Chip, ...], list[Kernel]] = {}
    for kernel in distinct():
        able = tuple(chip for chip in chips if chip.capability in capabilities_of(kernel))
        groups.setdefault(able, []).append(kernel)
    batches = [
        (able, kernels[first : first + BATCH])
        for able, kernels in groups.items()
        for first in range(0, len(kernels), BATCH)
        if able
    ]
    begin, counts, refusals = time.monotonic(), Counter[str](), list[str]()
    for number, (able, kernels) in enumerate(batches, 1):
        with tempfile.TemporaryDirectory(prefix="aotc-chips-") as folder:
            read, found = refused(kernels, able, Path(folder))
        counts += read
        refusals += found
        print(*found, sep="\n", end="\n" if found else "", flush=True)
        if number % EVERY == 0 or number == len(batches):
            said = ", ".join(f"{chip}: {count}" for chip, count in counts.items())
            seconds = time.monotonic() - begin
            done = f"{number} of {len(batches)} batches, {seconds:.0f} s"
            print(f"{done}; {len(refusals)} refused of: {said}", flush=True)
    return 1 if refusals else 0


if __name__ == "__main__":
    sys.exit(main())
