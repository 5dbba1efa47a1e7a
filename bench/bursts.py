"""Calls on a GPU that take turns in bursts → seconds of each, where PyTorch is, and aotc is not.

A burst is a CUDA graph of some milliseconds, with a pause before it (a GPU at its power limit slows
down whoever comes second), in an order that is drawn anew. What counts is the median, by events.
Whoever calls rotates buffers, so that no operand is in the cache (`sets_of`).
"""

from __future__ import annotations

import importlib
import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

torch = importlib.import_module("torch")

ROUNDS = 15
_BURST_SECONDS = 3e-3
_PAUSE_SECONDS = 0.04
_SUSTAINED_SECONDS = 0.5
_SUSTAINED_TURNS = 3
_ROTATED_BYTES = 200e6
_MOST_SETS = 16
_MOST_CALLS = 200

# Is given how many calls were before it.
Run = Callable[[int], None]


def sets_of(bytes_: int) -> int:
    """How many sets of so large operands a call should find, one after the other."""
    return max(1, min(_MOST_SETS, int(_ROTATED_BYTES / bytes_)))


class Bursts:
    """Graphs of `runs`, of as many calls of each as `reference` has in a burst."""

    def __init__(self, runs: Mapping[str, Run], reference: str) -> None:
        once = {name: _once(run) for name, run in runs.items()}
        self.calls = max(1, min(_MOST_CALLS, int(_BURST_SECONDS / once[reference])))
        self._graphs = {name: _graph(run, self.calls) for name, run in runs.items()}

    def medians(self, rounds: int = ROUNDS) -> dict[str, float]:
        """Seconds of a call."""
        times: dict[str, list[float]] = {name: [] for name in self._graphs}
        for _ in range(rounds):
            for name in random.sample(list(self._graphs), len(self._graphs)):
                time.sleep(_PAUSE_SECONDS)
                times[name].append(_timed(self._graphs[name], 1) / self.calls)
        return {name: statistics.median(taken) for name, taken in times.items()}

    def sustained(self) -> dict[str, float]:
        """Seconds of a call without pauses, in the second half of a turn: the median of turns."""
        times: dict[str, list[float]] = {name: [] for name in self._graphs}
        for _ in range(_SUSTAINED_TURNS):
            for name in random.sample(list(self._graphs), len(self._graphs)):
                graph = self._graphs[name]
                replays = max(1, round(_SUSTAINED_SECONDS / 2 / _timed(graph, 1)))
                _timed(graph, replays)
                times[name].append(_timed(graph, replays) / replays / self.calls)
        return {name: statistics.median(taken) for name, taken in times.items()}


def _timed(graph: Any, replays: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end) * 1e-3)


def _graph(run: Run, calls: int) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            run(i)
    return graph


def _once(run: Run) -> float:
    for i in range(3):
        run(i)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for i in range(5):
        run(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 5
