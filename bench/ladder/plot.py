"""A table and a plot of what `measure.py` printed.

    python -m bench.ladder.plot LINES.jsonl PLOT.svg

prints the table as Markdown, and writes the plot, for which it needs matplotlib
(`pip install matplotlib`).
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

# Drawn beside the steps: it takes a tile that suits the shape.
_EVERY_SHAPE = "gemm_f32"


def read(path: Path) -> dict[str, dict[int, tuple[float, float]]]:
    """Of each f32 step and cuBLAS: by size, TFLOP/s and the part of cuBLAS."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for line in map(json.loads, path.read_text().splitlines()):
        name = line["name"]
        is_drawn = name.startswith("sgemm_") or name in ("cublas", _EVERY_SHAPE)
        if "gflop_per_s" in line and line["element"] == "f32" and is_drawn:
            # cuBLAS is measured beside each library: its figures beside the ladder stay.
            rates = found.setdefault(name, {})
            rates.setdefault(line["size"], (line["gflop_per_s"] / 1000, line["of_cublas"]))
    return found


def table(rates: dict[str, dict[int, tuple[float, float]]]) -> str:
    """A row for each step: TFLOP/s, and in brackets the part of cuBLAS, of each size."""
    sizes = sorted(rates["cublas"])
    lines = ["| | " + " | ".join(map(str, sizes)) + " |", "|---" * (len(sizes) + 1) + "|"]
    for name, by_size in rates.items():
        cells = [f"{rate:.2f} ({part:.2f})" for rate, part in (by_size[size] for size in sizes)]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(rates: dict[str, dict[int, tuple[float, float]]], path: Path) -> None:
    """TFLOP/s against the size, a line for each step, named at its end."""
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    pyplot.rcParams["svg.hashsalt"] = "aotc"  # the same file of the same figures
    figure, axes = pyplot.subplots(figsize=(9, 6))
    for name, by_size in rates.items():
        sizes = sorted(by_size)
        style = {"cublas": "k--", _EVERY_SHAPE: "k-"}.get(name, "o-")
        values = [by_size[size][0] for size in sizes]
        axes.plot(sizes, values, style, label=name.removeprefix("sgemm_"), markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="n, of n x n matrices", ylabel="TFLOP/s")
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.minorticks_off()
    axes.set_title("f32 without tf32, one H200")
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    lines, plot = map(Path, sys.argv[1:])
    rates = read(lines)
    print(table(rates))
    draw(rates, plot)


if __name__ == "__main__":
    main()
