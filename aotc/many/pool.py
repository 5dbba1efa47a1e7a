"""`run_jobs`: jobs on workers, several at a time; what they say, told in the order of the jobs."""

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

# How long a worker that was told to end may take, in seconds: MLIR's passes hear nothing.
_PATIENCE = 5.0
_START = (
    "import sys; sys.path[:] = sys.argv[4:]; from aotc.many.worker import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))"
)


class Watcher(Protocol):
    """Told what the jobs, by their numbers, do."""

    def started(self, number: int) -> None: ...

    def stage(self, number: int, name: str) -> None: ...

    def ended(self, number: int, result: Ended) -> None: ...


class _Worker:
    """A process that builds, and the connection to it."""

    def __init__(self, orders: Orders) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: a file of the current folder is no module.
            record = record_handle()
            handles = [theirs.fileno(), *([] if record is None else [record])]
            numbers = [theirs.fileno(), os.getpid(), -1 if record is None else record]
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, *map(str, numbers), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=handles,
                # Ctrl-C on the terminal is for its parent alone.
                process_group=0,
            )
        self.connection = Connection(ours.detach())
        self.number: int | None = None
        self._send(orders)

    def give(self, number: int, job: Job) -> None:
        self.number = number
        self._send(job)

    def _send(self, message: Orders | Job) -> None:
        # Where it has ended, its connection will say so.
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
    """The processes that its threads have started: tools, each with a group of its own."""
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
    """Builds every job by `build`, `workers` at a time; how each ended.

    A failure stops none of the others, unless `fail_fast`: then those that run are ended, and no
    more begun. When the caller is interrupted, all processes end, and their files go.
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
    """The workers, and the jobs that none of them has begun."""

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
        """Waits for words of the workers; the jobs that ended. Their workers have new ones."""
        busy = [one.connection for one in self._workers.values() if one.number is not None]
        for connection in wait(busy):
            assert isinstance(connection, Connection)
            worker = self._workers[connection]
            number = worker.number
            assert number is not None
            try:
                message = connection.recv()
            except (EOFError, ConnectionResetError):
                # What MLIR or a tool of the system killed takes no other module with it.
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
        """Ends the workers: those that build, with what they have started."""
        for worker in self._workers.values():
            worker.tell_to_end()
        end = time.monotonic() + _PATIENCE
        for worker in self._workers.values():
            worker.wait(end)
