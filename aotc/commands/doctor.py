"""`aotc doctor`."""

from __future__ import annotations

import os

import click

from aotc.commands.option import option
from aotc.errors import EXIT_OK, ToolError


@click.command("doctor")
@option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> int:
    """List the tools, front ends and devices of this machine, and try a build.

    The exit code is 0 if builds work. Otherwise it is 3, and the commands that repair the
    installation are printed.
    """
    from aotc.doctor import examine

    report = examine(os.environ)
    click.echo(report.to_json() if as_json else report.to_text())
    return EXIT_OK if report.works else ToolError.exit_code
