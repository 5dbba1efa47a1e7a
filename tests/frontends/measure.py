"""Runs the models of this folder on a GPU, beside eager PyTorch and torch.compile.

    ./run                     every model: a table in Markdown, and exit code 1 if one is wrong
    ./run block resnet18      these alone
    ./run --dtype f16         of this type alone
    ./run --device cpu        kernels on the CPU (for the bundle's own tests)
    ./run --no-compile        without torch.compile
    ./run --limit 500         ends after so many seconds: what is missing then is said
    ./run --json FILE         the table's rows as JSON, too

Needs python3 with PyTorch, NumPy and msgspec. All three have the same weights, which are made here
from their seed and put into aotc's libraries, whose digests are checked; inputs are on the device.
Errors are the largest difference from the same module in f64, by the largest result. Times are
medians by the clock on the wall, each call with a wait for the device behind it, after calls that
are not counted (torch.compile has compiled by then); no CUDA graphs. f32 is without tf32 in all
three.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Errors relative to the largest result, by type. Eager PyTorch has up to 1e-6 and 3e-3 here.
LIMITS = {"f32": 2e-5, "f16": 1e-2}
COLUMNS = ("ours", "eager", "compiled")
# Of one model of one type, in its own process: a crash or a hang is not the others'.
SECONDS_EACH = 200


def error_of(got: Any, reference: Any) -> float:
    return ((got.double() - reference).abs().max() / reference.abs().max()).item()


def median_seconds(call: Callable[[], Any], wait: Callable[[], None], seconds: float) -> float:
    """Of as many calls as take that long, at least 5 and at most 200."""
    for _ in range(3):
        call()
    wait()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (len(times) < 200 and time.perf_counter() < end):
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Runner:
    """What runs the cases of one model, on one device."""

    def __init__(self, device: str, compiles: bool, seconds: float) -> None:
        import torch

        self.torch = torch
        self.device = device
        self.compiles = compiles
        self.seconds = seconds
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def wait(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def rows(self, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Of the cases of one model and type."""
        from models import SIZES, made
        from weights import put_back

        first = cases[0]
        dtype = {"f32": self.torch.float32, "f16": self.torch.float16}[first["dtype"]]
        model = SIZES[first["size"]][first["model"]]
        module = made(model, dtype)
        for case in cases:
            put_back(HERE / case["library"], case["weights"], module)
        module.to(self.device)
        found = []
        for case in cases:
            for batch in case["batches"]:
                found.append(self._row(case, batch, model, module, dtype))
        return found

    def _row(self, case: dict[str, Any], batch: int, model: Any, module: Any, dtype: Any) -> Any:
        from models import expected, inputs_of

        inputs = [tensor.to(self.device) for tensor in inputs_of(model, batch, dtype)]
        reference = expected(module, tuple(inputs))
        row = {key: case[key] for key in ("model", "dtype", "dynamic")} | {"batch": batch}
        forms = {"ours": lambda: self._ours(case, inputs, reference, dtype)}
        forms["eager"] = lambda: lambda: module(*inputs)
        if self.compiles:
            forms["compiled"] = lambda: self._compiled(module, inputs)
        with self.torch.no_grad():
            for name, make in forms.items():
                try:
                    call = make()
                    got = call()
                    self.wait()
                    row[name] = {"error": error_of(got.to(self.device), reference)}
                    row[name]["us"] = 1e6 * median_seconds(call, self.wait, self.seconds)
                except Exception as error:
                    row.setdefault(name, {})["failed"] = f"{type(error).__name__}: {error}"
        return row

    def _ours(self, case: dict[str, Any], inputs: Any, reference: Any, dtype: Any) -> Any:
        """A call of the library's entry, that gives its result."""
        import aotc

        library = aotc.load(HERE / case["library"])
        if self.device == "cpu":
            library.set_device("cpu")
        entry = library[case["model"]]
        if entry.entry.results:
            return lambda: entry(*inputs)
        result = self.torch.full_like(reference, 77, dtype=dtype)
        options = {}
        if self.device == "cuda" and entry.entry.why_not_async is None:
            options["stream"] = self.torch.cuda.current_stream()

        def call() -> Any:
            entry(*inputs, result, **options)
            return result

        return call

    def _compiled(self, module: Any, inputs: Any) -> Any:
        compiled = self.torch.compile(module, dynamic=False, fullgraph=True)
        compiled(*inputs)
        return lambda: compiled(*inputs)


