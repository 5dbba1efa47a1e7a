"""A model → its verdict: exported and built as a user would, called on the CPU device, compared.

It is right where it is about as near to PyTorch in f64 as PyTorch in f32 is.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import os
import re
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from frontends.zoo.catalogue import VARIANTS, Case, Model, Variant, made
from frontends.zoo.stubs import import_torchvision

import aotc

CHIP = "sm_80"
# Sums are added in other orders: so many times eager's own error, and so much of the results' size.
FACTOR, LEAST = 16, 2e-6
# Other sizes that a library for any is called with: the smallest ones too.
OTHERS = ((3, 9), (1, 16), (1, 8))


@dataclass(frozen=True)
class Verdict:
    """`kind` is "right", "refused", "export" (the exporter refuses it), "fixed" (there are no sizes
    to leave open), "missing" (a package), or a fault: "wrong", "error", "crash", "hang".

    `error` is the largest difference from f64 relative to the largest result, `eager` PyTorch's
    own, `cpu` the CPU seconds of export and build, `memory` the largest MiB of this process or of
    one that it started, `size` the library's MiB, `time` that of a call relative to eager's.
    """

    kind: str
    message: str = ""
    error: float | None = None
    eager: float | None = None
    cpu: float | None = None
    memory: float | None = None
    size: float | None = None
    time: float | None = None

    @property
    def is_fault(self) -> bool:
        return self.kind in ("wrong", "error", "crash", "hang")


def judge(
    model: Model, folder: Path, variant: Variant = VARIANTS["one"], *, seconds: float = 0.3
) -> Verdict:
    """Builds into `folder`. Calls of a build for one size are timed for so many seconds."""
    warnings.simplefilter("ignore")
    try:
        # transformers and diffusers import it where it is installed.
        if importlib.util.find_spec("torchvision"):
            import_torchvision()
        case = made(model.make)
    except ModuleNotFoundError as error:
        return Verdict("missing", _first_line(error))
    inputs = case.inputs(*case.sizes)
    shapes = dynamic_shapes(case) if variant.any_size else None
    if variant.any_size and shapes is None:
        return Verdict("fixed")
    torch.set_num_threads(1)
    start = _cpu_seconds()
    try:
        build, program = case.exporters[variant.format](case.module, inputs, shapes, folder)
    except Exception as error:
        return Verdict("export", _first_line(error))
    fixed = _fixed_sizes(program, case) if variant.any_size and program else []
    if fixed:
        return Verdict("export", f"torch.export leaves no other size to {', '.join(fixed)}")
    try:
        artifact = build(emit="shared", out=f"{folder}/", chips=CHIP)
    except aotc.InputError as error:
        return Verdict("refused", str(error))
    facts: dict[str, float] = {
        "cpu": _cpu_seconds() - start,
        "memory": _peak_memory(),
        "size": Path(artifact).stat().st_size / 2**20,
    }
    try:
        errors = [
            _errors(artifact, case, case.inputs(*sizes))
            for sizes in (case.sizes, *(OTHERS if variant.any_size else ()))
        ]
    except _MismatchError as error:
        return Verdict("wrong", str(error), **facts)
    ours, theirs = (max(column) for column in zip(*errors, strict=True))
    facts |= {"error": ours, "eager": theirs}
    if not ours <= FACTOR * theirs + LEAST:
        return Verdict("wrong", f"its error is {ours:.1e}, eager's {theirs:.1e}", **facts)
    if not variant.any_size:
        facts["time"] = _time(artifact, case, inputs, seconds)
    return Verdict("right", **facts)


class _MismatchError(Exception):
    """A result that is not PyTorch's, in words."""


