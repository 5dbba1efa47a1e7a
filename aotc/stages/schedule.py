"""`Schedule`: runs stages, some of them in another thread, and holds their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from aotc.building.build import Build, BuildLog
from aotc.building.results import StageResult
from aotc.processes.signals import uninterrupted
from aotc.warnings import BuildWarning


class Stage(Struct, frozen=True):
    """A step of the build. `run` takes the build, and the results of the stages in `takes`,
    `may_take` and `of_targets` (see `aotc.artifact_kind`)."""

    name: str
    takes: tuple[str, ...]
    run: Callable[..., StageResult]
    may_take: tuple[str, ...] = ()
    of_targets: tuple[str, ...] = ()
    is_concurrent: bool = False
    begin: Callable[..., Any] | None = None


class Made(Struct, frozen=True):
    """The result of a stage; its begin and end, by `time.perf_counter`; and the warnings of a
    concurrent stage."""

    result: StageResult
    seconds: tuple[float, float]
    warnings: Sequence[BuildWarning] = ()


class Schedule:
    """The stages of a build, given in their order. `results` has the results of finished stages.

    `started` is called with each stage that this thread runs or waits for, and `ended` with each
    stage that has ended, in their order. An exception from them ends the build. When a stage fails,
    the stages before it are awaited first, and the failure of the first one is raised, as if there
    were no other thread.
    """

    def __init__(
        self,
        build: Build,
        started: Callable[[Stage], None],
        ended: Callable[[Stage, Made], None],
    ) -> None:
        self.results: dict[str, StageResult] = {}
        self._build = build
        self._started = started
        self._ended = ended
        # Stages whose end was not reported yet, in order: the result, or the future of it.
        self._pending: list[tuple[Stage, Made | Future[Made]]] = []
        # There is one thread, as each concurrent stage takes the result of the one before it.
        self._thread: ThreadPoolExecutor | None = None
        self._done: SimpleQueue[Future[Made]] = SimpleQueue()
        self._has_failed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt) or (error is not None and self._thread is not None):
            self._has_failed = True
            self._build.runner.stop()
        self._close()

    def run(self, stage: Stage) -> None:
        """Runs the stage, or starts it in the other thread."""
        if stage.is_concurrent:
            self._submit(stage)
            return
        self._await((*stage.takes, *stage.may_take, *stage.of_targets))
        self._started(stage)
        try:
            made = self._make(stage, self._build)
        except Exception:
            self._end_all(len(self._pending))
            raise
        self._pending.append((stage, made))
        if len(self._pending) == 1:
            self._end_all(1)

    def _submit(self, stage: Stage) -> None:
        begun = [] if stage.begin is None else [stage.begin(self._build, *self._inputs(stage))]
        with uninterrupted():
            if self._thread is None:
                self._thread = ThreadPoolExecutor(max_workers=1)
            work = self._thread.submit(self._make_concurrently, stage, begun)
            work.add_done_callback(self._done.put)
            self._pending.append((stage, work))

    def _inputs(self, stage: Stage) -> list[Any]:
        of_targets = tuple(self.results[name] for name in stage.of_targets)
        return [
            *(self.results[name] for name in stage.takes),
            *(self.results.get(name) for name in stage.may_take),
            *([of_targets] if of_targets else []),
        ]

    def _make(self, stage: Stage, build: Build, begun: Sequence[Any] = ()) -> Made:
        begin = time.perf_counter()
        result = stage.run(build, *self._inputs(stage), *begun)
        self.results[stage.name] = result
        return Made(result, (begin, time.perf_counter()))

    def _make_concurrently(self, stage: Stage, begun: Sequence[Any]) -> Made:
        # If two stages fail, the first failure is reported; this exception is dropped.
        assert not self._has_failed
        log = BuildLog()
        try:
            return replace(
                self._make(stage, replace(self._build, log=log), begun), warnings=log.warnings
            )
        except BaseException:
            self._has_failed = True
            raise

    def _await(self, names: Iterable[str]) -> None:
        """Waits until the stages of these names, and those before them, have ended."""
        wanted = set(names)
        places = [
            i
            for i, (stage, work) in enumerate(self._pending, 1)
            if stage.name in wanted and isinstance(work, Future)
        ]
        last = max(places, default=0)
        while last and last < len(self._pending) and isinstance(self._pending[last][1], Made):
            last += 1  # it has ended, but was not reported before those before it
        self._end_all(last)

    def end_all(self) -> None:
        """Waits for all stages that are running, and reports their ends."""
        self._end_all(len(self._pending))
        self._close()

    def _end_all(self, count: int) -> None:
        """Waits for the first `count` pending stages, and reports their ends."""
        for _ in range(count):
            stage, work = self._pending[0]
            if isinstance(work, Future):
                self._started(stage)
                # Waits by the queue: an interrupt while a future waits can leave it locked.
                while not work.done():
                    self._done.get()
                work = work.result()
                self._build.log.warnings += work.warnings
            del self._pending[0]
            self._ended(stage, work)

    def _close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
