"""LLVM's own execution tests of MLIR, built by aotc and run on the CPU device.

    python -m tests.upstream.run                       # fetches LLVM's source by apt, once
    python -m tests.upstream.run --source DIR          # DIR has mlir/test
    python -m tests.upstream.run Vector mlir-runner    # those whose path has one of these words
    python -m tests.upstream.run --update              # and writes expected.toml anew

aotc builds the module as it is, by its own pipeline: of a test's RUN lines it takes the entry, the
environment and the CHECK lines. What is not expected to pass is in expected.toml. The results are
in build/upstream/results.md. Exit code 1 where a result is another than the expected one.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain, runtime_library, utilities_library

from . import expected, source
from .compare import difference
from .lit import Execution, executions

_REPOSITORY = Path(__file__).resolve().parents[2]
_CACHE = _REPOSITORY / "build/upstream/cache"
_FOLDERS = ("Integration", "mlir-runner")
# Seconds that a build, and a program, may take.
_BUILD_PATIENCE = 300.0
_PATIENCE = 60.0
# Longer messages are cut.
_LONGEST = 160
# The sparsifier, with calls of cuSPARSE for what it recognizes: what follows is aotc's.
_LIBRARY_PIPELINE = """builtin.module(
  func.func(linalg-generalize-named-ops, linalg-fuse-elementwise-ops),
  sparsification-and-bufferization{enable-gpu-libgen=true},
  sparse-storage-specifier-to-llvm, func.func(convert-linalg-to-loops), canonicalize)"""
# Passes of mlir-opt that aotc runs where its command line asks for them, by a word of it.
_OPTIONS_OF_PASSES: Mapping[str, tuple[str, ...]] = {
    "generate-runtime-verification": ("--verify",),
    "enable-gpu-libgen": ("--pipeline", _LIBRARY_PIPELINE),
}
# Operations of processors, by the folder of their tests.
_OPTIONS_OF_FOLDERS: Mapping[str, tuple[str, ...]] = {"/CPU/X86/": ("--cpu", "x86-64-v4")}
# Calls an entry that is an `llvm.func`, as mlir-runner does.
_CALL = """\
import ctypes, sys
entry = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
kind = sys.argv[3]
entry.restype = {"f32": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32}.get(kind)
value = entry()
sys.stdout.flush()
if entry.restype:
    print(f"{value:e}" if kind == "f32" else value)
"""


class Result(NamedTuple):
    """How a test ended: "passed", "failed" or "skipped", and why."""

    name: str
    ending: str
    why: str = ""


class _TestError(Exception):
    """Why a test failed, in one line."""


class Suite(NamedTuple):
    tests: Path
    known: expected.Expected

    def names(self, words: Sequence[str]) -> list[str]:
        """The tests, or those whose path has one of `words`."""
        found = [
            path.relative_to(self.tests).as_posix()
            for folder in _FOLDERS
            for path in sorted((self.tests / folder).rglob("*.mlir"))
        ]
        return [name for name in found if not words or any(word in name for word in words)]

    def run(self, name: str) -> Result | None:
        """Builds and runs a test; None for one that executes nothing."""
        path = self.tests / name
        with tempfile.TemporaryDirectory(prefix="aotc-upstream-") as folder:
            wanted = executions(path.read_text(), self._substitutions(path, Path(folder)))
            if not wanted:
                return None
            if why := self.known.skipped(name):
                return Result(name, "skipped", why)
            try:
                for execution in wanted:
                    _execute(path, execution, Path(folder))
            except _TestError as failed:
                return Result(name, "failed", str(failed))
        return Result(name, "passed")

    def _substitutions(self, path: Path, folder: Path) -> dict[str, str]:
        return {
            "%s": str(path),
            "%p": str(path.parent),
            "%S": str(path.parent),
            "%t": str(folder / "temporary"),
            "%mlir_src_dir": str(self.tests.parent),
        }


def _execute(path: Path, execution: Execution, folder: Path) -> None:
    program = _built(path, execution, folder)
    environment = {**os.environ, **dict(execution.environment), "AOTC_DEVICE": "cpu"}
    code, output, said = _output(program, environment, path.parent, execution.stderr)
    if execution.fails != (code != 0) and not _returns_value(execution):
        lines = (said or output).decode(errors="replace").strip().splitlines()
        raise _TestError(f"the program ends with exit code {code}: {lines[-1] if lines else ''}")
    if _returns_value(execution) and execution.entry == "main":
        output += f"{code}\n".encode()
    if execution.checks is not None and (lacks := difference(output, execution.checks)):
        raise _TestError(lacks)


def _result_kind(execution: Execution) -> str:
    text = " ".join(execution.options)
    found = re.search(r"-entry-point-result[= ](\w+)", text)
    return found[1] if found else "f32"


def _returns_value(execution: Execution) -> bool:
    return _result_kind(execution) != "void"


def _built(path: Path, execution: Execution, folder: Path) -> list[str]:
    """The program's command."""
    is_llvm = re.search(rf"^\s*llvm\.func @{execution.entry}\(", path.read_text(), re.MULTILINE)
    kind = "obj" if is_llvm else "exe"
    product = folder / f"{execution.entry}.{kind}"
    command = [sys.executable, "-m", "aotc", "build", str(path), "--quiet", "--emit", kind]
    command += ["--entry", execution.entry, "--chip", "sm_90a" if "sm90" in str(path) else "sm_80"]
    for passes in execution.passes:
        for name, options in _OPTIONS_OF_PASSES.items():
            if name in passes:
                command += options
    for folder_name, options in _OPTIONS_OF_FOLDERS.items():
        if folder_name in str(path):
            command += options
    command += ["-o", str(product)]
    if not product.exists():
        environment = {
            **os.environ,
            "PYTHONPATH": str(_REPOSITORY),
            "AOTC_CACHE": str(_CACHE),
        }
        code, output, _ = _output(command, environment, folder, True, _BUILD_PATIENCE)
        if code:
            raise _TestError(_first_error(output.decode(errors="replace"), path))
    if not is_llvm:
        return [str(product)] if execution.entry == "main" else [str(product), "--quiet"]
    library = product.with_suffix(".so")
    link = [sys.executable, "-m", "ziglang", "cc", "-shared", str(product)]
    link += [*_libraries(), "-o", str(library)]
    code, output, _ = _output(link, os.environ, folder, True, _BUILD_PATIENCE)
    if code:
        raise _TestError(_first_error(output.decode(errors="replace"), path))
    return [
        sys.executable,
        "-c",
        _CALL,
        str(library),
        execution.entry,
        _result_kind(execution),
    ]


