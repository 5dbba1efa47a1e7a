"""Modules in the LLVM dialect → LLVM IR text, by the LLVM of the bindings, as clang reads it.

Where the translation fails, the bindings do not raise: they crash the process. So another process
does it: a child of this one where aotc is all that runs in it, and else, as a program's threads may
hold locks that a child would wait for, one that is started once and asked for each module.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import IO, Any

from aotc import mlir
from aotc.errors import InternalError
from aotc.input.source import bytecode_of
from aotc.mlir import ir, llvm, make_context
from aotc.process import PROCESS
from aotc.toolchain.version import Version

# A question: how many bytes of bytecode follow, and the version of the LLVM that reads the text.
# An answer: what it is, and of how many bytes.
_QUESTION = struct.Struct("<QIII")
_ANSWER = struct.Struct("<BQ")
_TEXT, _REFUSED, _FAILED = range(3)
# What a child's answers take of the folder for temporary files, when no more are waited for.
_LARGEST_FILE = 1 << 26


def translate(module: Any, reader: Version) -> str:
    """The LLVM IR text of a builtin.module in the LLVM dialect, for an LLVM of that version.

    Raises InternalError, with what the bindings say, where they cannot.
    """
    return Translation(module, reader).text()


class Translation:
    """A translation on its way: the module may be changed as soon as this is made."""

    def __init__(self, module: Any, reader: Version) -> None:
        bytecode = bytecode_of(module.operation)
        question = _QUESTION.pack(len(bytecode), reader.major, reader.minor, reader.patch)
        # An interpreter inside of another program may not know its own file.
        if PROCESS.is_ours or not sys.executable:
            self._wait = _child_of(lambda: module.context).ask(question, bytecode)
        else:
            self._wait = functools.partial(_SERVER.translate, question, bytecode)

    def text(self) -> str:
        """Waits for it, in any thread; once. Raises InternalError, as `translate` does."""
        return self._wait()


class _Child:
    """A child of this process that translates one module after the other, in `context`.

    Modules go to it through a pipe. What it answers is in a file, and only how much that is comes
    through another pipe: it never waits for a reader, so that any number may be asked at once.
    It ends with this process, or when the bindings crash it.
    """

    def __init__(self, context: Any) -> None:
        self.is_alive = True
        self.parent = os.getpid()
        self._lock = threading.Lock()
        self._asked = 0
        self._texts: list[str | InternalError] = []
        # Not closed when this goes: an answer may still be waited for.
        self._content, self._words = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self._read = 0
        questions, questions_end = os.pipe()
        answers, answers_end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(questions_end)
            os.close(answers)
            _answer_and_exit(questions, answers_end, self._content, self._words, context)
        os.close(questions)
        os.close(answers_end)
        self._questions = os.fdopen(questions_end, "wb")
        self._answers = os.fdopen(answers, "rb")

    def ask(self, question: bytes, bytecode: bytes) -> Callable[[], str]:
        """What waits for the text."""
        # Of one that has ended, the answer says so.
        try:
            self._questions.write(question)
            self._questions.write(bytecode)
            self._questions.flush()
        except BrokenPipeError:
            pass
        except BaseException:  # interrupted: a half question
            self.is_alive = False
            raise
        self._asked += 1
        return functools.partial(self._answer, self._asked - 1)

    def _answer(self, number: int) -> str:
        with self._lock:
            try:
                while len(self._texts) <= number:
                    self._texts.append(self._next())
            except BaseException:  # interrupted: what follows in the pipes is nobody's answer
                self.is_alive = False
                raise
        text, self._texts[number] = self._texts[number], ""  # a text is asked for once
        if isinstance(text, InternalError):
            raise text
        return text

    def _next(self) -> str | InternalError:
        if not self.is_alive:
            return _failure("")
        header = self._answers.read(_ANSWER.size)
        if len(header) < _ANSWER.size:
            self.is_alive = False
            self._words.seek(0)
            return _failure(self._words.read().decode(errors="replace").strip())
        kind, size = _ANSWER.unpack(header)
        # Where this reads and where the child writes is one place of the file, but for pread.
        parts = []
        while size:
            parts.append(os.pread(self._content.fileno(), size, self._read))
            self._read += len(parts[-1])
            size -= len(parts[-1])
        text = b"".join(parts).decode()
        return text if kind == _TEXT else _failure(text, is_whole=kind == _FAILED)

    def can_go_on(self) -> bool:
        """Whether it can be asked: not when it has ended, is another process's, or when its file is
        large and holds nothing that is still to be read."""
        is_used_up = self._read > _LARGEST_FILE and len(self._texts) == self._asked
        return self.is_alive and self.parent == os.getpid() and not is_used_up

    def stop(self) -> None:
        """At its input's end it ends."""
        if self.parent == os.getpid():
            for file in (self._questions, self._answers, self._content, self._words):
                with contextlib.suppress(BrokenPipeError):  # what was not sent goes nowhere
                    file.close()
            os.waitpid(self._pid, 0)


