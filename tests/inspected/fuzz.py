"""Inspects damaged files: each must give a report or an InputError, in bounded time and memory.

    PYTHONPATH=tests python tests/inspected/fuzz.py --count 100000

builds the files to damage, says what came of them, and the peak of memory; exit code 1, with the
seed and the number of the copy, where something else was raised. Tests run a part of it.
"""

from __future__ import annotations

import argparse
import collections
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspected.mutations import Mutator
from inspected.support import Built, build_small, pack

from aotc.errors import InputError
from aotc.images.view import View
from aotc.inspect.images import image_texts, occupancy_rows
from aotc.inspect.report import Report, report_of
from aotc.inspect.text import to_text
from aotc.request import Chip

LIMIT_SECONDS = 5.0


def kinds_of(built: Built, folder: Path) -> dict[str, bytes]:
    """The files to damage, by kind."""
    images = [("elf", "80", built.cubin()), ("ptx", "80", built.ptx)]
    packed = {
        f"fatbin ({mode})": pack(images, folder / f"{mode}.fatbin", mode)
        for mode in ("size", "speed")
    }
    files = {
        "exe": built.executable,
        "shared": built.shared,
        "static": built.static,
        "obj": built.object,
        "fatbin": built.fatbin,
        **packed,
        "cubin": built.cubin(),
        "ptx": built.ptx,
    }
    return {kind: file.read_bytes() for kind, file in files.items()}


def look_at(content: bytes) -> str:
    """All that the command does with a file; `report`, `problems`, or what the InputError says."""
    view = View(content, "the file")
    try:
        report = report_of(view)
        outcome = "report with problems" if report.problems else "report"
        said = _look_on(view, report)
    except InputError as error:
        said, outcome = [error.message], "error"
    wrong = [line for text in said for line in text.split("\n") if not line.isprintable()]
    if wrong:
        raise AssertionError(f"not printable: {wrong}")
    return outcome


def _look_on(view: View, report: Report) -> list[str]:
    """What else the command can be asked; what it would print."""
    text = to_text(report)
    report.to_json().encode()
    said = [text, *report.problems]
    for use in (
        lambda: list(image_texts(view, "ptx", None, {}, {})),
        lambda: occupancy_rows(report, _CHIP, None),
    ):
        try:
            use()
        except InputError as error:
            said.append(error.message)
    return said


_CHIP = Chip("sm_80")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in what takes longer."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(content: bytes, seed: int, count: int) -> collections.Counter[str]:
    """How many of `count` damaged copies came to what. Raises whatever is no InputError."""
    mutator = Mutator(content, seed)
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(count):
        damaged = mutator.next()
        try:
            with time_limit(LIMIT_SECONDS):
                outcomes[look_at(damaged)] += 1
        except Exception as error:
            error.add_note(f"seed {seed}, copy {number} of {len(damaged)} bytes")
            raise
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="copies of all kinds together")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        kinds = kinds_of(build_small(Path(name)), Path(name))
        print(f"peak of memory before: {peak_mib():.0f} MiB")
        each = -(-options.count // len(kinds))
        for kind, content in kinds.items():
            start = time.monotonic()
            try:
                outcomes = fuzz(content, options.seed, each)
            except Exception:
                traceback.print_exc()
                return 1
            said = ", ".join(f"{number} {what}" for what, number in sorted(outcomes.items()))
            seconds = time.monotonic() - start
            print(
                f"{kind}: {len(content)} bytes, {each} copies: {said}; {seconds:.0f} s, peak "
                f"{peak_mib():.0f} MiB",
                flush=True,
            )
    return 0


def peak_mib() -> float:
    """The most memory that this process had. (Not ru_maxrss, which begins with its parent's.)"""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
