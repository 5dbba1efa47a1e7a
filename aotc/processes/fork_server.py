"""`FORK_SERVER`: runs each task in a separate process, forked by a server process.

The server has one thread, the MLIR bindings and a context, and nothing else. If this process is
aotc's own and has one thread, the server is forked from it; otherwise it is a new Python process.
The inputs and answers of tasks are in-memory files, so that no process blocks on a reader. Any
number of tasks may be started at once; as many run concurrently as there are cores.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import json
import mmap
import os
import pickle
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct

from aotc.errors import AotcError, InternalError
from aotc.owner import PROCESS
from aotc.processes.memory import gibibytes, processor_seconds, resident_memory
from aotc.processes.signals import end_with_parent, signal_name, uninterrupted

# Maximum size of a message to the server.
_LARGEST = 1 << 16
# Interval for checking limits, in seconds: memory use can grow by gigabytes in a second.
_LOOK = 0.05
# A task that uses no processor time is blocked; it may wait for this multiple of its time limit.
_IDLE = 10
# Bytes that a task reads, copies or hashes per second of processor time, on a slow machine.
_BYTES_A_SECOND = 20_000_000
# Tasks whose files may be open at once: a process may be limited to a thousand open files.
_MOST_OPEN = 64
_ANSWER, _ERROR, _BUG = b"a", b"e", b"b"


class Limits(Struct, frozen=True):
    """The limits of a task: resident memory in bytes; and seconds of processor time until it ends
    or reports progress. In each step an input of `size` bytes adds a second per
    `_BYTES_A_SECOND`."""

    memory: int
    seconds: float
    size: int = 0


class TaskError(Exception):
    """A task ended without an answer.

    `reason` says how: "SIGSEGV", "more than 4.0 GiB of memory", "no progress in 10 s". `step` is
    the last step that it reported, `said` its stderr, and `left` the content that it stored with
    `Progress.leave`.
    """

    def __init__(self, reason: str, step: str, said: str, left: bytes = b"") -> None:
        super().__init__(reason)
        self.reason, self.step, self.said, self.left = reason, step, said, left


class Progress(Struct, frozen=True):
    """Reports the progress and the answer of a task through the descriptors of its files."""

    step: int
    answer: int

    def tell(self, step: str, seconds: float | None = None) -> None:
        """Reports the current step of the task, and restarts its time limit: `seconds` of processor
        time, by default that of its limits."""
        content = f"{'' if seconds is None else seconds}\n{step}".encode(errors="replace")
        os.ftruncate(self.step, 0)
        os.pwrite(self.step, content, 0)

    def leave(self, content: bytes) -> None:
        """Stores content for the case that the task ends without an answer."""
        os.ftruncate(self.answer, 0)
        _write(self.answer, content)


# A task maps its input to its answer. It is named "module:function".
Task = Callable[[memoryview], bytes]

# The progress of the task that this process runs, if any.
_progress: Progress | None = None


def task_progress() -> Progress | None:
    """The progress of the task that this process runs; None in other processes."""
    return _progress


class _Files(Struct, frozen=True):
    """The descriptors of a task's in-memory files."""

    given: int
    answer: int
    said: int
    step: int

    def close(self) -> None:
        for handle in (self.given, self.answer, self.said, self.step):
            os.close(handle)


class _Outcome(Struct, frozen=True):
    """How a task ended, and the final contents of its files."""

    how: str
    answer: bytes
    said: str
    step: str


class Pending:
    """A task that was started."""

    def __init__(self, files: _Files, ended: socket.socket) -> None:
        self._files = files
        self._ended = ended
        self._lock = threading.Lock()
        self._outcome: _Outcome | None = None

    def answer(self) -> bytes:
        """Waits for the answer, in any thread. Raises the task's exception if it is an AotcError,
        InternalError for any other exception, and TaskError if the task ended in another way."""
        outcome = self.wait()
        if outcome.how != "exit":
            reason = outcome.how or "the end of its parent"
            raise TaskError(reason, outcome.step, outcome.said, outcome.answer)
        sys.stderr.write(outcome.said)
        kind, answer = outcome.answer[:1], outcome.answer[1:]
        if kind == _ERROR:
            error = pickle.loads(answer)
            assert isinstance(error, AotcError)
            raise error
        if kind == _BUG:
            raise InternalError(answer.decode(), hint="Please report this.")
        return answer

    def wait(self) -> _Outcome:
        """Waits for the outcome, and closes the task's files."""
        with self._lock:
            if self._outcome is None:
                how = self._ended.recv(_LARGEST).decode()
                said, step = (
                    _content(file).decode(errors="replace").strip(" ")
                    for file in (self._files.said, self._files.step)
                )
                step = step.partition("\n")[2]
                self._outcome = _Outcome(how, _content(self._files.answer), said, step)
                self._ended.close()
                self._files.close()
        return self._outcome