def _failure(said: str, *, is_whole: bool = False) -> InternalError:
    return InternalError(
        said
        if is_whole
        else f"The MLIR bindings ({mlir.bindings().package}) cannot translate the module to LLVM IR"
        + (f":\n{said}" if said else ".")
    )


_children: list[_Child] = []


def _child_of(context: Callable[[], Any]) -> _Child:
    """The one that there is, or a new one, which will use the context: for a first question, or
    when the last one cannot go on."""
    if _children and not _children[0].can_go_on():
        _children.pop().stop()
    if not _children:
        _children.append(_Child(context()))
    return _children[0]


def _answer_and_exit(
    questions: int, answers: int, content: IO[bytes], words: IO[bytes], context: Any
) -> None:
    """In the child: never returns, and runs nothing of the parent's on its way out."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when the parent does
        faulthandler.disable()  # it would tell of a crash that is expected
        os.dup2(words.fileno(), 2)
        context.emit_error_diagnostics = True
        with os.fdopen(questions, "rb") as pipe, context:
            while header := pipe.read(_QUESTION.size):
                size, *reader = _QUESTION.unpack(header)
                kind, text = _translated(_read(pipe, size), Version(*reader))
                data = text.encode()
                content.write(data)
                content.flush()
                os.write(answers, _ANSWER.pack(kind, len(data)))
    except BaseException:
        os._exit(1)
    os._exit(0)


def _translated(bytecode: bytes, reader: Version) -> tuple[int, str]:
    from aotc.host.llvm_text import downlevel  # in the child alone, while the parent goes on

    try:
        # A module as it is read: how it was made shows in the order of a phi's predecessors.
        text = llvm.translate_module_to_llvmir(ir.Module.parse(bytecode).operation)
    except Exception as error:
        return _REFUSED, str(error)
    try:
        writer = Version.parse(mlir.bindings().llvm_version)
        return _TEXT, downlevel(text, writer=writer, reader=reader)
    except InternalError as error:
        return _FAILED, str(error)


class _Server:
    """The process that is asked. It ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._parent = 0

    def translate(self, question: bytes, bytecode: bytes) -> str:
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(question)
                process.stdin.write(bytecode)
                process.stdin.flush()
                kind, size = _ANSWER.unpack(_read(process.stdout, _ANSWER.size))
                text = _read(process.stdout, size).decode()
            except (OSError, EOFError):
                self.stop()
                raise InternalError(
                    "The process that translates to LLVM IR ended before its answer."
                ) from None
            except BaseException:
                # Interrupted: what it still says is nobody's answer.
                process.kill()
                self.stop()
                raise
        if kind != _TEXT:
            raise InternalError(text)
        return text

    def _running(self) -> subprocess.Popen[bytes]:
        # A child of the program that has built something must not share its parent's.
        if self._process is None or self._parent != os.getpid():
            code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as t; t.serve()"
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,  # the terminal's Ctrl-C is for the program that waits
            )
            self._parent = os.getpid()
        return self._process

    def stop(self) -> None:
        """At its input's end it ends."""
        if self._process is not None and self._parent == os.getpid():
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                # What was not sent goes nowhere.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
            self._process.wait()
        self._process = None


_SERVER = _Server()
atexit.register(_SERVER.stop)


def serve() -> None:
    """In the process that is asked: answers until there is no more to be read."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while header := questions.read(_QUESTION.size):
        size, *_ = _QUESTION.unpack(header)
        bytecode = _read(questions, size)
        try:
            text, kind = _child_of(make_context).ask(header, bytecode)(), _TEXT
        except InternalError as error:
            text, kind = str(error), _FAILED
        content = text.encode()
        answers.write(_ANSWER.pack(kind, len(content)))
        answers.write(content)
        answers.flush()


def _read(pipe: IO[bytes], size: int) -> bytes:
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return content
