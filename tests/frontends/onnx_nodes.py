"""Builds ONNX's own node tests and compares what they compute with what ONNX expects.

Each test is built and called in a process of its own, with limits on its memory and time. All of
them, or those whose names match a pattern:

    python tests/frontends/onnx_nodes.py [PATTERN] [--form FORM] [-j N] [--json FILE]

FORM is how the model is built: as ONNX has it (`same`), with dimensions of any size (`any`), with
all inputs but the first as constants (`constants`), as models have axes and weights, or both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CHIP = "sm_90"
SECONDS = 60
MEMORY = 6 << 30
# What is said at run time of sizes that are to be equal.
CHECKED = re.compile("assertion failed: (mismatched size|the batches of a product)")
# Two units of the last place, relative: ONNX's limit is below that.
PRECISION = {"float16": 2**-9, "bfloat16": 2**-6}
# What takes long to import, and starts no thread.
PRELOADED = ["onnx", "aotc.pipeline", "aotc.frontends.onnx", "torch_mlir.extras.onnx_importer"]
# What they compute is random: their results have a shape and an element type to compare, alone.
RANDOM = re.compile(r"test_(bernoulli|training_dropout)")


@dataclass(frozen=True)
class Outcome:
    """How one test ended: "passed", "refused" (by InputError that names an operator), or what is a
    defect of aotc's: "wrong", "failed" (another error), "crashed", "stuck"."""

    name: str
    kind: str
    text: str = ""

    @property
    def is_good(self) -> bool:
        return self.kind in ("passed", "refused")


def node_tests() -> list[Any]:
    """ONNX's own, which are made rather than read: in some seconds."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(node.collect_testcases(None))


def check_all(cases: Iterable[Any], form: str = "same", jobs: int = 1) -> Iterator[Outcome]:
    """Builds and calls each test, and gives how it ended, in order."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda case: check_apart(case, form), cases)


def check_apart(case: Any, form: str = "same") -> Outcome:
    """Checks one test in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    sent = case.name, case.model.SerializeToString(), case.data_sets, case.rtol, case.atol
    process = context.Process(target=_child, args=(sender, form, *sent))
    process.start()
    sender.close()
    said = None
    try:
        if receiver.poll(SECONDS):
            said = receiver.recv()
    except EOFError:
        pass
    if said is None and process.is_alive():
        process.join(2)
    if process.is_alive():
        process.kill()
        process.join()
        return Outcome(case.name, *(said or ("stuck", f"more than {SECONDS} s")))
    process.join()
    if said is not None:
        return Outcome(case.name, *said)
    return Outcome(case.name, "crashed", signal.Signals(-process.exitcode).name)


def _child(sender: Any, form: str, name: str, *test: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["AOTC_CACHE"] = "off"
    warnings.simplefilter("ignore")
    sys.stderr.flush()
    # MLIR's crash reports are long, and what happened is in the signal.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with tempfile.TemporaryDirectory() as folder:
        sender.send(_check(Path(folder), form, bool(RANDOM.match(name)), *test))


def _check(
    folder: Path, form: str, is_random: bool, content: bytes, data: Any, rtol: float, atol: float
) -> tuple[str, str]:
    """How a test ended, and why."""
    import onnx

    import aotc
    from aotc.errors import AotcError

    model = onnx.load_from_string(content)
    if form in ("constants", "both"):
        data = _make_constants(model, data)
    if form in ("any", "both"):
        _forget_sizes(model)
    path = folder / "net.onnx"
    onnx.save(model, path)
    try:
        artifact = aotc.build(path, emit="shared", out=f"{folder}/", chips=CHIP, optimization=1)
    except aotc.InputError as error:
        operators = {node.op_type for node in _nodes(model)}
        named = any(re.search(rf"onnx\.(\S+\.)?{name}", str(error)) for name in operators)
        return "refused" if named else "failed", str(error)
    except AotcError as error:
        return "failed", f"{type(error).__name__}: {error}"
    try:
        for inputs, expected in data:
            expected = [_array(value) for value in expected]
            _compare(_results(artifact, inputs, expected), expected, rtol, atol, is_random)
    except AssertionError as error:
        return "wrong", str(error)
    except AotcError as error:
        # What an import asserts of a size is checked when the entry is called.
        is_checked = form in ("any", "both") and CHECKED.search(str(error))
        return "refused" if is_checked else "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


def _forget_sizes(model: Any) -> None:
    for value in (*model.graph.input, *model.graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            dimension.Clear()
    del model.graph.value_info[:]


def _make_constants(model: Any, data: Any) -> Any:
    """Makes weights of all inputs but the first. Gives the inputs that are left, and the results:
    those of the first of the data sets, whose values the weights have."""
    from onnx import TensorProto, numpy_helper

    inputs, expected = data[0]
    for given, value in zip(inputs[1:], list(model.graph.input)[1:], strict=True):
        if value.type.HasField("tensor_type"):
            tensor = TensorProto()
            tensor.CopyFrom(
                given
                if isinstance(given, TensorProto)
                else numpy_helper.from_array(np.asarray(given))
            )
            tensor.name = value.name
            model.graph.initializer.append(tensor)
            model.graph.input.remove(value)
    model.ir_version = max(model.ir_version, 4)
    names = [value.name for value in model.graph.input]
    return [(inputs[: len(names)], expected)]


def _nodes(model: Any) -> Iterator[Any]:
    """Every node, in nested graphs and functions too."""
    waiting = [*model.graph.node, *(node for one in model.functions for node in one.node)]
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            waiting += [
                *attribute.g.node,
                *(one for graph in attribute.graphs for one in graph.node),
            ]


def _array(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    array = np.asarray(numpy_helper.to_array(value) if isinstance(value, TensorProto) else value)
    return array.copy(order="C")


def _results(artifact: Any, inputs: Any, expected: Any) -> list[Any]:
    from frontends.support import call

    return call(artifact, "net", [_array(value) for value in inputs], expected)


def _compare(results: Any, expected: Any, rtol: float, atol: float, is_random: bool) -> None:
    assert len(results) == len(expected)
    for ours, theirs in zip(results, expected, strict=True):
        kinds = (ours.dtype, ours.shape), (theirs.dtype, theirs.shape)
        assert kinds[0] == kinds[1], f"{kinds[0]} rather than {kinds[1]}"
        if is_random:
            continue
        numbers = [ours, theirs]
        if theirs.dtype.kind == "V" or theirs.dtype.itemsize < 4:  # those of ml_dtypes, too
            numbers = [array.astype(np.float32) for array in numbers]
        error = max(rtol, PRECISION.get(theirs.dtype.name, 0))
        np.testing.assert_allclose(*numbers, rtol=error, atol=atol)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--form", choices=["same", "any", "constants", "both"], default="same")
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    cases = [case for case in node_tests() if re.search(options.pattern, case.name)]
    start, outcomes = time.time(), []
    for outcome in check_all(cases, options.form, options.j):
        outcomes.append(outcome)
        if outcome.kind != "passed":
            print(f"{outcome.kind:8} {outcome.name}: {outcome.text[:300]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([vars(outcome) for outcome in outcomes]))
    print(f"{dict(Counter(one.kind for one in outcomes))} in {time.time() - start:.0f} s")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    multiprocessing.set_forkserver_preload(PRELOADED)
    sys.exit(main())
