"""`aotc check`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from aotc.commands.build import print_warnings, work_folder
from aotc.commands.option import option
from aotc.commands.options import explore_options, named_tools, request_of
from aotc.errors import EXIT_OK, InputError
from aotc.input.source import read_source


@click.command("check")
@click.argument("source", metavar="INPUT.mlir", type=click.Path(path_type=Path, allow_dash=True))
@option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the problems as JSON to standard output: diagnostics of the Language Server "
    "Protocol.",
)
@option(
    "--name",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With '-': the name of the file whose text is on standard input.",
)
@explore_options
def check(source: Path, as_json: bool, name: Path | None, **options: Any) -> int:
    """Check INPUT.mlir ('-' reads standard input) without building it.

    The module is read, verified, checked, and lowered until its kernels are outlined. The exit
    codes are those of a build.
    """
    from aotc.check import check as checked

    if name is not None and str(source) != "-":
        raise InputError("--name is for standard input: aotc check - --name FILE.")
    request = request_of(name or source, options)
    if str(source) == "-":
        request = replace(request, content=read_source(source))
    with work_folder() as folder:
        found = checked(request, folder, named_tools(options))
    if as_json:
        shown = {"uri": found.uri, "diagnostics": msgspec.to_builtins(found.diagnostics)}
        print(json.dumps(shown, indent=2))
        return EXIT_OK if found.failure is None else found.failure.exit_code
    if not options["quiet"]:
        print_warnings(found.warnings, request.warnings, "aotc")
    if found.failure is not None:
        sys.stderr.flush()
        raise found.failure
    return EXIT_OK
