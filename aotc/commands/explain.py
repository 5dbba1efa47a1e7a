"""`aotc explain`."""

from __future__ import annotations

import textwrap

import click

from aotc.errors import EXIT_OK
from aotc.warnings import WARNINGS, check_name, explanations

_WIDTH = 100


@click.command("explain")
@click.argument("name", metavar="[WARNING]", required=False)
def explain(name: str | None) -> int:
    """Explain a warning and its remedy; without a name, list all warnings.

    WARNING is a name as in [-Wname], with or without the prefix -W.
    """
    if name is None:
        longest = max(map(len, WARNINGS))
        for known, explanation in explanations().items():
            meaning = textwrap.shorten(explanation.meaning, _WIDTH - longest, placeholder=" ...")
            click.echo(f"{known:<{longest}}  {meaning}")
        return EXIT_OK
    name = name.strip("[]").removeprefix("-W").removeprefix("error=")
    check_name(name)
    found = explanations()[name]
    lines = [f"{name} ({WARNINGS[name].value} by default)", found.meaning]
    if found.solution:
        lines.append(f"What to do: {found.solution}")
    lines.append(f"-Wno-{name} hides it, -Werror={name} makes it an error.")
    click.echo("\n\n".join(textwrap.fill(line, _WIDTH) for line in lines))
    return EXIT_OK
