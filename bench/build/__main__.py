"""The build benchmark: samples/matmul.mlir → an executable for sm_90, as whole processes, in turns.

    python -m bench.build [--rounds 15] [--nvcc FILE] [--json FILE]

- aotc: `aotc build matmul.mlir --emit exe --chip sm_90` with an empty cache; the runtime has been
  built before.
- shell: mlir-opt (which runs the same ptxas) | mlir-translate | clang, clang for the table of
  entries, and clang to link both with aotc's own harness and runtime. That program has no kernels
  for the CPU and moves no data to the GPU: it is less than what aotc makes.
- nvcc: the same kernel in CUDA C++ (matmul.cu), with a main that copies and calls.

Goals: aotc at most 0.9 times the shell's time, and 0.3 times nvcc's. Then: where aotc's time goes,
and what the cache spares (cached.py).
A tool that is not here is said, and what needs it left out: mlir-opt-22, mlir-translate-22 and
clang-22 are Debian's packages mlir-22-tools and clang-22.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain, data_dir, harness_objects, runtime_library
from bench.build.cached import measure_cached, report
from bench.measure import FailedError, Timing, Variant, measure, ratio

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "samples" / "matmul.mlir"
CHIP = "sm_90"
GOALS = {"shell": 0.9, "nvcc": 0.3}

# Loops to kernels as --gpu-lower-to-nvvm-pipeline wants them, and what that pipeline does.
PIPELINE = (
    "builtin.module("
    "func.func(affine-scalrep,affine-parallelize,lower-affine,gpu-map-parallel-loops,"
    "convert-parallel-loops-to-gpu),"
    f"lower-affine,gpu-kernel-outlining,nvvm-attach-target{{chip={CHIP} O=3}},convert-scf-to-cf,"
    "gpu.module(convert-gpu-to-nvvm,reconcile-unrealized-casts),"
    "func.func(llvm-request-c-wrappers),gpu-to-llvm,"
    "gpu-module-to-binary{toolkit=@TOOLKIT@ format=bin},convert-to-llvm,"
    "reconcile-unrealized-casts)"
)


def _found(*names: str) -> list[str]:
    """Their paths. Raises FailedError for one that is not here."""
    paths = []
    for name in names:
        path = shutil.which(name)
        if path is None:
            raise FailedError(f"{name} is not here")
        paths.append(path)
    return paths


def _run(*commands: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        if done.returncode != 0:
            raise FailedError(f"{shlex.join(command)}\n{done.stderr}")


def _aotc(folder: Path, *options: str) -> list[str]:
    out = str(folder / "aotc.exe")
    words = ("build", str(SAMPLE), "--emit", "exe", "--chip", CHIP, "-o", out)
    return [sys.executable, "-m", "aotc", *words, "--cache", str(folder / "cache"), *options]


def _words(before: str, paths: Sequence[Path]) -> str:
    return " ".join(shlex.quote(f"{before}{path}") for path in paths)


def _shell(folder: Path) -> list[str]:
    """One shell, as one types it."""
    opt, translate, clang = _found("mlir-opt-22", "mlir-translate-22", "clang-22")
    toolchain = Toolchain(os.environ)
    triple = HostTarget.native().triple
    runner = Runner(os.environ)
    harness = harness_objects(toolchain, runner, triple, program_main=False)
    runtime = runtime_library(toolchain, runner, triple, kind="static")
    pipeline = PIPELINE.replace("@TOOLKIT@", str(toolchain.tool("ptxas").path.parent.parent))
    includes = [data_dir("templates") / "harness", data_dir("runtime_c") / "include"]
    lines = [
        f"{opt} {SAMPLE} --pass-pipeline={shlex.quote(pipeline)} | "
        f"{translate} --mlir-to-llvmir | "
        f"{clang} -O3 -fPIC -Wno-override-module -c -x ir - -o matmul.o",
        f"{clang} -O3 -fPIC {_words('-I', includes)} "
        f"-c {shlex.quote(str(HERE / 'table.c'))} -o table.o",
        f"{clang} -s matmul.o table.o {_words('', [*harness, runtime])} "
        "-lm -lpthread -ldl -o shell.exe",
    ]
    text = f"set -e -o pipefail\ncd {shlex.quote(str(folder))}\n" + "\n".join(lines)
    return ["bash", "-c", text]


def _nvcc(folder: Path, nvcc: str) -> list[str]:
    _found(nvcc)
    return [nvcc, "-O3", f"-arch={CHIP}", str(HERE / "matmul.cu"), "-o", str(folder / "nvcc.exe")]


def _variant(name: str, command: Sequence[str], program: Path) -> Variant:
    def check() -> str | None:
        return None if os.access(program, os.X_OK) else f"there is no {program.name}"

    def remove() -> None:
        program.unlink(missing_ok=True)
        shutil.rmtree(program.parent / "cache", ignore_errors=True)

    return Variant(name, partial(_run, command), remove, check)


def _variants(folder: Path, nvcc: str) -> list[Variant]:
    makers: dict[str, Callable[[Path], list[str]]] = {
        "aotc": _aotc,
        "shell": _shell,
        "nvcc": partial(_nvcc, nvcc=nvcc),
    }
    variants = []
    for name, make in makers.items():
        try:
            variants.append(_variant(name, make(folder), folder / f"{name}.exe"))
        except FailedError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
    return variants


def _stages(folder: Path, rounds: int) -> dict[str, float]:
    """Medians in seconds of aotc's stages, of all of them together, and of the empty process."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        command = _aotc(folder, "--time-report")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for name, milliseconds in re.findall(r"^(\S+) +([\d.]+) ms", done.stderr, re.MULTILINE):
            found.setdefault(name, []).append(float(milliseconds) / 1000)
    return {name: statistics.median(times) for name, times in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--nvcc", default="nvcc", help="default: the one in PATH")
    parser.add_argument("--cache-rounds", type=int, default=3, help="0: without the cache's table")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # As installed: with the compiled modules that pip makes.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="aotc-bench-") as name:
        folder = Path(name)
        timings = measure(_variants(folder, options.nvcc), options.rounds)
        stages = _stages(folder, options.rounds)
        _report(timings, stages)
        cached = {}
        if options.cache_rounds:
            cached = measure_cached(folder, options.cache_rounds)
            report(cached)
    if options.json is not None:
        rows = {timing.name: list(timing.seconds) for timing in timings}
        options.json.write_text(
            json.dumps({"seconds": rows, "stages": stages, "cache": cached}, indent=2)
        )
    return 1 if any(timing.failure for timing in timings) else 0


def _report(timings: Sequence[Timing], stages: Mapping[str, float]) -> None:
    ours = timings[0]
    print(f"{'':<8}{'median ms':>10}{'fastest':>9}{'slowest':>9}{'aotc is':>9}{'goal':>6}")
    for timing in timings:
        if timing.failure is not None:
            print(f"{timing.name:<8}failed: {timing.failure}")
            continue
        of = ratio(ours, timing)
        goal = GOALS.get(timing.name)
        print(
            f"{timing.name:<8}{1000 * timing.median:>10.0f}{1000 * timing.fastest:>9.0f}"
            f"{1000 * timing.slowest:>9.0f}{of:>9.2f}{'' if goal is None else goal:>6}"
        )
    print("\naotc's stages, median ms (some run beside others)")
    for name, seconds in stages.items():
        print(f"{name:<14}{1000 * seconds:>8.1f}")
    if ours.seconds:
        start = ours.median - stages["total"]
        print(f"{'start and end':<14}{1000 * start:>8.1f}")


if __name__ == "__main__":
    sys.exit(main())
