"""A worker: a process that builds one module after another, as its parent says.

It is a fresh Python, not a fork of the parent, so that no thread of anybody is cut in two; the
MLIR bindings are loaded once in it. It has one connection: a `Job` comes in, `Stage` messages and
an `Ended` go out.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from aotc.errors import EXIT_INTERNAL, EXIT_OK, AotcError, InternalError
from aotc.many.job import Ended, Job
from aotc.owner import PROCESS
from aotc.processes.record import Record, use_record
from aotc.processes.signals import end_with_parent


class BuildJob(Protocol):
    """A function of a module that builds a job and puts its outputs down, and says where they are:
    a worker imports it.

    `watch` is an observer, `work` where intermediates go, `name` stands before warnings.
    """

    def __call__(
        self, job: Job, options: dict[str, Any], *, watch: Any, work: Path, name: str
    ) -> Sequence[Path]: ...


class Orders(Struct, frozen=True):
    """What holds for every job of a worker.

    `build` builds it, `options` are the command's; `folder` is where intermediates go, which the
    parent removes.
    """

    build: BuildJob
    options: dict[str, Any]
    folder: Path


class Stage(Struct, frozen=True):
    """What a worker does now."""

    name: str


class _Teller:
    """Tells the parent which stage runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def stage_started(self, name: str) -> None:
        self._connection.send(Stage(name))

    def stage_finished(
        self, name: str, artifacts: Sequence[Any], seconds: tuple[float, float]
    ) -> None:
        pass


def main(handle: int, parent: int, record: int) -> None:
    """Serves the connection with that file handle until the other end closes it. `record` is the
    file descriptor of the supervisor's record, -1 without one."""
    if record >= 0:
        use_record(Record(record))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is the parent's, who tells us
    signal.signal(signal.SIGTERM, _interrupt)
    end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # it ended before we asked
        return
    PROCESS.is_ours = True
    connection = Connection(handle)
    try:
        orders = connection.recv()
        while True:
            connection.send(_build(connection.recv(), orders, connection))
            # A module's memory is the context's, which cycles of Python's objects may keep.
            gc.collect()
    except (EOFError, KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        # At once, as `aotc.cli` does: there is nothing to flush.
        os._exit(EXIT_OK)


def _interrupt(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _build(job: Job, orders: Orders, connection: Connection) -> Ended:
    out, notes = io.StringIO(), io.StringIO()
    code, failure = EXIT_OK, ""
    made: Sequence[Path] = ()
    began = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
        try:
            made = orders.build(
                job, orders.options, watch=_Teller(connection), work=orders.folder, name=job.title
            )
        except AotcError as error:
            code, failure = error.exit_code, error.text(job.title)
        except Exception as error:
            bug = InternalError(f"{type(error).__name__}: {error}", hint="Please report this.")
            code = EXIT_INTERNAL
            failure = f"{traceback.format_exc()}{bug.text(job.title)}"
    return Ended(
        code, out.getvalue(), notes.getvalue(), failure, tuple(made), time.monotonic() - began
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
