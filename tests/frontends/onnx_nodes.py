"""Builds ONNX's own node tests and compares what they compute with what ONNX expects.

Tests are built and called in worker processes, with limits on memory and time; a worker that a
test ends is replaced. All of them, or those whose names match a pattern:

    python tests/frontends/onnx_nodes.py [PATTERN] [--tensors] [--form FORM] [--sample N]
        [--names FILE] [-j N] [--record FILE] [--table]

FORM is how the model is built: as ONNX has it (`same`), with dimensions of any size (`any`), with
all inputs but the first as constants (`constants`), as models have axes and weights, or both.
`--tensors` leaves out the tests with sequences, optionals or strings, and those whose model is the
body of a function of ONNX's; `--names` takes those that a file lists. The file of `--record` has a
line of JSON for each test; those that it has from an earlier run are not run again. `--table`
counts by operator what did not pass.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CHIP = "sm_80"
SECONDS = 60
MEMORY = 6 << 30
# What is said at run time of sizes that are to be equal.
CHECKED = re.compile(
    "assertion failed: (mismatched size|the batches of a product|'.*' has another size)"
)
# Two units of the last place, relative: ONNX's limit is below that.
PRECISION = {"float16": 2**-9, "bfloat16": 2**-6}
# Elements that an entry has no type for are integers of 8 bits; floats of 8 and 4 bits are bits.
NARROW = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}
# What they expect was computed in f32, with errors of 2e-7 where the result is 0.
NOISY, NOISE = re.compile("test_dft_inverse"), 1e-6
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


def has_tensors_alone(case: Any) -> bool:
    """Whether a test is of tensors of numbers, and not of the body of a function of ONNX's."""
    from onnx import TensorProto

    types = [value.type for value in (*case.model.graph.input, *case.model.graph.output)]
    return "_expanded" not in case.name and all(
        type_.HasField("tensor_type") and type_.tensor_type.elem_type != TensorProto.STRING
        for type_ in types
    )


def check_all(cases: Iterable[Any], form: str = "same", jobs: int = 1) -> Iterator[Outcome]:
    """Builds and calls each test, and gives how it ended, in order."""
    idle = [Worker() for _ in range(jobs)]

    def check(case: Any) -> Outcome:
        worker = idle.pop()
        try:
            return worker.check(case, form)
        finally:
            idle.append(worker)

    try:
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(check, cases)
    finally:
        for worker in idle:
            worker.close()


def check_apart(case: Any, form: str = "same") -> Outcome:
    """Checks one test in a process of its own."""
    worker = Worker()
    try:
        return worker.check(case, form)
    finally:
        worker.close()


class Worker:
    """A process that checks one test after another; one that a test ends is replaced."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def check(self, case: Any, form: str) -> Outcome:
        """Builds and calls a test, and gives how it ended."""
        if self._process is None:
            self._start()
        atol = NOISE if NOISY.match(case.name) else case.atol
        test = case.model.SerializeToString(), case.data_sets, case.rtol, atol
        self._pipe.send((form, bool(RANDOM.match(case.name)), *test))
        try:
            if self._pipe.poll(SECONDS):
                return Outcome(case.name, *self._pipe.recv())
        except (EOFError, ConnectionResetError):
            self._process.join()
            number = -self._process.exitcode
            self.close()
            return Outcome(case.name, "crashed", signal.Signals(number).name if number > 0 else "")
        self.close()
        return Outcome(case.name, "stuck", f"more than {SECONDS} s")

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self._pipe, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,))
        process.start()
        self._process = process
        theirs.close()


def _work(pipe: Any) -> None:
    """Answers each test that comes with how it ended."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["AOTC_CACHE"] = "off"
    warnings.simplefilter("ignore")
    sys.stderr.flush()
    # MLIR's crash reports are long, and what happened is in the signal.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        try:
            test = pipe.recv()
        except EOFError:
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = _check(Path(folder), *test)
            except Exception:  # what no test may end in
                said = "failed", traceback.format_exc()
        pipe.send(said)


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
    stored = NARROW.get(array.dtype.name)
    if stored is not None:
        array = array.astype(stored)
    elif array.dtype.name.startswith(("float8", "float4")):
        array = array.view(np.uint8)
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


def table(outcomes: Iterable[Outcome], cases: Iterable[Any]) -> str:
    """A row for each operator of which a test did not pass: how many of its tests ended how."""
    operators = {case.name: case.model.graph.node[-1].op_type for case in cases}
    counts: dict[str, Counter[str]] = {}
    for one in outcomes:
        counts.setdefault(operators[one.name], Counter())[one.kind] += 1
    rows = [
        f"{operator:28} {dict(found)}"
        for operator, found in sorted(counts.items())
        if set(found) != {"passed"}
    ]
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--tensors", action="store_true")
    parser.add_argument("--form", choices=["same", "any", "constants", "both"], default="same")
    parser.add_argument("--sample", type=int)
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--names", type=Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args(arguments)
    cases = [case for case in node_tests() if re.search(options.pattern, case.name)]
    if options.tensors:
        cases = [case for case in cases if has_tensors_alone(case)]
    if options.names:
        names = set(options.names.read_text().split())
        cases = [case for case in cases if case.name in names]
    if options.sample is not None and options.sample < len(cases):
        cases = random.Random(0).sample(cases, options.sample)
    start, outcomes = time.time(), _recorded(options.record)
    waiting = [case for case in cases if case.name not in outcomes]
    for outcome in check_all(waiting, options.form, options.j):
        outcomes[outcome.name] = outcome
        if options.record:
            with options.record.open("a") as record:
                record.write(json.dumps(vars(outcome)) + "\n")
        if outcome.kind != "passed":
            text = outcome.text.strip().replace("\n", " ")
            print(f"{outcome.kind:8} {outcome.name}: {text[:300]}", flush=True)
    ended = [outcomes[case.name] for case in cases]
    if options.table:
        print(table(ended, cases))
    print(f"{dict(Counter(one.kind for one in ended))} in {time.time() - start:.0f} s")
    return 0 if all(outcome.is_good for outcome in ended) else 1


def _recorded(path: Path | None) -> dict[str, Outcome]:
    """How tests ended in earlier runs, by name."""
    if path is None or not path.exists():
        return {}
    found = [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]
    return {one.name: one for one in found}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    multiprocessing.set_forkserver_preload(PRELOADED)
    sys.exit(main())
