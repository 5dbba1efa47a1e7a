"""NumPy, whose wheels bring OpenBLAS: products of matrices alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.models.engines.engine import Call, Work


class OpenBlas:
    suffix = ""
    is_for_threads = False

    def missing(self) -> str | None:
        return None

    def make(self, work: Work, artifact: Path) -> None:
        if not work.model.startswith("product"):
            raise ValueError("BLAS has products of matrices alone")
        artifact.touch()

    def open(self, work: Work, artifact: Path) -> Call:
        """Its number of threads is OMP_NUM_THREADS."""
        a, b = work.inputs().values()

        def call() -> list[Any]:
            return [a @ b]

        return call
