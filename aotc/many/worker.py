"""A worker: a process that builds one module after another, on request of its parent.

It is a new Python process, not a fork of the parent, which has threads. It loads the MLIR bindings
once. Over its connection it receives `Job` messages, and sends `Stage` messages and an `Ended`.
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
    """A function of a module that builds a job, writes its outputs and returns their paths; a
    worker imports it.

    `watch` is an observer, `work` the folder for intermediates, `name` the prefix of warnings.
    """

    def __call__(
        self, job: Job, options: dict[str, Any], *, watch: Any, work: Path, name: str
    ) -> Sequence[Path]: ...


class Orders(Struct, frozen=True):
    """The parameters that are common to all jobs of a worker.

    `build` builds a job, `options` are the command's options; `folder` is for intermediates, and
    the parent removes it.
    """

    build: BuildJob
    options: dict[str, Any]
    folder: Path


class Stage(Struct, frozen=True):
    """The stage that a worker is running."""

    name: str


class _Teller:
    """An observer that sends the current stage to the parent."""

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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends the workers
    signal.signal(signal.SIGTERM, _interrupt)
    end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # the parent ended before prctl took effect
        return
    PROCESS.is_ours = True
    connection = Connection(handle)
    try:
        orders = connection.recv()
        while True:
            connection.send(_build(connection.recv(), orders, connection))
            # A context owns its module's memory, and cyclic garbage may keep the context alive.
            gc.collect()
    except (EOFError, KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        # Immediately, as in `aotc.cli`: there is nothing to flush.
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