def _content(handle: int) -> bytes:
    size = os.fstat(handle).st_size
    content = bytearray(size)
    done = 0
    while done < size:  # one read returns at most two gigabytes
        done += os.preadv(handle, [memoryview(content)[done:]], done)
    return bytes(content)


def has_one_thread() -> bool:
    """Whether this process certainly has only one thread; threads of libraries count, too."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208
    except OSError:
        return False


class ForkServer:
    """The fork server of this process, which starts with the first task and ends with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        # The process that started the server: a forked child must not use its parent's server.
        self._parent = 0
        self._process: subprocess.Popen[bytes] | None = None
        # Tasks with open files, oldest first.
        self._open: deque[Pending] = deque()

    def begin(self, context: Any) -> None:
        """Starts the server now, while this process has one thread, because starting a new Python
        takes longer. The server uses the MLIR context."""
        global _context
        with self._lock:
            _context = context
            self._begin()

    def start(self, task: str, *given: bytes, limits: Limits | None = None) -> Pending:
        """Starts the task "module:function" with the concatenation of `given` as input."""
        files = _Files(*(os.memfd_create(f"aotc-{name}") for name in ("in", "out", "err", "step")))
        for part in given:
            _write(files.given, part)
        ours, theirs = socket.socketpair()
        words: dict[str, Any] = {"task": task, "path": sys.path, "folder": str(Path.cwd())}
        if limits is not None:
            words["limits"] = [limits.memory, limits.seconds, limits.size]
        handles = [files.given, files.answer, files.said, files.step, theirs.fileno()]
        with theirs, self._lock:
            control = self._begin()
            # If the server has ended, the closed socket `ended` reports it.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(control, [json.dumps(words).encode()], handles)
            pending = Pending(files, ours)
            self._open.append(pending)
            earliest = self._open.popleft() if len(self._open) > _MOST_OPEN else None
        if earliest is not None:
            earliest.wait()
        return pending

    def call(self, task: str, *given: bytes, limits: Limits | None = None) -> bytes:
        """Runs the task and returns its answer; see `Pending.answer`."""
        return self.start(task, *given, limits=limits).answer()

    def stop(self) -> None:
        """Closes the socket, which ends the server and its tasks."""
        with self._lock:
            self._drop()

    def _begin(self) -> socket.socket:
        if self._control is not None and self._parent == os.getpid() and not self._has_ended():
            return self._control
        self._drop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, uninterrupted():
            if PROCESS.is_ours and has_one_thread():
                _fork_server(ours, theirs)
                self._process = None
            else:
                self._process = _start_server(theirs)
            self._control, self._parent = ours, os.getpid()
        return ours

    def _drop(self) -> None:
        if self._control is not None:
            self._control.close()
            if self._process is not None and self._parent == os.getpid():
                self._process.wait()
        self._control = self._process = None

    def _has_ended(self) -> bool:
        assert self._control is not None
        return bool(select.select([self._control], [], [], 0)[0])


FORK_SERVER = ForkServer()
atexit.register(FORK_SERVER.stop)


def _write(handle: int, content: bytes) -> None:
    """Appends the content to the file."""
    view, place = memoryview(content), os.fstat(handle).st_size
    while view:
        done = os.pwrite(handle, view, place)
        view, place = view[done:], place + done


def _fork_server(ours: socket.socket, theirs: socket.socket) -> None:
    if os.fork() == 0:
        try:
            ours.close()
            _serve(theirs)
        finally:
            os._exit(1)


