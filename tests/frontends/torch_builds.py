"""Programs of PyTorch built as shared libraries, and their results against PyTorch in f64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from frontends.models import expected
from frontends.support import call

import aotc
import aotc.torch

CHIP = "sm_90"
# Relative to the largest result. Eager PyTorch has up to 1e-6 and 4e-3.
LIMITS = {torch.float32: 5e-6, torch.float16: 1e-2}


def check(artifact: aotc.Artifact, name: str, module: Any, inputs: Any, dtype: Any) -> None:
    """Asserts that the result of the entry `name` is the module's, by LIMITS."""
    reference = expected(module, inputs)
    result = torch.empty(reference.shape, dtype=dtype).numpy()
    (got,) = call(artifact, name, [tensor.numpy() for tensor in inputs], [result])
    assert got.dtype == result.dtype
    error = np.abs(got.astype(np.float64) - reference.numpy()).max() / reference.abs().max().item()
    assert error <= LIMITS[dtype]


def build(module: Any, inputs: Any, name: str, out: Path, **options: Any) -> aotc.Artifact:
    files = {"emit": "shared", "out": f"{out}/", "chips": CHIP}
    return aotc.torch.build(module, inputs, name=name, **files, **options)


class Layers(torch.nn.Module):
    def __init__(self, function: Any, *layers: Any) -> None:
        super().__init__()
        self.function, self.layers = function, torch.nn.ModuleList(layers)

    def forward(self, *x: Any) -> Any:
        return self.function(*self.layers, *x)
