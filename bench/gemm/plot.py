"""Tables and a plot of what `measure.py` printed.

    python -m bench.gemm.plot LINES.jsonl PLOT.svg

prints tables as Markdown: TFLOP/s, the part of cuBLAS, and the part of what the chip's data sheet
promises. The plot needs matplotlib (`pip install matplotlib`).
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

# Of an H200 SXM, without sparsity, in TFLOP/s (NVIDIA's data sheet), by the elements multiplied.
PEAKS = {"f16": 989, "bf16": 989, "f32": 67, "f64": 67, "f8": 1979, "i8": 1979}
# Three products of tf32 are one of f32.
PEAKS |= {"tf32": 495, "tf32x3": 165}
# Products of f16, with what is done with them.
PEAKS |= {"gelu": PEAKS["f16"]}


class Line(Struct, frozen=True):
    """A case at one shape: M, N and K, TFLOP/s, and the part of cuBLAS."""

    name: str
    shape: tuple[int, int, int]
    rate: float
    part: float

    @property
    def is_square(self) -> bool:
        return len(set(self.shape)) == 1

    @property
    def row(self) -> str:
        """The name without the sizes that it was built for."""
        last = self.name.rsplit("_", 1)[-1]
        return self.name.removesuffix(f"_{last}") + ", one size" if last[0].isdigit() else self.name

    @property
    def column(self) -> str:
        return str(self.shape[0]) if self.is_square else "x".join(map(str, self.shape))

    @property
    def of_peak(self) -> float:
        return self.rate / PEAKS[self.name.split("_", 1)[0]]


def read(path: Path) -> list[Line]:
    found = []
    for text in path.read_text().splitlines():
        if text.startswith("{") and "of_cublas" in (line := json.loads(text)):
            found.append(
                Line(line["name"], tuple(line["shape"]), line["tflop_per_s"], line["of_cublas"])
            )
    return found


def table(lines: Iterable[Line]) -> str:
    """A row for each case, a column for each shape; and the geometric mean."""
    rows: dict[str, dict[str, Line]] = {}
    for line in lines:
        rows.setdefault(line.row, {})[line.column] = line
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    text = ["| | " + " | ".join(columns) + " | mean |", "|---" * (len(columns) + 2) + "|"]
    for name, row in rows.items():
        cells = [_cell(row[column]) if column in row else "" for column in columns]
        text.append(f"| {name} | " + " | ".join(cells) + f" | {mean(row.values()):.2f} |")
    return "\n".join(text)


def _cell(line: Line) -> str:
    return f"{line.rate:.0f} ({line.part:.2f}; {line.of_peak:.2f})"


def mean(lines: Iterable[Line]) -> float:
    """The geometric mean of parts of cuBLAS."""
    logarithms = [math.log(line.part) for line in lines]
    return math.exp(sum(logarithms) / len(logarithms))


def draw(lines: list[Line], path: Path) -> None:
    """The part of cuBLAS against the size, a line for each case."""
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    pyplot.rcParams["svg.hashsalt"] = "aotc"  # the same file of the same figures
    figure, axes = pyplot.subplots(figsize=(9, 5))
    rows: dict[str, list[Line]] = {}
    for line in lines:
        if line.is_square:
            rows.setdefault(line.row, []).append(line)
    for name, row in rows.items():
        row.sort(key=lambda line: line.shape)
        axes.plot([line.shape[0] for line in row], [line.part for line in row], "o-", label=name,
                  markersize=4)  # fmt: skip
    sizes = sorted({line.shape[0] for row in rows.values() for line in row})
    axes.axhline(1, color="k", linewidth=1)
    axes.set(xscale="log", xlabel="n, of n x n matrices", ylabel="part of cuBLAS", ylim=(0, None))
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False, rotation=45)
    axes.minorticks_off()
    axes.set_title("Matmuls, one H200")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    source, plot = map(Path, sys.argv[1:])
    lines = read(source)
    for is_square in (True, False):
        if some := [line for line in lines if line.is_square == is_square]:
            print(table(some), end="\n\n")
    draw(lines, plot)


if __name__ == "__main__":
    main()