def check_jax(device: str) -> tuple[int, list[str]]:
    """How many functions of JAX give what JAX gave, and what is wrong with the others."""
    import numpy as np

    import aotc

    right, wrong = 0, []
    for file in sorted((HERE / "jax").glob("*.npz")):
        arrays = np.load(file)
        inputs, results = (
            [arrays[name] for name in arrays if name.startswith(start)]
            for start in ("input", "result")
        )
        try:
            library = aotc.load(file.with_suffix(""))
            if device == "cpu":
                library.set_device("cpu")
            function = library[file.stem]
            got = [np.full_like(array, 77) for array in results]
            if len(function.entry.arguments) == len(inputs):
                returned = function(*inputs)
                got = list(returned) if isinstance(returned, tuple) else [returned]
            else:
                function(*inputs, *got)
            for one, wanted in zip(got, results, strict=True):
                np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)
            right += 1
        except Exception as error:
            wrong.append(f"jax {file.stem}: {type(error).__name__}: {error}")
    return right, wrong


def is_right(row: dict[str, Any]) -> bool:
    """An error that is no number is none that is small."""
    return bool(row["ours"].get("error", 1.0) <= LIMITS[row["dtype"]])


def line(row: dict[str, Any]) -> str:
    """Of the table."""
    batch = f"{row['batch']}, of any" if row["dynamic"] else str(row["batch"])
    forms = [row.get(name, {}) for name in COLUMNS]
    cells = [row["model"], row["dtype"], batch]
    cells += [f"{form['error']:.1e}" if "error" in form else "-" for form in forms]
    cells += [
        f"{form['us']:.0f}" if "us" in form else "failed" if "failed" in form else "-"
        for form in forms
    ]
    return f"| {' | '.join(cells)} |"


def head() -> str:
    titles = ["model", "type", "batch", *(f"error, {name}" for name in COLUMNS)]
    titles += [f"{name}, µs" for name in COLUMNS]
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


def run_group(cases: list[dict[str, Any]], words: list[str], seconds: float) -> Any:
    """The rows of one model and type, from a process of their own; else why there are none."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        name = f"{cases[0]['model']}-{cases[0]['dtype']}"
        command = [sys.executable, __file__, *words, "--group", name, "--json", file.name]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"not done after {seconds:.0f} s"
        text = Path(file.name).read_text()
        return json.loads(text) if text else f"exit code {done.returncode}\n{done.stdout[-3000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="run", description=__doc__, formatter_class=_AsWritten)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dtype", choices=LIMITS)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each time (default: 0.5)")
    parser.add_argument("--limit", type=float, default=520)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--group", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    groups: dict[str, list[dict[str, Any]]] = {}
    for case in json.loads((HERE / "cases.json").read_text()):
        if options.dtype in (None, case["dtype"]):
            groups.setdefault(f"{case['model']}-{case['dtype']}", []).append(case)
    if options.group:
        runner = Runner(options.device, not options.no_compile, options.seconds)
        options.json.write_text(json.dumps(runner.rows(groups[options.group])))
        return 0
    words = ["--device", options.device, "--seconds", str(options.seconds)]
    words += ["--no-compile"] if options.no_compile else []
    end = time.monotonic() + options.limit
    rows: list[dict[str, Any]] = []
    wrong = []
    print(head(), flush=True)
    for name, cases in groups.items():
        if options.models and cases[0]["model"] not in options.models:
            continue
        left = end - time.monotonic()
        found = run_group(cases, words, min(left, SECONDS_EACH)) if left > 0 else "no time left"
        if isinstance(found, str):
            wrong.append(f"{name}: {found}")
            continue
        rows += found
        for row in found:
            print(line(row), flush=True)
            label = f"{name}, batch {row['batch']}"
            if not is_right(row):
                wrong.append(f"{label}: ours is wrong, or failed")
            wrong += [
                f"{label}: {form}: {row[form]['failed']}"
                for form in COLUMNS
                if "failed" in row.get(form, {})
            ]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    models = sum(map(is_right, rows))
    functions = 0
    if not options.models:
        functions, failed = check_jax(options.device)
        wrong += failed
    last = f"{models} right, and {functions} functions of JAX, {len(wrong)} complaints"
    print("", *wrong, last, sep="\n")
    return 1 if wrong or not rows else 0


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    sys.exit(main())
