"""`run_jobs`: runs jobs on worker processes, several at once, and reports them in order."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from aotc.errors import EXIT_INTERNAL, EXIT_OK, InternalError
from aotc.many.job import Ended, Job, Tally
from aotc.many.worker import BuildJob, Orders, Stage
from aotc.processes.record import record_handle, temporary_folder
from aotc.processes.signals import uninterrupted

# Seconds that a worker may take to end: MLIR's passes cannot be interrupted.
_PATIENCE = 5.0
_START = (
    "import sys; sys.path[:] = sys.argv[4:]; from aotc.many.worker import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))"
)


class Watcher(Protocol):
    """Receives the events of jobs, which are identified by their numbers."""

    def started(self, number: int) -> None: ...

    def stage(self, number: int, name: str) -> None: ...

    def ended(self, number: int, result: Ended) -> None: ...


class _Worker:
    """A worker process, and the connection to it."""

    def __init__(self, orders: Orders) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: do not import modules from the current folder.
            record = record_handle()
            handles = [theirs.fileno(), *([] if record is None else [record])]
            numbers = [theirs.fileno(), os.getpid(), -1 if record is None else record]
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, *map(str, numbers), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=handles,
                # Ctrl-C on the terminal must reach only the parent.
                process_group=0,
            )
        self.connection = Connection(ours.detach())
        self.number: int | None = None
        self._send(orders)

    def give(self, number: int, job: Job) -> None:
        self.number = number
        self._send(job)

    def _send(self, message: Orders | Job) -> None:
        # If the worker has ended, its connection reports that.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)

    def tell_to_end(self) -> None:
        self.connection.close()
        if self.number is not None:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, until: float) -> None:
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            for tool in _children(self.process.pid):
                with contextlib.suppress(OSError):
                    os.killpg(tool, signal.SIGKILL)
            self.process.kill()
            self.process.wait()


def _children(pid: int) -> list[int]:
    """The processes that its threads have started: tools, each with its own process group."""
    found = []
    for place in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in place.read_text().split()]
    return found


def run_jobs(
    jobs: Sequence[Job],
    build: BuildJob,
    options: Mapping[str, Any],
    watcher: Watcher,
    *,
    workers: int,
    fail_fast: bool = False,
) -> Tally:
    """Builds every job with `build`, `workers` at once; returns the outcomes.

    A failure does not affect other jobs, unless `fail_fast`: then running jobs are ended, and no
    more are started. If the caller is interrupted, all processes end and their files are removed.
    """
    tally = Tally(list(jobs))
    with temporary_folder() as folder:
        pool = _Pool(jobs, watcher, Orders(build, dict(options), folder))
        try:
            for _ in range(min(workers, len(jobs))):
                pool.begin(pool.start())
            while pool.is_busy():
                for number, result in pool.hear():
                    tally.ended[number] = result
                    watcher.ended(number, result)
                    if fail_fast and result.code != EXIT_OK:
                        return tally
        finally:
            with uninterrupted():
                pool.end()
    return tally


class _Pool:
    """The workers, and the jobs that were not started yet."""

    def __init__(self, jobs: Sequence[Job], watcher: Watcher, orders: Orders) -> None:
        self._jobs = jobs
        self._watcher = watcher
        self._orders = orders
        self._pending = deque(range(len(jobs)))
        self._workers: dict[Connection, _Worker] = {}

    def start(self) -> _Worker:
        with uninterrupted():
            worker = _Worker(self._orders)
            self._workers[worker.connection] = worker
        return worker

    def begin(self, worker: _Worker) -> None:
        """Gives the worker the next job, if there is one."""
        worker.number = None
        if self._pending:
            number = self._pending.popleft()
            self._watcher.started(number)
            worker.give(number, self._jobs[number])

    def is_busy(self) -> bool:
        return any(worker.number is not None for worker in self._workers.values())

    def hear(self) -> Iterator[tuple[int, Ended]]:
        """Waits for messages of workers; yields the jobs that ended, and gives out new ones."""
        busy = [one.connection for one in self._workers.values() if one.number is not None]
        for connection in wait(busy):
            assert isinstance(connection, Connection)
            worker = self._workers[connection]
            number = worker.number
            assert number is not None
            try:
                message = connection.recv()
            except (EOFError, ConnectionResetError):
                # A crash of a worker, by MLIR or by the system, affects only its own module.
                message = Ended(EXIT_INTERNAL, failure=self._death(worker, number))
                del self._workers[connection]
                connection.close()
                worker = self.start() if self._pending else worker
            if isinstance(message, Stage):
                self._watcher.stage(number, message.name)
                continue
            self.begin(worker)
            yield number, message

    def _death(self, worker: _Worker, number: int) -> str:
        code = worker.process.wait()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        bug = InternalError(
            f"The process that built it ended: {how}",
            hint="Build it alone, with -v: the last command or stage is where it happens.",
        )
        return bug.text(self._jobs[number].title)

    def end(self) -> None:
        """Ends the workers; those that are building, with all processes that they started."""
        for worker in self._workers.values():
            worker.tell_to_end()
        end = time.monotonic() + _PATIENCE
        for worker in self._workers.values():
            worker.wait(end)
