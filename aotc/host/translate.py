"""Modules in the LLVM dialect → LLVM IR text, by the LLVM of the bindings.

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

# Of a message between the processes: how many bytes follow; of an answer, whether it is an error.
_LENGTH = struct.Struct("<Q")
_ANSWER = struct.Struct("<?Q")


def translate(module: Any) -> str:
    """The LLVM IR text of a builtin.module in the LLVM dialect, as the bindings' LLVM prints it.

    Raises InternalError, with what the bindings say, where they cannot.
    """
    return Translation(module).text()


class Translation:
    """A translation on its way: the module may be changed as soon as this is made."""

    def __init__(self, module: Any) -> None:
        bytecode = bytecode_of(module.operation)
        # An interpreter inside of another program may not know its own file.
        if PROCESS.is_ours or not sys.executable:
            self._wait = _translate_in_child(bytecode, module.context)
        else:
            self._wait = functools.partial(_SERVER.translate, bytecode)

    def text(self) -> str:
        """Waits for it, in any thread; once. Raises InternalError, as `translate` does."""
        return self._wait()


def _translate_in_child(bytecode: bytes, context: Any) -> Callable[[], str]:
    """Starts a child, which uses `context`; what waits for its text."""
    text, words = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
    child = os.fork()
    if child == 0:
        _translate_and_exit(bytecode, context, text.fileno(), words.fileno())

    def wait() -> str:
        with text, words:
            _, status = os.waitpid(child, 0)
            text.seek(0)
            words.seek(0)
            if status == 0:
                return text.read().decode()
            said = words.read().decode(errors="replace").strip()
        raise InternalError(
            f"The MLIR bindings ({mlir.bindings().package}) cannot translate the module to LLVM IR"
            + (f":\n{said}" if said else ".")
        )

    return wait


def _translate_and_exit(bytecode: bytes, context: Any, text: int, words: int) -> None:
    """In the child: never returns, and runs nothing of the parent's on its way out."""
    try:
        faulthandler.disable()  # it would tell of a crash that is expected
        os.dup2(words, 2)
        with context:
            # A module as it is read: how it was made shows in the order of a phi's predecessors.
            module = ir.Module.parse(bytecode)
            context.emit_error_diagnostics = True
            content = llvm.translate_module_to_llvmir(module.operation).encode()
        with os.fdopen(text, "wb", closefd=False) as file:
            file.write(content)
    except BaseException as error:
        os.write(words, str(error).encode())
        os._exit(1)
    os._exit(0)


class _Server:
    """The process that is asked. It ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._parent = 0

    def translate(self, bytecode: bytes) -> str:
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(_LENGTH.pack(len(bytecode)))
                process.stdin.write(bytecode)
                process.stdin.flush()
                is_error, size = _ANSWER.unpack(_read(process.stdout, _ANSWER.size))
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
        if is_error:
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
    while header := questions.read(_LENGTH.size):
        bytecode = _read(questions, *_LENGTH.unpack(header))
        try:
            text, is_error = _translate_in_child(bytecode, make_context())(), False
        except InternalError as error:
            text, is_error = str(error), True
        content = text.encode()
        answers.write(_ANSWER.pack(is_error, len(content)))
        answers.write(content)
        answers.flush()


def _read(pipe: IO[bytes], size: int) -> bytes:
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return content
