"""Where the time of a call goes, on one thread: by aotc's kernels, and by ONNX Runtime's nodes.

The runtime takes no times. `launches.c`, which is preloaded, takes those of launches of a library
whose runtime is shared; ONNX Runtime has a profiler. Each step has the least time of the calls.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain
from bench.models.engines import Work
from bench.models.engines.aotc import Aotc
from bench.models.engines.onnx_runtime import open_session

_SOURCE = Path(__file__).resolve().parent / "launches.c"
_SECONDS, _LEAST_CALLS, _MOST_CALLS = 3, 3, 50


class Step(NamedTuple):
    """A kernel or a node in the order of a call: what it is, of which size, and its seconds."""

    name: str
    size: str
    seconds: float


class _Note(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char_p),
        ("grid", ctypes.c_int64 * 3),
        ("nanoseconds", ctypes.c_int64),
    )


def compile_launches(folder: Path) -> Path:
    """The library that is preloaded."""
    output = folder / "launches.so"
    command = [
        *Toolchain(os.environ).zig_cc.command,
        *("-target", HostTarget.native().triple, "-shared", "-std=c11", "-D_GNU_SOURCE"),
        *("-O2", "-fPIC", "-fno-sanitize=all", "-Wall", "-Wextra", "-Werror", "-pedantic"),
        *(str(_SOURCE), "-ldl", "-o", str(output)),
    ]
    Runner(os.environ).run(command, making=output.name)
    return output


def kernels(work: Work, artifact: Path, launches: Path) -> tuple[list[Step], float]:
    """The launches of a call, and the seconds of all of it. Runs in a process into which
    `launches` was preloaded."""
    call = Aotc().open(work, artifact)
    call()
    library = ctypes.CDLL(str(launches))
    count = ctypes.c_int64.in_dll(library, "launches_count")
    notes = ctypes.cast(library.launches_notes, ctypes.POINTER(_Note))

    def steps() -> list[Step]:
        count.value = 0
        call()
        return [
            Step(
                # The layers' numbers: kernels of the same name and grid are told together.
                re.sub(r"_\d+_kernel", "_*_kernel", notes[i].kernel.decode()),
                "x".join(str(size) for size in notes[i].grid),
                notes[i].nanoseconds / 1e9,
            )
            for i in range(count.value)
        ]

    runs = _repeated(steps)
    return _least(runs), min(_repeated(lambda: _timed(call)))


def nodes(work: Work, artifact: Path) -> tuple[list[Step], float]:
    """The nodes of a run of ONNX Runtime, and the seconds of a run without a profile."""
    session, feed = open_session(work, artifact, profile=work.folder / "profile")
    runs = len(_repeated(lambda: session.run(None, feed)))
    file = Path(session.end_profiling())
    events = [one for one in json.loads(file.read_text()) if one["cat"] == "Node"]
    file.unlink()
    steps = [
        Step(one["args"]["op_name"], _shape(one["args"]), one["dur"] / 1e6)
        for one in events
        if one["name"].endswith("_kernel_time")
    ]
    count = len(steps) // runs
    plain, feed = open_session(work, artifact)
    total = min(_repeated(lambda: _timed(lambda: plain.run(None, feed))))
    return _least([steps[i * count : (i + 1) * count] for i in range(runs)]), total


def _shape(facts: Any) -> str:
    """The sizes of a node's inputs and its first result."""
    read = [next(iter(one.values())) for one in facts.get("input_type_shape", ())]
    made = [next(iter(one.values())) for one in facts.get("output_type_shape", ())]
    texts = ["x".join(map(str, sizes)) or "1" for sizes in (*read[:2], *made[:1])]
    return f"{', '.join(texts[:-1])} → {texts[-1]}" if texts else ""


def _repeated(run: Callable[[], Any]) -> list[Any]:
    end, found = time.perf_counter() + _SECONDS, [run()]
    while len(found) < _MOST_CALLS and (len(found) < _LEAST_CALLS or time.perf_counter() < end):
        found.append(run())
    return found


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _least(runs: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps of a call with their least seconds; all calls have the same steps."""
    return [min(column, key=lambda step: step.seconds) for column in zip(*runs, strict=True)]


def report(title: str, steps: Sequence[Step], total: float, most: int = 40) -> str:
    """The steps by name and size, the longest first. `first` is the place of the first one."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, step in enumerate(steps):
        groups.setdefault((step.name, step.size), []).append(place)
    sums = {key: sum(steps[i].seconds for i in places) for key, places in groups.items()}
    inside = sum(sums.values())
    lines = [
        f"{title}: {1e3 * total:.3f} ms; {len(steps)} steps in {1e3 * inside:.3f} ms",
        f"{'ms':>9} {'%':>5} {'count':>5} {'first':>5}",
    ]
    for key in sorted(sums, key=lambda key: -sums[key])[:most]:
        share, places = 100 * sums[key] / inside, groups[key]
        counts = f"{1e3 * sums[key]:9.3f} {share:5.1f} {len(places):5} {places[0]:5}"
        lines.append(f"{counts}  {key[0]}  {key[1]}")
    return "\n".join(lines) + "\n"
