"""The process in which one engine is alone: it makes an artifact, or opens one and is timed.

    python -m bench.models.worker TASK MODEL BATCH THREADS FOLDER [MORE...]

It answers by lines of JSON on its standard output. `reference` writes the inputs and the expected
results of eager PyTorch in f64, `make` makes an artifact and tells its CPU seconds. `measure` tells
the error of the first call; then it makes calls for as many seconds as each line of its standard
input says, and tells what they took. `kernels` and `nodes` tell
the steps of a call, and its seconds.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.models.engines import ALL, Call, Work
from bench.models.engines.engine import Array, array_of, leaves

# The largest error relative to the largest result: of any engine, and as a multiple of eager's.
_LIMIT, _FACTOR = 1e-4, 16
# A sample has as many calls as take so long: the CPU time of a thread is told with a delay.
_WARM_UP_SECONDS, _SAMPLE_SECONDS = 0.3, 20e-3


def main(arguments: Sequence[str]) -> int:
    task, model, batch, threads, folder, *more = arguments
    work = Work(model, int(batch), int(threads), Path(folder))
    warnings.simplefilter("ignore")
    # What libraries print is no answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        for answer in _TASKS[task](work, *more):
            answers.write(json.dumps(answer) + "\n")
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        message = f"{type(error).__name__}: {lines[0].strip() if lines else ''}"
        answers.write(json.dumps({"failure": message}) + "\n")
        raise
    return 0


def _reference(work: Work) -> Iterator[dict[str, Any]]:
    import torch

    from bench.models.catalogue import make

    module, inputs = make(work.model, work.batch)
    doubled = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
    with torch.no_grad():
        eager = [array_of(tensor) for tensor in leaves(module(**inputs))]
        exact = [array_of(tensor) for tensor in leaves(copy.deepcopy(module).double()(**doubled))]
    np.savez(work.folder / "expected.npz", *exact)
    work.save_inputs(inputs)
    (work.folder / "eager_error").write_text(repr(error_of(eager, exact)))
    yield {}


def _make(work: Work, engine: str, artifact: str) -> Iterator[dict[str, Any]]:
    import torch  # noqa: F401 (the time of its import is none of a build)

    from bench.models.catalogue import make

    make(work.model, work.batch)
    before = _cpu_seconds()
    ALL[engine].make(work, Path(artifact))
    yield {"cpu_seconds": _cpu_seconds() - before}


def _cpu_seconds() -> float:
    """User and system time, with all processes that were started and have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _measure(work: Work, engine: str, artifact: str) -> Iterator[dict[str, Any]]:
    call = ALL[engine].open(work, Path(artifact))
    with np.load(work.folder / "expected.npz") as file:
        error = error_of([array_of(one) for one in call()], list(file.values()))
    limit = max(_LIMIT, _FACTOR * float((work.folder / "eager_error").read_text()))
    if not error <= limit:
        yield {"failure": f"wrong result: its error is {error:.1e}"}
        return
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < _WARM_UP_SECONDS or calls < 2:
        call()
        calls += 1
    yield {"error": error}
    gc.disable()
    group = 1 + int(_SAMPLE_SECONDS / ((time.perf_counter() - start) / calls))
    for line in sys.stdin:
        yield {"samples": _samples(call, float(line), group)}


def _samples(call: Call, seconds: float, group: int) -> list[tuple[float, float]]:
    """Seconds of one call on the wall and of processors: means of groups of so many calls."""
    found: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(group):
            call()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        found.append((wall / group, cpu / group))
    return found


def error_of(got: Sequence[Array], exact: Sequence[Array]) -> float:
    """The largest error relative to the largest number of a result; infinite for another number of
    results, other shapes, and integers that differ."""
    if [one.shape for one in got] != [one.shape for one in exact]:
        return float("inf")
    errors = [0.0]
    for one, right in zip(got, exact, strict=True):
        size = float(np.abs(right).max(initial=0)) or 1.0
        error = float(np.abs(one.astype(right.dtype) - right).max(initial=0)) / size
        is_wrong = error != 0 and right.dtype.kind != "f"
        errors.append(float("inf") if is_wrong or np.isnan(error) else error)
    return max(errors)


def _kernels(work: Work, artifact: str, launches: str) -> Iterator[dict[str, Any]]:
    from bench.models import profile

    steps, seconds = profile.kernels(work, Path(artifact), Path(launches))
    yield {"steps": steps, "seconds": seconds}


def _nodes(work: Work, artifact: str) -> Iterator[dict[str, Any]]:
    from bench.models import profile

    steps, seconds = profile.nodes(work, Path(artifact))
    yield {"steps": steps, "seconds": seconds}


_TASKS: dict[str, Any] = {
    "reference": _reference,
    "make": _make,
    "measure": _measure,
    "kernels": _kernels,
    "nodes": _nodes,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
