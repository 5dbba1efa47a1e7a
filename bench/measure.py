"""Calls of several variants of one computation → their times, measured in turns.

A machine's speed drifts: with its temperature, and with what else runs there. So each round
calls every variant once, and a ratio is taken within a round; the median over the rounds is told.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class FailedError(Exception):
    """A variant cannot run here, or failed: why."""


@dataclass(frozen=True)
class Variant:
    """One way to compute the case's result.

    `prepare` is called before each call, outside of the timed span. `check` is given nothing and
    says what is wrong with the result of the last call, or None.
    """

    name: str
    call: Callable[[], None]
    prepare: Callable[[], None]
    check: Callable[[], str | None]


@dataclass(frozen=True)
class Timing:
    """The times of one variant in seconds, a number for each round; or why there are none."""

    name: str
    seconds: tuple[float, ...] = ()
    failure: str | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def fastest(self) -> float:
        return min(self.seconds)

    @property
    def slowest(self) -> float:
        return max(self.seconds)


def ratio(of: Timing, to: Timing) -> float | None:
    """The median over the rounds of `of`'s time in that of `to`; None where one has none."""
    if not of.seconds or not to.seconds:
        return None
    return statistics.median(a / b for a, b in zip(of.seconds, to.seconds, strict=True))


def measure(variants: Sequence[Variant], rounds: int) -> list[Timing]:
    """Checks every variant once, untimed, then times those that work `rounds` times in turns."""
    failures = {variant.name: _try(variant) for variant in variants}
    seconds: dict[str, list[float]] = {variant.name: [] for variant in variants}
    working = [variant for variant in variants if failures[variant.name] is None]
    for number in range(rounds):
        # Not always after the same one: a variant finds the caches as the one before left them.
        start = number % len(working) if working else 0
        for variant in (*working[start:], *working[:start]):
            variant.prepare()
            before = time.perf_counter()
            variant.call()
            seconds[variant.name].append(time.perf_counter() - before)
    return [Timing(v.name, tuple(seconds[v.name]), failures[v.name]) for v in variants]


def _try(variant: Variant) -> str | None:
    variant.prepare()
    try:
        variant.call()
    except FailedError as error:
        return str(error)
    problem = variant.check()
    return None if problem is None else f"wrong result: {problem}"
