"""`aotc bench`: times executables, compares two runs, plots."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from aotc.commands.option import option
from aotc.commands.options import Commas, flat
from aotc.errors import EXIT_OK, InputError, ToolError

if TYPE_CHECKING:
    from aotc.benchmark.programs import Plan
    from aotc.benchmark.results import Results


@click.command(
    "bench",
    help="Measure the entries of executables built by aotc, in turns. With one RESULTS file (from "
    "--json), print its table; with two, compare them.",
)
@click.argument("files", nargs=-1, required=True, metavar="EXE... | RESULTS [RESULTS]")
@option("--entry", "entries", multiple=True, type=Commas(), help="Measure only these entries.")
@option("--sizes", multiple=True, type=Commas(), help="Values of {n} in ARGUMENTS: 1000,64K,16M.")
@option(
    "--args",
    "arguments",
    metavar="ARGUMENTS",
    default="",
    help="Arguments for the programs, such as '--dim x={n} --dim y={n}'.",
)
@option(
    "--repeat",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Timed calls per round.",
)
@option(
    "--warmup",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Untimed calls before them.",
)
@option(
    "--rounds",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of times each program is started. A comparison needs 5.",
)
@option("--device", help="Device of the programs: cpu, cuda, cuda:1.")
@option("--flops", metavar="EXPRESSION", help="Floating-point operations of a call: 2*n**3.")
@option(
    "--bytes",
    "moved",
    metavar="EXPRESSION",
    help="Bytes that a call moves. Default: the bytes that it reads and writes of its buffers.",
)
@option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the results to FILE.",
)
@option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plot time against size: .png, .svg, .pdf.",
)
@option(
    "--roofline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Measure the device's peak rates, and plot GFLOP/s below them.",
)
@option("-q", "--quiet", is_flag=True, help="Do not print progress.")
def bench(
    files: Sequence[str],
    entries: Sequence[list[str]],
    sizes: Sequence[list[str]],
    arguments: str,
    repeat: int,
    warmup: int,
    rounds: int,
    device: str | None,
    flops: str | None,
    moved: str | None,
    json_file: Path | None,
    plot: Path | None,
    roofline: Path | None,
    quiet: bool,
) -> int:
    from aotc.benchmark.plots import check_plot, plot_roofline, plot_sizes
    from aotc.benchmark.programs import Plan, parse_sizes, words_of
    from aotc.benchmark.results import parse_results, results_text
    from aotc.benchmark.tables import comparison, table
    from aotc.output import check_writable, write_file
    from aotc.places import Place, check_apart

    named = [("--json", json_file), ("--plot", plot), ("--roofline", roofline)]
    writes = [Place("file", place, option) for option, place in named if place is not None]
    for one in writes:
        check_writable(one.path.parent)
    check_apart([Place("file", Path(file)) for file in files], writes)
    for place in (plot, roofline):
        if place is not None:
            check_plot(place)
    paths = [Path(file) for file in files]
    texts = [(path, text) for path in paths if (text := results_text(path)) is not None]
    if texts and (len(texts) != len(paths) or len(paths) > 2):
        raise InputError("Give programs, or one or two files of results.")
    were_run = [parse_results(text, path) for path, text in texts]
    if were_run:
        results = were_run[-1]
    else:
        plan = Plan(
            tuple(paths),
            words_of(arguments),
            tuple(flat(entries)),
            parse_sizes(flat(sizes)),
            repeat,
            warmup,
            rounds,
            device,
            flops,
            moved,
        )
        if roofline is not None and flops is None:
            raise InputError("A roofline needs to know what is computed: --flops '2*n**3'.")
        if plot is not None and not plan.sizes:
            raise InputError("There is nothing to plot against: run with --sizes.")
        results = _run(plan, has_roofline=roofline is not None, quiet=quiet)
    if len(were_run) == 2:
        click.echo(comparison(were_run[0], results))
    else:
        click.echo(table(results))
    if json_file is not None:
        write_file(json_file, results.to_json().encode())
    if plot is not None:
        plot_sizes(results, plot)
    if roofline is not None:
        plot_roofline(results, roofline)
    failed = [row for row in results.rows if row.failure is not None]
    return ToolError.exit_code if failed and not were_run else EXIT_OK


def _run(plan: Plan, *, has_roofline: bool, quiet: bool) -> Results:
    from aotc.benchmark.ceilings import measure_ceilings
    from aotc.benchmark.expressions import evaluate
    from aotc.benchmark.programs import run_programs

    for expression in (plan.flops, plan.bytes):
        if expression is not None:
            evaluate(expression, {"n": 1.0} if plan.sizes else {})
    shows = sys.stderr.isatty() and not quiet
    results = run_programs(plan, _tell if shows else lambda line: None)
    if shows:
        _tell("")
    if has_roofline and any(row.device_ms for row in results.rows):
        on_cpu = results.device.startswith("cpu (")
        results = replace(results, ceilings=measure_ceilings(plan.device, on_cpu=on_cpu))
    return results


def _tell(line: str) -> None:
    print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