def _start_server(theirs: socket.socket) -> subprocess.Popen[bytes]:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as server; "
        f"server.main({theirs.fileno()})"
    )
    return subprocess.Popen(
        # -P: do not import modules from the current folder.
        [_python(), "-P", "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        process_group=0,  # so that the terminal's Ctrl-C reaches only the waiting program
    )


def _python() -> str:
    """Python's executable; an interpreter embedded in another program may not know its own."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return sys.executable or str(Path(sys.exec_prefix, "bin", version))


def main(handle: int) -> NoReturn:
    """Entry point of a new Python process: serves the socket with that file descriptor."""
    global _context
    PROCESS.is_ours = True
    from aotc.mlir import make_context

    _context = make_context()
    _serve(socket.socket(fileno=handle))


_context: Any = None


def server_context() -> Any:
    """For a task: the MLIR context that the server passed on, if any."""
    return _context


def _serve(control: socket.socket) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.disable()  # crashes of tasks are expected
    # Detach from the parent's output: a process that waits for its end must not wait for this one.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    server = _Server(control)
    while server.hear():
        pass
    server.kill_all()
    os._exit(0)


class _Running(Struct):
    """A running task: its process, which holds the other end of `alive`."""

    pid: int
    alive: int
    ended: socket.socket
    files: _Files
    limits: Limits | None
    step_time: int = 0
    seconds: float = 0.0
    clock: float = 0.0
    allowed: float = 0.0

    def excess(self) -> str | None:
        """The limit that the process has exceeded, if any."""
        if self.limits is None:
            return None
        if resident_memory(self.pid) > self.limits.memory:
            return f"more than {gibibytes(self.limits.memory)} of memory"
        used, now = processor_seconds(self.pid), time.monotonic()
        changed = os.fstat(self.files.step).st_mtime_ns
        if changed != self.step_time or not self.clock:
            self.step_time, self.seconds, self.clock = changed, used, now
            own = os.pread(self.files.step, 32, 0).partition(b"\n")[0]
            seconds = float(own) if own else self.limits.seconds
            self.allowed = seconds + self.limits.size / _BYTES_A_SECOND
        # A task with several threads uses processor time faster: bounded by the wall clock.
        spent = min(used - self.seconds, now - self.clock)
        if spent > self.allowed or now - self.clock > _IDLE * self.allowed:
            return f"no progress in {self.allowed:.0f} s"
        return None


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._running: list[_Running] = []
        self._waiting: deque[tuple[dict[str, Any], list[int]]] = deque()
        self._most = len(os.sched_getaffinity(0))

    def hear(self) -> bool:
        """Waits for the next event and handles what is due; False after the client has closed."""
        limited = any(one.limits is not None for one in self._running)
        # Limits the accepted tasks, because their files are open.
        control = [self._control.fileno()] if len(self._waiting) < _MOST_OPEN else []
        alive = [one.alive for one in self._running]
        ready = select.select([*control, *alive], [], [], _LOOK if limited else None)[0]
        for one in list(self._running):
            if one.alive in ready:
                self._end(one, None)
            elif (excess := one.excess()) is not None:
                os.kill(one.pid, signal.SIGKILL)
                self._end(one, excess)
        if self._control.fileno() in ready:
            message, handles, *_ = socket.recv_fds(self._control, _LARGEST, 5)
            if not message:
                return False
            self._waiting.append((json.loads(message), handles))
        while self._waiting and len(self._running) < self._most:
            self._begin(*self._waiting.popleft())
        return True

    def _begin(self, words: dict[str, Any], handles: list[int]) -> None:
        files = _Files(*handles[:4])
        ended = socket.socket(fileno=handles[4])
        alive, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            end_with_parent(signal.SIGKILL)
            # A process that waits for the server's end must not wait for this one.
            for one in (self._control, ended, *(other.ended for other in self._running)):
                one.close()
            _work(words, files)
        os.close(theirs)
        limits = Limits(*words["limits"]) if "limits" in words else None
        self._running.append(_Running(pid, alive, ended, files, limits))

    def _end(self, one: _Running, excess: str | None) -> None:
        _, status = os.waitpid(one.pid, 0)
        how = "exit"
        if excess is not None:
            how = excess
        elif os.WIFSIGNALED(status):
            how = signal_name(os.WTERMSIG(status))
        elif os.WEXITSTATUS(status):
            how = f"exit code {os.WEXITSTATUS(status)}"
        with contextlib.suppress(OSError), one.ended:  # the client may have ended
            one.ended.send(how.encode())
        os.close(one.alive)
        one.files.close()
        self._running.remove(one)

    def kill_all(self) -> None:
        for one in self._running:
            os.kill(one.pid, signal.SIGKILL)


def _work(words: dict[str, Any], files: _Files) -> NoReturn:
    """Runs a task, in the task's process."""
    code = 1
    try:
        os.dup2(files.said, 1)
        os.dup2(files.said, 2)
        sys.path[:] = words["path"]
        with contextlib.suppress(OSError):
            os.chdir(words["folder"])
        answer = _called(words["task"], files)
        os.ftruncate(files.answer, 0)
        _write(files.answer, answer)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def _called(name: str, files: _Files) -> bytes:
    global _progress
    _progress = Progress(files.step, files.answer)
    module, _, function = name.partition(":")
    try:
        task: Task = getattr(importlib.import_module(module), function)
        size = os.fstat(files.given).st_size
        given = mmap.mmap(files.given, size, prot=mmap.PROT_READ) if size else b""
        return _ANSWER + task(memoryview(given))
    except AotcError as error:
        return _ERROR + pickle.dumps(error)
    except Exception as error:
        return _BUG + f"{traceback.format_exc()}{type(error).__name__}: {error}".encode()
