"""Every kernel that the choosers can choose, built for chips, and their cubins read.

    python -m tests.chips.run [--chip sm_86,sm_90a]

Says for each chip how many kernels were read, and each that the chip would refuse. Exit code 1
when there was one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from chips.cubins import refused
from chips.kernels import distinct

from aotc.request import Chip

# Kernels of one module: more make a build that fails dearer to find.
BATCH = 25
CHIPS = "sm_86,sm_120,sm_90a,sm_80,sm_89,sm_100a"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chips.run", description=__doc__)
    parser.add_argument("--chip", default=CHIPS, help=f"default: {CHIPS}")
    options = parser.parse_args()
    kernels = distinct()
    code = 0
    for chip in map(Chip.parse, options.chip.split(",")):
        begin, count, problems = time.monotonic(), 0, list[str]()
        for first in range(0, len(kernels), BATCH):
            with tempfile.TemporaryDirectory(prefix="aotc-chips-") as folder:
                read, found = refused(kernels[first : first + BATCH], chip, Path(folder))
            count += read
            problems += found
            for problem in found:
                print(f"{chip.name}: {problem}", flush=True)
        seconds = time.monotonic() - begin
        print(f"{chip.name}: {count} kernels, {len(problems)} refused, {seconds:.0f} s", flush=True)
        code = 1 if problems else code
    return code


if __name__ == "__main__":
    sys.exit(main())
