"""`aotc explore`: a page that shows a module between the passes of its build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from aotc.commands.build import work_folder
from aotc.commands.option import option
from aotc.commands.options import explore_options, named_tools, request_of
from aotc.delivery import places_read
from aotc.errors import EXIT_OK
from aotc.output import write_file
from aotc.places import Place, check_apart
from aotc.warnings import Severity


@click.command("explore")
@click.argument("source", metavar="INPUT.mlir", type=click.Path(path_type=Path, allow_dash=True))
@option(
    "-o",
    "page",
    metavar="PAGE",
    help="Output file, or - for standard output. Default: INPUT.html in the current directory.",
)
@option(
    "--run",
    "run_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also show the time line of a run: the trace that AOTC_TRACE=FILE writes, or what a "
    "program prints with --json.",
)
@explore_options
def explore(source: Path, page: str | None, run_file: Path | None, **options: Any) -> int:
    """Build INPUT.mlir, and write an HTML page that shows the module after each pass and stage.

    The page also shows the kernels, their machine code for each chip, and the placement of each
    buffer. It needs no network.
    """
    from aotc.explore.explore import explore as explored
    from aotc.explore.page import page_of
    from aotc.explore.timeline import read_run

    request = request_of(source, options)
    to_file = page != "-"
    place = Path(page or f"{request.name}.html")
    reads = [
        *places_read(request),
        *(Place("file", tool) for tool in named_tools(options).values()),
        *([Place("run", run_file, "--run")] if run_file is not None else []),
    ]
    check_apart(reads, [Place("page", place, "-o")] if to_file else [])
    run = None if run_file is None else read_run(run_file)
    with work_folder() as folder:
        exploration, warnings = explored(request, folder, named_tools(options), run)
    if not options["quiet"]:
        for warning in dict.fromkeys(warnings):
            if request.warnings.severity(warning.name, is_sure=warning.is_sure) is Severity.WARNING:
                print(warning.text(Severity.WARNING, "aotc"), file=sys.stderr)
    content = page_of(exploration).encode()
    if to_file:
        write_file(place, content)
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    return EXIT_OK
