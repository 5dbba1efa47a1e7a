"""A process that says of inputs whether MLIR, or ONNX's checker, takes them.

Most mutations of what is valid are refused by these, and what is behind them would see few."""

from __future__ import annotations

import contextlib
import itertools
import select
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from helpers.command import process_environment

# What an input is.
MODULE, MODEL = b"m", b"o"
_SECONDS = 5.0
_TRIES = 30
# A context keeps the types and attributes of all that it reads, and takes longer to make than that.
_PARSES = 100


class Screen:
    """`takes` asks the process; it is started again where an input ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def takes(self, data: bytes, kind: bytes = MODULE) -> bool:
        """Whether `data` is a module, or a model; also where that cannot be told, as its reader
        died or takes too long: such an input is worth a build."""
        if self._process is None:
            tests = Path(__file__).resolve().parent.parent
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.screening"],
                cwd=tests,
                env=process_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        answer = b""
        # It may have died of the input before, after its answer.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(kind + struct.pack("<I", len(data)) + data)
            stdin.flush()
            ready, _, _ = select.select([stdout], [], [], _SECONDS)
            answer = stdout.read(1) if ready else b""
        if not answer:
            self._end()
        return answer != b"0"

    def valid(self, value: bytes, mutate: Callable[[bytes], bytes], kind: bytes = MODULE) -> bytes:
        """`value` mutated; the first such that is taken, if one of the first tries is."""
        changed = value
        for _ in range(_TRIES):
            changed = mutate(value)
            if changed != value and self.takes(changed, kind):
                break
        return changed

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _answer() -> None:
    """Reads inputs from stdin, each behind its kind and its length, and writes a 1 or a 0 for
    each."""
    from aotc import mlir
    from aotc.input.source import parse_source

    def check_model(data: bytes) -> None:
        import onnx

        onnx.checker.check_model(data)

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    context = mlir.make_context()
    for count in itertools.count(1):
        kind = stdin.read(1)
        if not kind:
            return
        data = stdin.read(struct.unpack("<I", stdin.read(4))[0])
        if count % _PARSES == 0:
            context = mlir.make_context()
        try:
            if kind == MODULE:
                parse_source("input", data, context)
            else:
                check_model(data)
            stdout.write(b"1")
        except Exception:
            stdout.write(b"0")
        stdout.flush()


if __name__ == "__main__":
    _answer()
