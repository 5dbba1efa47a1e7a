"""Functions of tensors → what aotc makes of each: right, refused, wrong or failed.

Many are built as one library, whose entry is called on the CPU device. Where it cannot be built or
called, each half of them is built by itself.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from frontends.support import call
from msgspec import Struct

import aotc.torch
from aotc.errors import AotcError

# Some units of the last place, as sums have other orders; relative, and absolute.
_PRECISION = {
    torch.float64: 1e-11,
    torch.float32: 2e-5,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


class Verdict(Struct, frozen=True):
    """`kind` is "right", "refused", "export" (PyTorch's refusal), "wrong" or "failed"."""

    name: str
    kind: str
    message: str = ""


class Trial(Struct, frozen=True):
    """Functions that all have the same arguments, and some calls of them: tensors of one type and
    rank. The first call's shapes are exported. `sizes`: the dimensions that may have any size, as
    `torch.export.export` has them."""

    functions: Mapping[str, Callable[..., Any]]
    calls: Sequence[tuple[Any, ...]]
    sizes: Any = None

    def part(self, names: Sequence[str]) -> Trial:
        return Trial({name: self.functions[name] for name in names}, self.calls, self.sizes)


class _Module(torch.nn.Module):
    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *inputs: Any) -> Any:
        return tuple(one for function in self.functions for one in results_of(function, inputs))


def results_of(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    result = function(*inputs)
    return list(result) if isinstance(result, tuple | list) else [result]


def judge(trial: Trial) -> list[Verdict]:
    """A verdict for each function, in their order."""
    verdicts = _apart(_compared, trial)
    if isinstance(verdicts, list):
        return verdicts
    names = list(trial.functions)
    if len(names) == 1:
        return [verdicts]
    middle = len(names) // 2
    return [*judge(trial.part(names[:middle])), *judge(trial.part(names[middle:]))]


def _compared(trial: Trial) -> list[Verdict] | Verdict:
    """Verdicts for all functions, or one where they cannot be built or called together."""
    name, functions = next(iter(trial.functions)), list(trial.functions.values())
    try:
        program = torch.export.export(
            _Module(functions),
            trial.calls[0],
            dynamic_shapes=None if trial.sizes is None else (trial.sizes,),
        )
    except Exception as error:
        return Verdict(name, "export", f"{type(error).__name__}: {error}")
    messages: dict[str, list[str]] = {name: [] for name in trial.functions}
    with tempfile.TemporaryDirectory() as folder:
        try:
            artifact = aotc.torch.build(
                program,
                (),
                name="functions",
                emit="shared",
                out=f"{folder}/",
                chips="sm_80",
                optimization=1,
            )
            for inputs in trial.calls:
                eager = [results_of(function, inputs) for function in functions]
                expected = [one.contiguous() for results in eager for one in results]
                found = call(artifact, "functions", list(inputs), expected)
                tensors = iter(
                    [as_tensor(one, of.dtype) for one, of in zip(found, expected, strict=True)]
                )
                for each, results in zip(messages.values(), eager, strict=True):
                    each += [difference(next(tensors), one) for one in results]
        except AotcError as error:
            kind = "refused" if type(error).__name__ == "InputError" else "failed"
            return Verdict(name, kind, str(error))
        except Exception as error:
            return Verdict(name, "failed", f"{type(error).__name__}: {error}")
    return [
        Verdict(name, "wrong" if any(each) else "right", "; ".join(filter(None, each)))
        for name, each in messages.items()
    ]


def as_tensor(array: Any, dtype: Any) -> Any:
    """A result as PyTorch's tensor; NumPy has integers for bfloat16."""
    if isinstance(array, torch.Tensor):
        return array
    tensor = torch.from_numpy(np.array(array))
    return tensor.view(dtype) if dtype == torch.bfloat16 else tensor


def difference(ours: Any, eager: Any) -> str:
    """How two tensors differ; empty where they are about the same."""
    if ours.dtype != eager.dtype or ours.shape != eager.shape:
        return f"{ours.dtype} {tuple(ours.shape)}, not {eager.dtype} {tuple(eager.shape)}"
    allowed = _PRECISION.get(eager.dtype, 0)
    wide = [one.double() if one.is_floating_point() else one for one in (ours, eager)]
    is_same = torch.isclose(*wide, rtol=allowed, atol=allowed, equal_nan=True)
    if bool(is_same.all()):
        return ""
    place = tuple(int(one) for one in (~is_same).nonzero()[0])
    return f"{ours[place].item()} at {place}, not {eager[place].item()}"


def _apart(function: Callable[[Trial], Any], trial: Trial) -> Any:
    """What the function returns, from a process of its own, which may end."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        os.close(reader)
        name = next(iter(trial.functions))
        try:
            answer = function(trial)
        except BaseException as error:
            answer = Verdict(name, "failed", f"{type(error).__name__}: {error}")
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    ended = Verdict(next(iter(trial.functions)), "failed", "the process has ended")
    return pickle.loads(data) if data else ended