def dynamic_shapes(case: Case) -> Any:
    """`Dim.AUTO` for each dimension that depends on the batch or the length; None without one."""
    batch, length = case.sizes
    if batch < 2:
        return None
    found = []

    def compare(one: Any, other: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            return None
        pairs = enumerate(zip(one.shape, other.shape, strict=True))
        dims = {i: torch.export.Dim.AUTO for i, (a, b) in pairs if a != b}
        found.extend(dims)
        return dims

    inputs, others = case.inputs(*case.sizes), case.inputs(batch + 1, length + 1)
    shapes = torch.utils._pytree.tree_map(compare, inputs, others)
    return shapes if found else None


def _fixed_sizes(program: Any, case: Case) -> list[str]:
    """Sizes that were to be open, and that torch.export found to be one number: of a loop over the
    sequence, for one."""
    from torch.fx.experimental.symbolic_shapes import free_symbols

    batch, length = case.sizes
    given, others = (
        _leaves(case.inputs(*sizes)) for sizes in (case.sizes, (batch + 1, length + 1))
    )
    values = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    names = program.graph_signature.user_inputs
    tensors = [name for name in names if isinstance(values.get(name), torch.Tensor)]
    return [
        f"{name}.shape[{i}]"
        for name, one, other in zip(tensors, given, others, strict=True)
        for i, size in enumerate(values[name].shape)
        if one.shape[i] != other.shape[i] and not free_symbols(size)
    ]


def _errors(artifact: Any, case: Case, inputs: Any) -> tuple[float, float]:
    """Ours and eager's, relative to the largest result; integers must be equal."""
    with torch.no_grad():
        eager = _leaves(case.module(**inputs))
        wide = copy.deepcopy(case.module).double()
        case.widen(wide)
        exact = _leaves(wide(**_doubled(inputs)))
    got = call(artifact, _leaves(inputs), eager)
    if len(got) != len(eager):
        raise _MismatchError(f"there are {len(got)} results, not {len(eager)}")
    found = [(0.0, 0.0)]
    for number, (one, theirs, right) in enumerate(zip(got, eager, exact, strict=True)):
        place = f"result {number}"
        if one.shape != tuple(theirs.shape):
            raise _MismatchError(f"the shape of {place} is {one.shape}, not {tuple(theirs.shape)}")
        expected = theirs.numpy()
        if one.dtype != expected.dtype:
            raise _MismatchError(f"{place} is of {one.dtype}, not {expected.dtype}")
        if not theirs.is_floating_point():
            if not np.array_equal(one, expected):
                raise _MismatchError(f"the integers of {place} are others")
            continue
        found.append(_error(place, one, expected, right.double().numpy()))
    ours, theirs = zip(*found, strict=True)
    return max(ours), max(theirs)


def _error(place: str, one: Any, eager: Any, exact: Any) -> tuple[float, float]:
    finite = np.isfinite(eager)
    if not np.array_equal(one[~finite], eager[~finite], equal_nan=True):
        raise _MismatchError(f"infinite numbers or NaN of {place} are others")
    size = float(np.abs(exact[finite]).max(initial=0)) or 1.0
    ours, theirs = (
        float(np.abs(each[finite].astype(np.float64) - exact[finite]).max(initial=0)) / size
        for each in (one, eager)
    )
    return ours, theirs


def _leaves(values: Any) -> list[Any]:
    leaves = torch.utils._pytree.tree_leaves(_as_dict(values))
    return [leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _as_dict(values: Any) -> Any:
    return dict(values) if isinstance(values, dict) else values


def _doubled(inputs: Any) -> Any:
    def double(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.double() if is_float else value

    return torch.utils._pytree.tree_map(double, inputs)


def call(artifact: Any, inputs: Sequence[Any], expected: Sequence[Any]) -> list[Any]:
    """The results in order: those of known size are arguments, filled with garbage before, the
    others are returned."""
    return _call(artifact, inputs, expected)()


def _call(artifact: Any, inputs: Sequence[Any], expected: Sequence[Any]) -> Callable[[], list[Any]]:
    library = aotc.load(artifact)
    library.set_device("cpu")
    function = library["model"]
    arrays = [tensor.numpy() for tensor in inputs]
    arguments = list(function.entry.arguments[len(arrays) :])
    results: list[Any] = []
    for tensor in expected:
        is_argument = arguments and arguments[0].shape == tuple(tensor.shape)
        results.append(np.full_like(tensor.numpy(), 77, order="C") if is_argument else None)
        if is_argument:
            arguments.pop(0)
    outputs = [array for array in results if array is not None]

    def run() -> list[Any]:
        returned = function(*arrays, *outputs)
        values = list(returned) if isinstance(returned, tuple) else [returned]
        return [values.pop(0) if array is None else array for array in results]

    return run


def _time(artifact: Any, case: Case, inputs: Any, seconds: float) -> float:
    """A call's time relative to eager PyTorch's: medians."""
    with torch.inference_mode():
        run = _call(artifact, _leaves(inputs), _leaves(case.module(**inputs)))
        ours = _median(run, seconds)
        return ours / _median(lambda: case.module(**inputs), seconds)


def _median(run: Callable[[], Any], seconds: float) -> float:
    run()
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak_memory() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) / 1024


def _first_line(error: Exception) -> str:
    # torch.onnx's messages are colored.
    text = re.sub(r"\x1b\[\d*m", "", str(error))
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def as_dict(verdict: Verdict) -> dict[str, Any]:
    return dataclasses.asdict(verdict)
