"""`aotc doctor`."""

from __future__ import annotations

import os

import click

from aotc.commands.option import option
from aotc.errors import EXIT_OK, ToolError


@click.command("doctor")
@option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def doctor(as_json: bool) -> int:
    """Say what is here (tools, front ends, devices), and whether builds work; try one.

    Exit code 0 if they do, else 3, with the commands that mend it.
    """
    from aotc.doctor import examine

    report = examine(os.environ)
    click.echo(report.to_json() if as_json else report.to_text())
    return EXIT_OK if report.works else ToolError.exit_code
