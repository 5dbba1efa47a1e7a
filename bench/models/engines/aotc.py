"""aotc: a shared library for one chip and the CPU device, called as the module is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bench.models.engines.engine import Call, Work, leaves

NAME = "model"


class Aotc:
    """`runtime` is that of the library: "static", or "shared" for a profile."""

    suffix = ""
    is_for_threads = False

    def __init__(self, runtime: str = "static") -> None:
        self._runtime = runtime

    def missing(self) -> str | None:
        return None

    def make(self, work: Work, artifact: Path) -> None:
        """Exports and builds the model, without a cache of builds."""
        import torch

        import aotc.torch
        from bench.models.catalogue import make

        module, inputs = make(work.model, work.batch)
        program = torch.export.export(module, (), inputs)
        options: dict[str, Any] = {"chips": ["sm_80"], "cache": False, "runtime": self._runtime}
        emit, out = ("shared", "manifest"), f"{artifact}/"
        aotc.torch.build(program, (), name=NAME, emit=emit, out=out, **options)

    def open(self, work: Work, artifact: Path) -> Call:
        import aotc.torch

        # Before the library is opened, which reads them.
        os.environ |= {"AOTC_DEVICE": "cpu", "AOTC_CPU_THREADS": str(work.threads)}
        module = aotc.torch.load(artifact / "lib" / f"lib{NAME}.so")
        inputs = work.tensors()
        return lambda: leaves(module(**inputs))
