"""A worker process, which is asked line by line, and answers in JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.models.engines import Work

_ROOT = Path(__file__).resolve().parents[2]


class Process:
    """`python -m bench.models.worker`. What it and its libraries print goes to a file beside the
    artifacts."""

    def __init__(self, task: str, work: Work, *more: str | Path, **environment: str) -> None:
        words = (task, work.model, work.batch, work.threads, work.folder, *more)
        threads = str(work.threads)
        variables = {"OMP_NUM_THREADS": threads, "AOTC_CPU_THREADS": threads, "AOTC_DEVICE": "cpu"}
        variables = {} if task in ("reference", "make") else variables
        log = work.folder / "-".join([task, *(Path(word).name for word in more[:1])])
        with log.with_name(f"{log.name}.log").open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.models.worker", *map(str, words)],
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": str(_ROOT), **variables, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )

    def ask(self, line: str | None = None) -> dict[str, Any]:
        """The next answer; a "failure" where the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if line is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if answer:
            found: dict[str, Any] = json.loads(answer)
            return found
        return {"failure": f"its process ended with exit code {self._process.wait()}"}

    def end(self) -> int:
        """Its exit code, after it has nothing more to answer."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        return self._process.wait()
