"""`Runner`: runs commands, and converts a failure to a `ToolError` with all details."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol, TypeVar

from msgspec import Struct

from aotc.errors import ToolError
from aotc.processes.signals import uninterrupted
from aotc.trace import Span

T = TypeVar("T")

KEEP_HINT = "keep the intermediates with --save-temps DIR"


class Completed(Struct, frozen=True):
    """A command that succeeded, with its output."""

    command: tuple[str, ...]
    stdout: str = ""
    stderr: str = ""


class FileCommand(Struct, frozen=True):
    """A command that makes files from files in `folder`.

    `env` is added to the tools' environment. `reads` are files, or folders of headers. Relative
    paths, and all of `writes`, are relative to `folder`. `names_matter`: whether the outputs depend
    on the files' names.
    """

    words: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]
    reads: tuple[str | Path, ...]
    writes: tuple[str, ...]
    names_matter: bool = True


class CommandCache(Protocol):
    """Runs commands, or returns their earlier outputs: see `aotc.cache.actions`."""

    def run(
        self, command: FileCommand, execute: Callable[[], Completed]
    ) -> tuple[Completed, bool]: ...

    def tell_made_again(self, step: str, why: str) -> None: ...


class StoppedError(Exception):
    """The runner was stopped before or while this command ran. Users never see it."""


def cores() -> int:
    """The number of cores this process may use; a container or `taskset` may reduce it."""
    return len(os.sched_getaffinity(0))


def tool_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The complete environment of every tool, derived from the user's.

    It is small on purpose: with CPATH, LIBRARY_PATH, CFLAGS or a locale in it, the same input
    would not give the same bytes.
    """
    tools = {
        "LC_ALL": "C",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": "0",
        "PATH": os.defpath,
    }
    if "TMPDIR" in environment:
        tools["TMPDIR"] = environment["TMPDIR"]
    return tools


