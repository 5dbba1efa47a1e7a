"""Plots of results: time against size, and a roofline. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aotc.benchmark.results import Results, Row
from aotc.errors import InputError, ToolError

_ENDINGS = (".png", ".svg", ".pdf")


def check_plot(path: Path) -> None:
    """Raises InputError for a suffix that is not an image format, ToolError without matplotlib."""
    if path.suffix not in _ENDINGS:
        raise InputError(f"'{path}' is no picture: end it in {', '.join(_ENDINGS)}.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ToolError(
            "matplotlib is missing, which draws.", hint="pip install 'aotc[plot]'"
        ) from None


def plot_sizes(results: Results, path: Path) -> None:
    """Plots the time of a call against the size, on logarithmic axes; one line per entry."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in results.rows:
        if row.device_ms and row.size is not None:
            lines.setdefault((row.program, row.entry), []).append(row)
    if not lines:
        raise InputError("There is nothing to plot against: run with --sizes.")
    figure, axes = _figure(results)
    for (program, entry), rows in lines.items():
        rows.sort(key=lambda row: row.size or 0)
        sizes, times = [row.size for row in rows], [row.median for row in rows]
        axes.plot(sizes, times, marker="o", label=_label(program, entry))
        axes.fill_between(
            sizes,
            [min(row.device_ms) for row in rows],
            [max(row.device_ms) for row in rows],
            alpha=0.2,
        )
    axes.set_xlabel("n")
    axes.set_ylabel("ms a call")
    _finish(figure, axes, path)


def plot_roofline(results: Results, path: Path) -> None:
    """Plots GFLOP/s against operations per byte, below the peaks that the device reached."""
    if results.ceilings is None:
        raise InputError("The results have no ceilings: run with --roofline.")
    rows = [row for row in results.rows if row.gigaflops is not None and row.bytes]
    if not rows:
        raise InputError("A roofline needs to know what is computed: --flops '2*n**3'.")
    figure, axes = _figure(results)
    intensities = [_intensity(row) for row in rows]
    ridge = results.ceilings.gigaflops / results.ceilings.gigabytes_per_second
    ends = [min(*intensities, ridge) / 4, max(*intensities, ridge) * 4]
    roof = [ends[0], ridge, ends[1]]
    heights = [
        min(results.ceilings.gigaflops, x * results.ceilings.gigabytes_per_second) for x in roof
    ]
    axes.plot(roof, heights, color="black", label="copy, f32 multiply-adds")
    for row, intensity in zip(rows, intensities, strict=True):
        size = "" if row.size is None else f" n={row.size}"
        axes.plot([intensity], [row.gigaflops], "o", label=_label(row.program, row.entry) + size)
    axes.set_xlabel("floating-point operations per byte")
    axes.set_ylabel("GFLOP/s")
    _finish(figure, axes, path)


def _intensity(row: Row) -> float:
    return (row.flops or 0.0) / row.bytes


def _label(program: str, entry: str) -> str:
    return program if program == entry else f"{program} {entry}"


def _figure(results: Results) -> tuple[Any, Any]:
    # Without pyplot, which needs a display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(results.device)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, which="both", alpha=0.3)
    return figure, axes


def _finish(figure: Any, axes: Any, path: Path) -> None:
    import matplotlib

    axes.legend(fontsize="small")
    try:
        # Makes the output deterministic.
        with matplotlib.rc_context({"svg.hashsalt": "aotc"}):
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror or error}.") from None
