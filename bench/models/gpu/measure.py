"""Runs the models of this folder on a GPU, beside eager PyTorch and torch.compile.

    ./run [MODEL ...] [--dtype f16] [--batch 1 8] [--engines aotc eager compile autotune]
    ./run bert --kernels        # the kernels of a call of each, and what they take
    ./run --limit 400           # ends after so many seconds: what is missing then is said
    ./run --jobs 8              # makes so many modules beside each other
    ./run --jobs 4 --gpus 4     # so many on each of four GPUs

Each model, type and batch has a process of its own. `--jobs` of them make their modules and weights
on the host at once, and compile; then one after the other measures, while the machine is quiet.
With several GPUs, each has its part of the processors, and takes the next models when it is done.
Inductor tries kernels in one process at a time, and an engine that is not compiled within
`--compile-limit`, or fails, loses its own column only. Every engine's
result is held against that of the same module in f64; then they are called in turns, in an order
that is drawn anew, and a turn is some calls between two events: its time has the host's part in it,
where that is the longer one. Told is the median. `captured` and `aotc_captured` are eager's and
aotc's calls in CUDA graphs; `autotune` is `torch.compile(mode="max-autotune")`, with CUDA graphs
that it makes, and `reduce_overhead` is the mode of that name, which makes them without trying
kernels. f32 is without tf32 in all. Memory is the most that there was on the device at a
time, with weights. Prints a line of JSON for each, and writes --json FILE with all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import importlib
import json
import os
import random
import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.models.gpu import inductor

HERE = Path(__file__).resolve().parents[3]
_MODES = {"reduce_overhead": "reduce-overhead", "autotune": "max-autotune"}
_COMPILED = ("compile", *_MODES)
ENGINES = ("aotc", "aotc_captured", "eager", "captured", *_COMPILED)
_MEASURED = [name for name in ENGINES if name != "reduce_overhead"]
# Errors relative to the largest result: of any engine, and as a multiple of eager's.
_LIMITS, _FACTOR = {"f32": 2e-5, "f16": 1e-2}, 4
# What is left of compiling, after its limit.
_STOP_SECONDS = 20
_TURN_SECONDS, _MOST_CALLS = 6e-3, 100
# A call that takes longer needs none before it.
_LONG_SECONDS = 0.1

Call = Callable[[], Sequence[Any]]


def main() -> int:
    start = time.monotonic()
    parser = argparse.ArgumentParser(prog="run", description=__doc__, formatter_class=_AsWritten)
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL")
    add("--dtype", nargs="+", default=["f16", "f32"])
    add("--batch", nargs="+", type=int, default=[1, 8, 64])
    add("--engines", nargs="+", choices=ENGINES, default=_MEASURED)
    add("--rounds", type=int, default=15)
    add("--kernels", action="store_true", help="what a call is made of, too")
    add("--limit", type=float, default=3600, help="seconds in all")
    add("--compile-limit", type=float, default=600, help="seconds to compile (600)")
    add("--json", type=Path, metavar="FILE")
    add("--jobs", type=int, default=1, metavar="N", help="modules that are made at once (1)")
    add("--gpus", type=int, default=1, metavar="N", help="GPUs that measure beside each other (1)")
    add("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = {Path(one["folder"]).name: one for one in json.loads((HERE / "cases.json").read_text())}
    if options.case is not None:
        return _measure(known[options.case], options, start + options.compile_limit)
    # As the models were named, so that the limit leaves out the last ones.
    order = {name: place for place, name in enumerate(options.models)}
    names = sorted(
        (
            name
            for name, case in known.items()
            if (not options.models or case["model"] in options.models)
            and case["dtype"] in options.dtype
            and case["batch"] in options.batch
        ),
        key=lambda name: order.get(known[name]["model"], 0),
    )
    with tempfile.TemporaryDirectory() as folder:
        queue = _Queue(names, options, start + options.limit, Path(folder))
        with ThreadPoolExecutor(options.gpus) as threads:
            list(threads.map(queue.measure_on, range(options.gpus)))
    return int(not queue.rows or any(map(_is_wrong, queue.rows)))


@dataclass
class _Queue:
    """The cases to be measured by `end`, in this order, and the rows of those that were."""

    names: list[str]
    options: argparse.Namespace
    end: float
    folder: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    cores: list[int] = field(default_factory=lambda: sorted(os.sched_getaffinity(0)))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def measure_on(self, gpu: int) -> None:
        """Measures on this GPU of `options.gpus`, in a thread of its own, until no case is left."""
        # Those of this thread, and of the processes that it starts.
        os.sched_setaffinity(0, _part(self.cores, gpu, self.options.gpus))
        folder = self.folder / str(gpu)
        folder.mkdir()
        while part := self._take(self.options.jobs):
            until = self.end
            if set(_COMPILED).intersection(self.options.engines):
                limit = time.monotonic() + self.options.compile_limit + _STOP_SECONDS
                until = min(self.end, limit)
            environment = inductor.environment(folder, len(part), os.environ)
            environment["CUDA_VISIBLE_DEVICES"] = _device(gpu, os.environ)
            cases = [_Process(folder, name, environment) for name in part]
            late = {case: not case.prepare(until) for case in cases}
            # One that hangs keeps none from being measured.
            for case in sorted(cases, key=late.__getitem__):
                self._add(case.measure(self.end))

    def _take(self, count: int) -> list[str]:
        with self.lock:
            part, self.names = self.names[:count], self.names[count:]
        return part

    def _add(self, row: dict[str, Any]) -> None:
        with self.lock:
            self.rows.append(row)
            _print(row)
            # A failure later on leaves these.
            _write(self.options.json, self.rows)


def _part(cores: Sequence[int], at: int, of: int) -> Sequence[int]:
    """Neighbours; all of them, where there are fewer than parts."""
    return cores[at * len(cores) // of : (at + 1) * len(cores) // of] or cores


def _device(gpu: int, of: Mapping[str, str]) -> str:
    """The `gpu`-th one of those that CUDA would show."""
    visible = of.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[gpu] if visible else str(gpu)


class _Process:
    """That of one case, which makes its module, and waits for a line before it measures."""

    def __init__(self, folder: Path, name: str, environment: Mapping[str, str]) -> None:
        self._name, self._file, self._said = name, folder / f"{name}.json", folder / f"{name}.log"
        words = [*sys.argv[1:], "--case", name, "--json", str(self._file)]
        command = [sys.executable, "-m", "bench.models.gpu.measure", *words]
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
            )

    def prepare(self, end: float) -> bool:
        """Waits until its module is there, its process has ended, or time is over: False."""
        stdout = self._process.stdout
        assert stdout is not None
        return bool(select.select([stdout], [], [], max(0, end - time.monotonic()))[0])

    def measure(self, end: float) -> dict[str, Any]:
        """Its row; else why there is none."""
        try:
            self._process.communicate(b"\n", timeout=max(0, end - time.monotonic()))
        except BrokenPipeError:
            self._process.wait()
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return {"case": self._name, "failure": "not done at the limit"}
        if not self._file.exists():
            said = self._said.read_text()[-1500:]
            return {"case": self._name, "failure": f"exit code {self._process.returncode}: {said}"}
        row: dict[str, Any] = json.loads(self._file.read_text())
        return row


def _write(file: Path | None, rows: Any) -> None:
    if file is not None:
        file.write_text(json.dumps(rows, indent=1) + "\n")


def _measure(case: dict[str, Any], options: argparse.Namespace, compiled: float) -> int:
    """`compiled`: when its engines have to be."""
    torch = importlib.import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    # What libraries print is no sign of being ready.
    ready = os.dup(1)
    os.dup2(2, 1)
    made = _Case(case)
    try:
        names = [name for name in options.engines if name in _COMPILED]
        if names:
            inductor.time_kernels_alone(options.json.with_name("trials.lock"))
            made.compile(names, compiled)
        os.write(ready, b"\n")
        sys.stdin.readline()
        row = {key: case[key] for key in ("model", "dtype", "batch", "of_any")}
        row["device"] = torch.cuda.get_device_name()
        made.move()
        row["engines"] = made.opened(options.engines)
        made.time(row["engines"], options.rounds)
        if options.kernels:
            row["kernels"] = {name: _kernels(call) for name, call in made.calls.items()}
    finally:
        made.remove_weights()
    _write(options.json, row)
    # Without waiting for what Inductor's workers still compile.
    os._exit(0)


class _Case:
    """One model, type and batch."""

    def __init__(self, case: dict[str, Any]) -> None:
        """What needs no GPU."""
        self._torch: Any = importlib.import_module("torch")
        catalogue = importlib.import_module("bench.models.gpu.catalogue")
        weights = importlib.import_module("frontends.weights")
        self._case, self.calls = case, dict[str, Call]()
        self._compiled: dict[str, _Compiled] = {}
        made = catalogue.made(case["model"], case["batch"], case["dtype"], "cpu")
        self._module, self._inputs = made
        self._library = HERE / case["folder"] / "lib"
        if case["weights"] is not None:
            weights.put_back(self._library / "model.weights", case["weights"], self._module)

    def compile(self, names: Sequence[str], end: float) -> None:
        """A first call of these engines."""
        self._move()
        for name in names:
            start = time.monotonic()
            call, failure = None, None
            try:
                with inductor.deadline(end):
                    call = self._call_of(name)
                    call()
                    self._torch.cuda.synchronize()
            except (Exception, inductor.TooLong) as error:
                call, failure = None, _said(error)
            self._compiled[name] = _Compiled(call, failure, time.monotonic() - start)

    def move(self) -> None:
        """To the GPU, with what is right."""
        self._move()
        self._exact = self._reference()
        error = _error(self._eager()(), self._exact)
        self._allowed = max(_LIMITS[self._case["dtype"]], _FACTOR * error)

    def _move(self) -> None:
        self._module = self._module.to("cuda")
        self._inputs = {name: value.to("cuda") for name, value in self._inputs.items()}

    def remove_weights(self) -> None:
        """Those of all models are more than a disk may have."""
        (self._library / "model.weights").unlink(missing_ok=True)

    def _reference(self) -> list[Any]:
        """On the host, so that it is no memory of an engine's."""
        wide = copy.deepcopy(self._module).double()
        inputs = {k: x.double() if x.is_floating_point() else x for k, x in self._inputs.items()}
        with contextlib.suppress(self._torch.OutOfMemoryError):
            return [one.cpu() for one in _leaves(wide(**inputs))]
        # In f64, attention has all scores.
        return _joined([_leaves(wide(**part)) for part in _parts(inputs, self._case["batch"])])

    def opened(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What is known of each engine after a call; `calls` has those that are right."""
        found: dict[str, dict[str, Any]] = {}
        cuda = self._torch.cuda
        for name in sorted(names, key=ENGINES.index):
            gc.collect()
            cuda.empty_cache()
            cuda.reset_peak_memory_stats()
            start, (free, _), reserved = (
                time.monotonic(),
                cuda.mem_get_info(),
                cuda.memory_reserved(),
            )
            before = cuda.memory_allocated()
            row = found.setdefault(name, {})
            compiled = self._compiled.get(name, _Compiled())
            if compiled.failure is not None:
                row["failure"] = compiled.failure
                continue
            try:
                call = compiled.call or self._call_of(name)
                for _ in range(3):
                    results = call()
                cuda.synchronize()
                row["seconds_to_start"] = round(compiled.seconds + time.monotonic() - start, 1)
                row["error"] = _error(results, self._exact)
                del results
            except Exception as error:
                row["failure"] = _said(error)
                continue
            used = round((cuda.max_memory_allocated() - before) / 2**20)
            if name == "aotc":
                # What the library has beside PyTorch's memory, its code among it.
                taken = free - cuda.mem_get_info()[0] - (cuda.memory_reserved() - reserved)
                row["MiB"] = used + round(taken / 2**20)
            elif name != "aotc_captured":
                row["MiB"] = used + round(self._bytes() / 2**20)
            if row["error"] <= self._allowed:
                self.calls[name] = call
            else:
                row["failure"] = "wrong"
        return found

    def _bytes(self) -> int:
        """Of the module's weights."""
        return sum(x.nbytes for x in self._module.state_dict().values())

    def time(self, rows: dict[str, dict[str, Any]], rounds: int) -> None:
        """Microseconds of a call of each, in turns. One that fails is no longer called."""
        turns: dict[str, Callable[[], float]] = {}
        times: dict[str, list[float]] = {name: [] for name in self.calls}
        for _ in range(rounds):
            for name in random.sample(list(self.calls), len(self.calls)):
                call = self.calls[name]
                try:
                    turns[name] = turns.get(name) or self._turn_of(call)
                    times[name].append(turns[name]())
                except Exception as error:
                    rows[name]["failure"] = _said(error)
                    del self.calls[name]
        for name in self.calls:
            rows[name]["us"] = round(1e6 * statistics.median(times[name]), 1)

    def _turn_of(self, call: Call) -> Callable[[], float]:
        """A turn of as many calls as fit."""
        if self._turn(call, 1) > _LONG_SECONDS:
            return partial(self._turn, call, 1, warms_up=False)
        count = max(1, min(_MOST_CALLS, int(_TURN_SECONDS / self._turn(call, 3))))
        return partial(self._turn, call, count)

    def _turn(self, call: Call, count: int, *, warms_up: bool = True) -> float:
        cuda = self._torch.cuda
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        if warms_up:
            call()
        start.record()
        for _ in range(count):
            call()
        end.record()
        cuda.synchronize()
        return float(start.elapsed_time(end) * 1e-3 / count)

    def _aotc(self) -> Call:
        aotc = importlib.import_module("aotc")
        module = importlib.import_module("aotc.library.torch_module").Module
        entry = module(aotc.load(self._library / "libmodel.so")["model"])
        if entry.state is not None:
            # It begins with zeros (catalogue.made).
            for name in entry.state.fields:
                entry.state.write(name, self._module.get_buffer(name))
        return lambda: _leaves(entry(**self._inputs))

    def _eager(self) -> Call:
        return lambda: _leaves(self._module(**self._inputs))

    def _aotc_captured(self) -> Call:
        return self._in_a_graph(self._aotc())

    def _captured(self) -> Call:
        return self._in_a_graph(self._eager())

    def _in_a_graph(self, plain: Call) -> Call:
        cuda = self._torch.cuda
        side = cuda.Stream()
        with cuda.stream(side):
            plain()
        cuda.current_stream().wait_stream(side)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            results = plain()

        def call(_: Call = plain) -> Sequence[Any]:
            # `plain` has the state that the graph changes.
            graph.replay()
            return results

        return call

    def _call_of(self, name: str) -> Call:
        if name in _COMPILED:
            mode = _MODES.get(name)
            compiled = self._torch.compile(self._module, dynamic=False, mode=mode)
            return lambda: _leaves(compiled(**self._inputs))
        call: Call = getattr(self, f"_{name}")()
        return call


@dataclass(frozen=True)
class _Compiled:
    """What came of compiling."""

    call: Call | None = None
    failure: str | None = None
    seconds: float = 0


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:500]}"


