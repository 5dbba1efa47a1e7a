"""Depthwise convolutions of the CPU device's test → an executable and checks of the GPU bundle."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from matmul.test_depthwise import DTYPES, LAYERS, Layer

from aotc.kernels.matmul.least_work import LEAST_WORK

PROGRAM = "depthwise"
_FOLDER = "depthwise"
_KINDS = (
    *("any_finished", "strided_finished", "odd_input", "not_padded_strided", "asymmetric"),
    *("mixed", "third", "tiny_strided", "row_filter", "double", "half"),
    *("any_finished_open", "mixed_open", "half_open", "strided_last_open", "mixed_last_open"),
)
_TOLERANCE = {"f64": 1e-13, "f32": 3e-6, "f16": 3e-3}


def layers() -> Iterator[Layer]:
    """With as many images as a kernel is worth."""
    for layer in LAYERS:
        if layer.name in _KINDS or layer.name.removesuffix("_last") in _KINDS:
            work = layer.channels * math.prod(layer.outputs) * math.prod(layer.filter_)
            yield replace(layer, images=max(layer.images, -(-LEAST_WORK // work)))


def write_source(folder: Path) -> Path:
    """Writes the module into `folder`."""
    file = folder / f"{PROGRAM}.mlir"
    file.write_text("\n".join(layer.module for layer in layers()))
    return file


def write_checks(out: Path) -> list[str]:
    """Writes inputs and expected results into the bundle `out`; its lines of cases.sh."""
    folder = out / _FOLDER
    folder.mkdir()
    lines = []
    for layer in layers():
        values = dict(zip(("x", "w", "bias", "residual"), layer.operands(), strict=True))
        words = []
        for name, value in values.items():
            # The sizes of the result are those of the residual.
            if name in ("x", "w") or layer.epilogue or (name == "residual" and layer.is_open):
                np.save(folder / f"{layer.name}.{name}.npy", value)
                words += ["--arg", f"{name}={_FOLDER}/{layer.name}.{name}.npy"]
        if not layer.epilogue:
            words += ["--arg", "bias=zeros"]
            words += [] if layer.is_open else ["--arg", "residual=zeros"]
        expected = layer.expected(*values.values()).astype(DTYPES[layer.element])
        np.save(folder / f"{layer.name}.expected.npy", expected)
        words += ["--expect", f"result0={_FOLDER}/{layer.name}.expected.npy"]
        allowed = _TOLERANCE[layer.element]
        words += ["--rtol", str(allowed), "--atol", str(allowed * 10)]
        command = [f"bin/{PROGRAM}", layer.name, *words, "--device", "cuda"]
        lines.append(f"check {shlex.join(['cuda', f'depthwise-{layer.name}', *command])}")
    return lines
