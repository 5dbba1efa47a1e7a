"""The CPU device's benchmark: kernels on the CPU against C loops on the same cores, in one run.

    make bench                            or: .venv/bin/python -m bench.cpu_device [OPTIONS]

The kernels are built by aotc, the loops (reference.c) by the same clang with the same
optimization for the same processor: the baseline of the architecture, which is what aotc
compiles kernels for. The loops are there a second time for all that this machine's processor has
(`native`). They run on as many threads as the CPU device does: by OpenMP where LLVM's or Intel's
library for it is found (--openmp; Debian's libomp5, PyPI's intel-openmp), else by pthreads, since
zig's clang brings none.

Every result is checked against NumPy's before it is timed. Exit code 1: a variant failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aotc import __version__
from aotc.errors import ToolError
from aotc.request import HostTarget
from aotc.toolchain import Toolchain
from bench.cpu_device.cases import CASES, SOURCES, Programs
from bench.cpu_device.programs import Kernels, Loops, find_openmp
from bench.cpu_device.report import Outcome, Setting, to_json, to_text
from bench.measure import FailedError, measure


def main() -> int:
    options = _parse(sys.argv[1:])
    openmp = _openmp(options.openmp)
    # Before any library is loaded, which reads them. An OpenMP thread that spins while it waits
    # for work would slow down what comes after it.
    os.environ["AOTC_DEVICE"] = "cpu"
    os.environ["AOTC_CPU_THREADS"] = str(options.threads)
    os.environ["KMP_BLOCKTIME"] = "0"
    cases = [case for case in CASES if case.name in (options.case or [case.name])]
    with tempfile.TemporaryDirectory(prefix="aotc-bench-") as name:
        folder = Path(name)
        _say("compiling the C loops")
        loops = {
            kind: Loops(
                folder,
                optimization=options.optimization,
                threads=options.threads,
                openmp=openmp,
                is_native=kind == "native",
            )
            for kind in ("baseline", "native")
        }
        outcomes = []
        for case in cases:
            _say(f"measuring {case.name}")
            kernels = {
                name: Kernels(SOURCES[name], folder, options.optimization) for name in case.modules
            }
            programs = Programs(kernels, loops)
            outcomes.append(Outcome(case, measure(case.variants(programs), options.rounds)))
    toolchain = Toolchain(os.environ)
    setting = Setting(
        threads=options.threads,
        threading=loops["baseline"].threading,
        rounds=options.rounds,
        optimization=options.optimization,
        target=HostTarget.native().triple,
        versions={"aotc": __version__, "clang": str(toolchain.clang.version)},
    )
    if options.json:
        options.json.write_text(json.dumps(to_json(setting, outcomes), indent=2) + "\n")
    print(to_text(setting, outcomes), end="")
    has_failed = any(timing.failure for outcome in outcomes for timing in outcome.timings)
    return 1 if has_failed else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.cpu_device", description=__doc__.splitlines()[0])
    names = [case.name for case in CASES]
    parser.add_argument("--case", action="append", choices=names, help="only this; may be repeated")
    parser.add_argument("--rounds", type=_positive, default=9, help="default: 9")
    parser.add_argument(
        "--threads",
        type=_positive,
        default=len(os.sched_getaffinity(0)),
        help="default: all CPUs that this process may use",
    )
    parser.add_argument(
        "--optimization", default="-O3", choices=["-O0", "-O1", "-O2", "-O3"], help="default: -O3"
    )
    parser.add_argument(
        "--openmp", metavar="FILE", help="an OpenMP library, or none; default: one that is found"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there, too")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _openmp(name: str | None) -> Path | None:
    if name == "none":
        return None
    if name is None:
        return find_openmp()
    path = Path(name)
    if not path.is_file():
        sys.exit(f"bench.cpu_device: there is no file '{name}'")
    return path.resolve()


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FailedError, ToolError) as error:
        sys.exit(f"bench.cpu_device: {error}")
