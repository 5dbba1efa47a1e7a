"""Eager PyTorch: the module itself."""

from __future__ import annotations

from pathlib import Path

from bench.models.engines.engine import Call, Work, leaves


class Eager:
    suffix = ""
    is_for_threads = False

    def missing(self) -> str | None:
        return None

    def make(self, work: Work, artifact: Path) -> None:
        artifact.touch()

    def open(self, work: Work, artifact: Path) -> Call:
        import torch

        from bench.models.catalogue import make

        torch.set_num_threads(work.threads)
        torch.set_grad_enabled(False)
        module, inputs = make(work.model, work.batch)
        return lambda: leaves(module(**inputs))