@functools.cache
def _libraries() -> list[str]:
    """MLIR's runner utilities, which an object may call, and the runtime that these call."""
    environment = {**os.environ, "AOTC_CACHE": str(_CACHE)}
    tools = Toolchain(environment), Runner(environment), HostTarget.native().triple
    return [str(utilities_library(*tools)), str(runtime_library(*tools, kind="static"))]


def _first_error(said: str, path: Path) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(lines) if "error:" in line), len(lines) - 1)
    if first < 0:
        return "no message"
    message = re.sub(r"^.*?error:\s*", "", lines[first])
    if message.endswith(":"):
        message += " " + " ".join(lines[first + 1 : first + 2]).strip()
    return message.replace(f"{path.parent}/", "")


def _output(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    merged: bool,
    patience: float = _PATIENCE,
) -> tuple[int, bytes, bytes]:
    """The exit code (negative for a signal), and what a command printed; what it printed on
    stderr stands apart if it is not `merged`."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output, said = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise _TestError(f"no end after {patience:.0f} s") from None
    return process.returncode, output, said or b""


def table(results: Iterable[Result], known: expected.Expected) -> str:
    """Markdown: counts for each folder, and what failed or was skipped."""
    results = list(results)
    counts = Counter((_folder(result.name), result.ending) for result in results)
    lines = ["| tests | passed | failed | skipped |", "| --- | ---: | ---: | ---: |"]
    for folder in sorted({folder for folder, _ in counts}):
        row = [counts[folder, ending] for ending in ("passed", "failed", "skipped")]
        lines.append(f"| {folder} | {' | '.join(map(str, row))} |")
    totals = Counter(result.ending for result in results)
    total = [totals[ending] for ending in ("passed", "failed", "skipped")]
    lines += [f"| all | {' | '.join(map(str, total))} |", ""]
    lines += ["| test | reason | |", "| --- | --- | --- |"]
    for result in results:
        if result.ending != "passed":
            kind = known.kind(result.name) or ("unexpected" if result.ending == "failed" else "")
            why = result.why.replace("|", "\\|")
            lines.append(f"| {result.name} | {kind or 'skipped'} | {why} |")
    return "\n".join(lines) + "\n"


def _folder(name: str) -> str:
    return "/".join(name.split("/")[:-1][:3])


def _tests(folder: Path) -> Path:
    if not (folder / "mlir/test").is_dir():
        raise source.SourceError(f"{folder} has no mlir/test: it is not LLVM's source.")
    return folder.resolve() / "mlir/test"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="run the tests whose path has one of these alone")
    parser.add_argument("--source", type=Path, help="LLVM's source; default: fetched by apt")
    parser.add_argument("--update", action="store_true", help="write expected.toml anew")
    parser.add_argument("--results", type=Path, help="default: build/upstream/results.md")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    build = _REPOSITORY / "build/upstream"
    build.mkdir(parents=True, exist_ok=True)
    try:
        suite = Suite(
            _tests(options.source or source.fetched(build)),
            expected.read(expected.FILE.read_text()),
        )
    except source.SourceError as error:
        print(error, file=sys.stderr)
        return 2
    results: list[Result] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(suite.run, suite.names(options.words)):
            if result is not None:
                results.append(result._replace(why=result.why[:_LONGEST]))
                if result.ending != "skipped":
                    print(f"{result.ending:7} {result.name} {result.why}", flush=True)
    shutil.rmtree(_CACHE, ignore_errors=True)
    known = suite.known
    failures = {result.name: result.why for result in results if result.ending == "failed"}
    passed = {result.name for result in results if result.ending == "passed"}
    if options.update:
        known = known.updated(failures, passed)
        expected.FILE.write_text(known.text())
    (options.results or build / "results.md").write_text(table(results, known))
    print(", ".join(f"{n} {ending}" for ending, n in Counter(r.ending for r in results).items()))
    regressions = [name for name in failures if known.kind(name) is None]
    surprises = [name for name in passed if known.kind(name) is not None]
    for name in regressions:
        print(f"failed, and was to pass: {name}: {failures[name]}")
    for name in surprises:
        print(f"passes now: take it out of expected.toml (--update): {name}")
    return int(bool(regressions or surprises))


if __name__ == "__main__":
    sys.exit(main())
