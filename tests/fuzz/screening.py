"""A process that says of inputs whether MLIR takes them: most mutations of a valid module are
refused by the parser, and what is behind that would see few."""

from __future__ import annotations

import select
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from helpers.command import process_environment

_SECONDS = 5.0
_TRIES = 30


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

    def takes(self, data: bytes) -> bool:
        """Whether `data` is a module; also where that cannot be told, as the parser died or takes
        too long: such an input is worth a build."""
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
        stdin.write(struct.pack("<I", len(data)) + data)
        stdin.flush()
        ready, _, _ = select.select([stdout], [], [], _SECONDS)
        answer = stdout.read(1) if ready else b""
        if not answer:
            self._end()
        return answer != b"0"

    def valid(self, value: bytes, mutate: Callable[[bytes], bytes]) -> bytes:
        """`value` mutated; the first such that is a module, if one of the first tries is."""
        changed = value
        for _ in range(_TRIES):
            changed = mutate(value)
            if changed != value and self.takes(changed):
                break
        return changed

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _answer() -> None:
    """Reads inputs from stdin, each behind its length, and writes a 1 or a 0 for each."""
    from aotc import mlir
    from aotc.input.source import parse_source

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while size := stdin.read(4):
        data = stdin.read(struct.unpack("<I", size)[0])
        try:
            parse_source("input", data, mlir.make_context())
            stdout.write(b"1")
        except Exception:
            stdout.write(b"0")
        stdout.flush()


if __name__ == "__main__":
    _answer()
