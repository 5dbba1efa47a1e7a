"""What builds cost: processor seconds of `aotc build` for a table of inputs, in turns.

    python -m bench.builds [--baseline FILE] [--rounds 3] [--row NAME] [--stages] [--json FILE]

Each build is a process of its own, without the cache of builds (`--no-cache`; the runtime's objects
and the harness were made before), or, for the rows «again», with a cache that has it. Seconds are
user and system time with all children, and on the wall: the least of the rounds, as other load only
adds. `--baseline` is another aotc's command, which is measured in the same turns; then the ratio is
printed. `--stages` prints the stages of each row, from `--time-report`.

Rows that need packages (PyTorch, ONNX, torchvision, transformers) are left out where these are not
installed, and said.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench.builds import models

INPUTS = Path(__file__).resolve().parent / "inputs"
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


class Row(NamedTuple):
    """A build: the input, a file or the name of a model; whether it was built before, and whether
    its weights go into a file of their own."""

    name: str
    source: Path | str
    options: tuple[str, ...] = ()
    again: bool = False
    has_weights: bool = False


_MODEL = ("--chip", "sm_90")
ROWS = (
    Row("matmul f32, any size", INPUTS / "matmul_f32.mlir"),
    Row("matmul f32, sm_90a", INPUTS / "matmul_f32.mlir", ("--chip", "sm_90a")),
    Row("matmul f32, sm_80", INPUTS / "matmul_f32.mlir", ("--chip", "sm_80")),
    Row("matmul f32, any size, -O1", INPUTS / "matmul_f32.mlir", ("-O1",)),
    Row("matmul f16, any size", INPUTS / "matmul_f16.mlir"),
    Row("samples/attention", SAMPLES / "attention.mlir"),
    Row("epilogue f32, any rows", INPUTS / "epilogue_f32.mlir"),
    Row("samples/matmul", SAMPLES / "matmul.mlir"),
    Row("samples/matmul, again", SAMPLES / "matmul.mlir", again=True),
    Row("one ONNX node", "relu.onnx", ("--chip", "sm_90")),
    Row("one ONNX node, again", "relu.onnx", ("--chip", "sm_90"), again=True),
    Row("a linear layer (.pt2)", "linear.pt2", ("--chip", "sm_90")),
    Row("a linear layer, again", "linear.pt2", ("--chip", "sm_90"), again=True),
    Row("ResNet-50", "resnet50.pt2", _MODEL, has_weights=True),
    Row("BERT, 4 layers", "bert.pt2", _MODEL, has_weights=True),
    Row("Swin-T", "swin_t.pt2", _MODEL, has_weights=True),
    Row("Llama, 4 layers", "llama.pt2", _MODEL, has_weights=True),
)


class Cost(NamedTuple):
    """Seconds of processors, and on the wall."""

    processor: float
    wall: float


def cost(command: Sequence[str | Path]) -> Cost:
    """Runs the command. Raises SystemExit with what it said where it fails."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(seconds, wall)


def command_of(aotc: str, row: Row, source: Path, folder: Path) -> list[str | Path]:
    cache = ("--cache", folder / "cache") if row.again else ("--no-cache",)
    place: list[str | Path] = ["-o", f"{folder / 'out'}/"]
    if row.has_weights:
        place += ["--weights", folder / "weights.bin"]
    return [aotc, "build", source, "--emit", "shared", "-q", *row.options, *cache, *place]


def best(row: Row, source: Path, commands: Sequence[str], rounds: int) -> list[Cost]:
    """Of each command, the least seconds of the rounds."""
    costs: list[list[Cost]] = [[] for _ in commands]
    with tempfile.TemporaryDirectory(prefix="aotc-bench-") as name:
        folders = [Path(name) / str(number) for number in range(len(commands))]
        for folder in folders:
            folder.mkdir()
        for turn in range(rounds + 1):
            for number, aotc in enumerate(commands):
                made = cost(command_of(aotc, row, source, folders[number]))
                if turn:  # the first makes what is made once
                    costs[number].append(made)
    return [Cost(min(c.processor for c in some), min(c.wall for c in some)) for some in costs]


def stages(row: Row, source: Path, aotc: str) -> str:
    with tempfile.TemporaryDirectory(prefix="aotc-bench-") as name:
        command = [*command_of(aotc, row, source, Path(name)), "--time-report"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = (line.split() for line in done.stderr.splitlines())
    return ", ".join(f"{words[0]} {float(words[1]) / 1000:.2f}" for words in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    own = str(Path(sys.executable).parent / "aotc")
    parser.add_argument("--baseline", metavar="FILE", help="another aotc's command")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--row", action="append", help="rows whose names have this in them")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    commands = [own, *([options.baseline] if options.baseline else [])]
    heads = ["row", "CPU s", "wall s", *(["baseline", "ratio"] if options.baseline else [])]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)
    found = []
    with tempfile.TemporaryDirectory(prefix="aotc-bench-") as name:
        for row in ROWS:
            if options.row and not any(part in row.name for part in options.row):
                continue
            source = row.source
            if isinstance(source, str):
                missing = [one for one in models.needs(source) if find_spec(one) is None]
                if missing:
                    print(f"{row.name}: {missing[0]} is not installed", file=sys.stderr)
                    continue
                source = models.write(Path(name) / source)
            costs = best(row, source, commands, options.rounds)
            cells = [row.name, f"{costs[0].processor:.2f}", f"{costs[0].wall:.2f}"]
            if options.baseline:
                ratio = costs[0].processor / costs[1].processor
                cells += [f"{costs[1].processor:.2f}", f"{ratio:.2f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
            if options.stages:
                print(f"  {stages(row, source, own)}", flush=True)
            found.append({"row": row.name, "costs": [one._asdict() for one in costs]})
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