def _leaves(value: Any) -> list[Any]:
    torch: Any = importlib.import_module("torch")
    value = dict(value) if isinstance(value, dict) else value
    found = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in found if isinstance(leaf, torch.Tensor)]


def _parts(inputs: dict[str, Any], batch: int) -> list[dict[str, Any]]:
    """The inputs for each element of a batch."""
    return [
        {key: x[at : at + 1] if x.shape[:1] == (batch,) else x for key, x in inputs.items()}
        for at in range(batch)
    ]


def _joined(parts: Sequence[Sequence[Any]]) -> list[Any]:
    torch: Any = importlib.import_module("torch")
    return [torch.cat([one.cpu() for one in results]) for results in zip(*parts, strict=True)]


def _error(got: Sequence[Any], exact: Sequence[Any]) -> float:
    """The largest error relative to the largest number of a result."""
    if [one.shape for one in got] != [one.shape for one in exact]:
        return float("inf")
    errors = []
    for one, right in zip(got, exact, strict=True):
        size = float(right.abs().max()) or 1.0
        errors.append(float((one.cpu().double() - right).abs().max()) / size)
    return float("nan") if any(one != one for one in errors) else max(errors)


def _kernels(call: Call) -> list[tuple[str, int, float]]:
    """Kernels, copies and fills of a call: the name, how many, and their microseconds."""
    torch: Any = importlib.import_module("torch")
    calls = 5
    activities = [torch.profiler.ProfilerActivity.CUDA]
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    rows = [
        (one.key, round(one.count / calls), one.self_device_time_total / calls)
        for one in profile.key_averages()
        if one.self_device_time_total > 0
    ]
    return sorted(rows, key=lambda row: -row[2])


def _print(row: dict[str, Any]) -> None:
    print(json.dumps({key: row[key] for key in row if key != "kernels"}), flush=True)
    for engine, rows in row.get("kernels", {}).items():
        print(f"  {engine}: {sum(row[2] for row in rows):.1f} us of {sum(r[1] for r in rows)}")
        for name, count, taken in rows[:25]:
            print(f"    {taken:9.1f} us {count:4} {name[:100]}")


def _is_wrong(row: dict[str, Any]) -> bool:
    return "failure" in row or "failure" in row["engines"].get("aotc", {})


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    sys.exit(main())
