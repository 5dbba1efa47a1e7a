"""Settings of torch.compile's Inductor for several processes that compile for one GPU at once."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# A second signal follows where a callback has swallowed the first one.
_AGAIN_SECONDS = 5


class TooLong(BaseException):
    """No Exception: Inductor catches those of one candidate, and goes on with the next."""


def environment(folder: Path, jobs: int, of: Mapping[str, str]) -> dict[str, str]:
    """Variables for `jobs` processes: one cache in `folder`, and some threads a core in all."""
    cores = len(os.sched_getaffinity(0))
    return {
        **of,
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TORCHINDUCTOR_COMPILE_THREADS": str(max(2, min(cores, 3 * cores // jobs))),
    }


@contextlib.contextmanager
def deadline(end: float) -> Iterator[None]:
    """Raises TooLong in the main thread when time.monotonic() has come to `end`."""
    seconds = max(0.001, end - time.monotonic())

    def stop(*_: Any) -> None:
        raise TooLong(f"not compiled in {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def time_kernels_alone(lock: Path) -> None:
    """Makes each trial of a kernel wait for those of the other processes that have this lock:
    trials on a shared GPU would choose by chance."""
    benchmarker = importlib.import_module("torch._inductor.runtime.benchmarking").benchmarker
    trial = benchmarker.benchmark_gpu

    def locked(*arguments: Any, **keywords: Any) -> Any:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return trial(*arguments, **keywords)

    benchmarker.benchmark_gpu = locked
