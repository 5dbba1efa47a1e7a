"""Builds, three at a time, with caches that have a part of them; and builds that are interrupted.

    python -m tests.stress.run --builds 1000 --interrupts 200 --seed 7

A build must end, with its file; an interrupted one within a second, with 130, and nothing left.
Prints each that did otherwise, and a summary. Exit code 1 when there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.command import SAMPLES, aotc_command, process_environment

# A build that takes longer waits for something that never comes.
PATIENCE = 120.0
# Until then Python has no handlers of ours.
_START = 0.3
_AT_ONCE = 3
_SOURCES = ("saxpy.mlir", "vector_add.mlir", "dot.mlir", "matmul.mlir")
_CHIPS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
_KINDS = ("exe", "shared", "obj", "ptx,cubin", "static,manifest")


class Ended(NamedTuple):
    """How one ended: in a word ("right", "left files"), and what it said."""

    kind: str
    said: str = ""


class _Build(NamedTuple):
    words: list[str]
    folder: Path
    environment: dict[str, str]

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            aotc_command("build", *self.words, "-o", f"{self.folder}/out/"),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def left(self) -> list[str]:
        """Intermediates, and outputs that are not whole."""
        out = self.folder / "out"
        drafts = [path.name for path in out.glob(".*")] if out.exists() else []
        return [*drafts, *os.listdir(self.folder / "tmp")]  # noqa: PTH208


@contextlib.contextmanager
def _build(random_: random.Random, cache: Path) -> Iterator[_Build]:
    """A build of one module or two, in a folder of its own."""
    sources = random_.sample(_SOURCES, random_.choice((1, 1, 1, 2)))
    chips = random_.sample(_CHIPS, random_.choice((1, 2)))
    words = [str(SAMPLES / name) for name in sources]
    words += ["--chip", ",".join(chips), "--emit", random_.choice(_KINDS)]
    words += random_.choice(([], ["-O1"], ["--no-cpu-kernels"]))
    folder = Path(tempfile.mkdtemp(prefix="aotc-stress-"))
    try:
        (folder / "tmp").mkdir()
        own = {"TMPDIR": str(folder / "tmp"), "AOTC_CACHE": str(cache)}
        yield _Build(words, folder, process_environment(own))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def warm_build(seed: int, cache: Path) -> Ended:
    """Builds one with the cache."""
    with _build(random.Random(seed), cache) as build, build.start() as process:
        try:
            _, stderr = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Ended("never ended", " ".join(build.words))
        if process.returncode:
            return Ended(f"exit code {process.returncode}", stderr.decode())
        if left := build.left():
            return Ended("left files", " ".join(left))
        return Ended("right")


def interrupted_build(seed: int, cache: Path, longest: float) -> Ended:
    """Interrupts one at a random moment, by Ctrl-C or a signal to its first process alone."""
    random_ = random.Random(seed)
    with _build(random_, cache) as build, build.start() as process:
        try:
            process.wait(random_.uniform(_START, longest))
            process.communicate()
            return Ended("ended before")
        except subprocess.TimeoutExpired:
            pass
        began = time.monotonic()
        if Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            process.communicate()
            return Ended("ended before")
        number = random_.choice((signal.SIGINT, signal.SIGTERM))
        (os.killpg if random_.random() < 0.5 else os.kill)(process.pid, number)
        try:
            _, stderr = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Ended("never ended", " ".join(build.words))
        if process.returncode != 130 or stderr != b"\naotc: interrupted\n":
            return Ended(f"exit code {process.returncode}", stderr.decode())
        if left := build.left():
            return Ended("left files", " ".join(left))
        return Ended("right" if time.monotonic() - began < 1 else "late")


def builds(count: int, seed: int) -> Iterator[Ended]:
    """`count` builds, with a new cache for every twenty."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        caches = [Path(folder, str(i // 20)) for i in range(count)]
        yield from pool.map(warm_build, range(seed, seed + count), caches)


def interrupts(count: int, seed: int, longest: float = 3.0) -> Iterator[Ended]:
    """`count` builds that were interrupted; those that ended before are not counted."""
    with tempfile.TemporaryDirectory() as folder:
        while count:
            ended = interrupted_build(seed, Path(folder, str(seed // 20)), longest)
            seed += 1
            if ended.kind != "ended before":
                count -= 1
                yield ended


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--builds", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--interrupts", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args(arguments)
    # A shell's background job ignores it, and so would the builds.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"seed {options.seed}", flush=True)
    counts: Counter[tuple[str, str]] = Counter()
    for what, endings in (
        ("builds", builds(options.builds, options.seed)),
        ("interrupts", interrupts(options.interrupts, options.seed)),
    ):
        for ended in endings:
            counts[what, ended.kind] += 1
            if ended.kind != "right":
                print(f"{what}: {ended.kind}: {ended.said[-2000:]}", flush=True)
    for (what, kind), count in sorted(counts.items()):
        print(f"{what}: {count} {kind}")
    return int(any(kind != "right" for _, kind in counts))


if __name__ == "__main__":
    sys.exit(main())
