"""What the engines have in common: the work they are given, and what each does with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]
# Runs the model once, and gives its results in order.
Call = Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class Work:
    """A model of the catalogue with a batch, for so many threads. `folder` has what is made for the
    model and the batch: the inputs, the expected results, and the artifacts of the engines."""

    model: str
    batch: int
    threads: int
    folder: Path

    def inputs(self) -> dict[str, Array]:
        """By the names that the module's `forward` has for them, in its order; of bf16, which NumPy
        has not, as f32."""
        with np.load(self.folder / "inputs.npz") as file:
            return dict(file)

    def tensors(self) -> dict[str, Any]:
        """The same, of PyTorch and its types."""
        import torch

        types = json.loads((self.folder / "types.json").read_text())
        return {
            name: torch.from_numpy(array).to(getattr(torch, types[name]))
            for name, array in self.inputs().items()
        }

    def save_inputs(self, tensors: Mapping[str, Any]) -> None:
        types = {name: str(one.dtype).removeprefix("torch.") for name, one in tensors.items()}
        (self.folder / "types.json").write_text(json.dumps(types))
        arrays: dict[str, Any] = {name: array_of(one) for name, one in tensors.items()}
        np.savez(self.folder / "inputs.npz", **arrays)


class Engine(Protocol):
    """A way to run a model. `suffix` is that of its artifact, and `is_for_threads` says that one is
    for one number of threads."""

    suffix: str
    is_for_threads: bool

    def missing(self) -> str | None:
        """What this machine lacks, in words; None where the engine can run."""

    def make(self, work: Work, artifact: Path) -> None:
        """Makes the artifact, a file or a folder. It has no time limit and may use all cores."""

    def open(self, work: Work, artifact: Path) -> Call:
        """Opens the artifact in a process that runs nothing else."""


def array_of(value: Any) -> Array:
    """An array, or a tensor of PyTorch as one."""
    is_bf16 = str(value.dtype) == "torch.bfloat16"
    return np.asarray(value.float() if is_bf16 else value)


def leaves(value: Any) -> list[Any]:
    """The tensors of what a module of PyTorch returns."""
    import torch

    value = dict(value) if isinstance(value, dict) else value
    found = torch.utils._pytree.tree_leaves(value)
    return [leaf.detach() for leaf in found if isinstance(leaf, torch.Tensor)]