@contextlib.contextmanager
def zig_environment(command: Sequence[str], folder: Path | None) -> Iterator[dict[str, str]]:
    """Additional variables for `zig cc`: a folder for its cache, which would otherwise be at HOME.

    The folder is empty, below `folder`, because zig does not verify the hashes of cached files.
    """
    if tuple(command[1:2]) != ("cc",):
        yield {}
        return
    # (Children of a killed zig may still write to it.)
    with tempfile.TemporaryDirectory(
        prefix=".zig-", dir=folder, ignore_cleanup_errors=True
    ) as place:
        yield {"ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place}


def tool_name(command: Sequence[str]) -> str:
    """The name of a command's tool in messages: `ptxas`, or `zig cc`, one of several in zig."""
    name = Path(command[0]).name
    if name == "zig" and len(command) > 1:
        return f"zig {command[1]}"
    return name


# Signals that are caused by the process itself.
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


class Runner:
    """Runs tools. Thread-safe.

    `environment` is the user's (tools get `tool_environment` of it). `observer` is called with
    each command line, quoted for a shell, before it runs; calls do not overlap. `jobs` is the
    number of tools that run at once, by default the number of cores available to this process.
    `cache` has the outputs of earlier commands.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        observer: Callable[[str], None] | None = None,
        jobs: int | None = None,
        cache: CommandCache | None = None,
    ) -> None:
        self._environment = environment
        self._jobs = jobs or cores()
        self._cache = cache
        self._observer = observer
        self._lock = threading.Lock()
        self._live: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        # For each set of concurrent tasks: the number of completed tasks, and of all tasks.
        self._batches: list[list[int]] = []
        self._tool_environment: dict[str, str] | None = None
        # The commands that ran: their product, times and tool.
        self.spans: list[Span] = []

    def note(self, text: str) -> None:
        """Passes a text to the observer between commands."""
        if self._observer is not None:
            self._observer(f"# {text}")

    def tell_made_again(self, step: str, why: str) -> None:
        """Reports that a cached entry is made again, and why."""
        with self._lock:
            self.note(f"made again: {step} ({why})")
        if self._cache is not None:
            self._cache.tell_made_again(step, why)

    def run(
        self,
        command: Sequence[str],
        *,
        making: str,
        input: bytes | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        reads: Sequence[str | Path] = (),
        writes: Sequence[str] = (),
        names_matter: bool = True,
        prepare: Callable[[], Mapping[str, str]] | None = None,
    ) -> Completed:
        """Runs `command` to its end, after `prepare`. `making` names its product in messages.

        `env` and the result of `prepare`, which must not affect the outputs, are added to the
        tools' environment. `reads` and `writes` are all the files that affect the outputs, and all
        outputs, relative to `cwd`: with them, the outputs of an earlier run can be reused; if not
        `names_matter`, also the outputs for files with other names and the same contents. Raises
        ToolError if the tool cannot be started or fails. If this thread is interrupted, the tool
        and its children are killed.
        """

        def execute() -> Completed:
            prepared = {} if prepare is None else prepare()
            done = self._execute(command, making, input, cwd, {**prepared, **(env or {})})
            missing = [name for name in writes if not ((cwd or Path()) / name).is_file()]
            if missing:
                raise ToolError(
                    f"{tool_name(command)} ended as if it had made {making}, and there is no "
                    f"{', '.join(missing)}: is it the program that it should be?",
                    command=command,
                    stderr=done.stderr or done.stdout,
                    hint=KEEP_HINT,
                )
            return done

        if self._cache is None or cwd is None or not writes or input is not None:
            return execute()
        done, was_run = self._cache.run(
            FileCommand(tuple(command), cwd, env or {}, tuple(reads), tuple(writes), names_matter),
            execute,
        )
        if not was_run:
            with self._lock:
                self.note(f"from the cache: {making}")
        return done

    def _execute(
        self,
        command: Sequence[str],
        making: str,
        input: bytes | None,
        cwd: Path | None,
        env: Mapping[str, str],
    ) -> Completed:
        command = tuple(command)
        with self._lock:
            if self._stopped:
                raise StoppedError(making)
            if self._tool_environment is None:
                self._tool_environment = tool_environment(self._environment)
            if self._observer is not None:
                self._observer(shlex.join(command))
        with zig_environment(command, cwd) as own:
            process, stdout, stderr = self._complete(command, making, input, cwd, {**own, **env})
        if process.returncode != 0:
            if self._stopped:
                raise StoppedError(making)
            raise self._failure(command, making, process.returncode, stdout, stderr)
        return Completed(command, _text(stdout), _text(stderr))

    def _complete(
        self,
        command: tuple[str, ...],
        making: str,
        input: bytes | None,
        cwd: Path | None,
        env: Mapping[str, str],
    ) -> tuple[subprocess.Popen[bytes], bytes, bytes]:
        """Runs `command` to its end; returns the process, its stdout and stderr."""
        process = None
        began = time.perf_counter()
        try:
            with uninterrupted():
                process = self._start(command, making, input, cwd, env)
            if self._stopped:  # set after the caller checked it
                raise StoppedError(making)
            return process, *process.communicate(input)
        finally:
            if process is not None:
                # A process that has ended need not be killed.
                if process.returncode is None:
                    _kill(process)
                with self._lock:
                    self._live.discard(process)
                    self.spans.append(Span(making, began, time.perf_counter(), tool_name(command)))

    def _start(
        self,
        command: tuple[str, ...],
        making: str,
        input: bytes | None,
        cwd: Path | None,
        env: Mapping[str, str],
    ) -> subprocess.Popen[bytes]:
        """Starts `command`, and registers it to be killed by `stop`."""
        assert self._tool_environment is not None
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env={**self._tool_environment, **env},
                # A separate process group: zig starts children, and all must be killed together.
                process_group=0,
            )
        except OSError as error:
            raise ToolError(
                f"{tool_name(command)} cannot be started to make {making}: {error}",
                command=command,
            ) from None
        with self._lock:
            self._live.add(process)
        return process

    @staticmethod
    def _failure(
        command: Sequence[str], making: str, code: int, stdout: bytes, stderr: bytes
    ) -> ToolError:
        return ToolError(
            f"{tool_name(command)} could not make {making}: {_ending(code)}",
            command=command,
            # Some tools write errors to stdout.
            stderr=_text(stderr) or _text(stdout),
            hint=KEEP_HINT,
            is_crash=-code in _CRASHES,
        )

    def stop(self) -> None:
        """Kills all running tools, and rejects new ones. May be called from any thread."""
        with self._lock:
            self._stopped = True
            live = list(self._live)
        for process in live:
            _signal_group(process)

    def in_parallel(self, tasks: Sequence[Callable[[], T]], *, jobs: int | None = None) -> list[T]:
        """Calls all tasks, several at once; returns their results in order.

        If a task fails, or the caller is interrupted, all tools of this runner are killed. The
        failure that is raised is the first in the order of the tasks.
        """
        batch = [0, len(tasks)]

        def counted(task: Callable[[], T]) -> T:
            made = task()
            with self._lock:
                batch[0] += 1
            return made

        with self._lock:
            self._batches.append(batch)
        try:
            return self._in_parallel([partial(counted, task) for task in tasks], jobs)
        finally:
            with self._lock:
                self._batches = [one for one in self._batches if one is not batch]

    def counts(self) -> tuple[int, int] | None:
        """The numbers of completed and of all current concurrent tasks; None if there are not
        several."""
        with self._lock:
            done, all_ = (sum(batch[i] for batch in self._batches) for i in (0, 1))
        return (done, all_) if all_ > 1 else None

    def _in_parallel(self, tasks: Sequence[Callable[[], T]], jobs: int | None) -> list[T]:
        if len(tasks) < 2:
            return [task() for task in tasks]
        # Not concurrent.futures.wait: an interrupt in it can leave a future locked forever, and
        # its thread with it.
        # and its thread with it.
        ended: SimpleQueue[Future[T]] = SimpleQueue()
        futures: list[Future[T]] = []
        with ThreadPoolExecutor(max_workers=jobs or self._jobs) as pool:
            try:
                with uninterrupted():
                    for task in tasks:
                        futures.append(pool.submit(task))
                        futures[-1].add_done_callback(ended.put)
                if any(ended.get().exception() is not None for _ in tasks):
                    self.stop()
            except BaseException:
                self.stop()
                raise
            finally:
                pool.shutdown(cancel_futures=True)
                # The threads have ended: the handler of the failure may run more commands.
                self._stopped = False
        failures = [
            failure
            for future in futures
            if not future.cancelled() and (failure := future.exception()) is not None
        ]
        real = [failure for failure in failures if not isinstance(failure, StoppedError)]
        if failures:
            raise (real or failures)[0]
        return [future.result() for future in futures]


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")


def _signal_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


class RecordingRunner(Runner):
    """For tests: runs nothing, records each command and calls `respond` for its result."""

    def __init__(self, respond: Callable[[tuple[str, ...]], Completed] | None = None) -> None:
        super().__init__({})
        self.commands: list[tuple[str, ...]] = []
        self.made: list[str] = []
        self._respond = respond

    def run(
        self,
        command: Sequence[str],
        *,
        making: str,
        input: bytes | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        reads: Sequence[str | Path] = (),
        writes: Sequence[str] = (),
        names_matter: bool = True,
        prepare: Callable[[], Mapping[str, str]] | None = None,
    ) -> Completed:
        """Records `command`; `respond`, if given, may write files or raise ToolError."""
        command = tuple(command)
        with self._lock:
            self.commands.append(command)
            self.made.append(making)
        return Completed(command) if self._respond is None else self._respond(command)
