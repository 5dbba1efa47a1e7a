"""`aotc upgrade`."""

from __future__ import annotations

from pathlib import Path

import click

from aotc.commands.option import option
from aotc.errors import EXIT_OK, InputError


@click.command("upgrade")
@click.argument(
    "files", metavar="FILE.mlir...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@option("--write", "-w", is_flag=True, help="Write the new text to the input files.")
@option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the new text of a single file to PATH, or - for standard output.",
)
def upgrade(files: tuple[Path, ...], write: bool, output: Path | None) -> int:
    """Convert MLIR text of older versions to the current syntax: print a diff, or write the text.

    The first construct that cannot be converted automatically is an error; the conversions before
    it are kept. '-' reads standard input.
    """
    from aotc.input.source import read_source
    from aotc.input.upgrade import upgrade as upgraded
    from aotc.output import write_file

    if output is not None and (write or len(files) > 1):
        raise InputError("-o is for one file, and without --write.")
    problems = []
    for file in files:
        data = read_source(file)
        made = upgraded(str(file), data)
        new = made.text.encode()
        if str(output) == "-":
            click.echo(made.text, nl=False)
        elif output is not None:
            write_file(output, new)
        elif new != data and write and str(file) != "-":
            write_file(file, new)
        elif new != data:
            click.echo(_diff(str(file), data.decode("utf-8-sig"), made.text), nl=False)
        for says in made.says:
            click.echo(f"{file}: {says}", err=True)
        if made.problem is not None:
            problems.append(made.problem.text())
    if problems:
        raise InputError("\n".join(problems))
    return EXIT_OK


def _diff(name: str, old: str, new: str) -> str:
    import difflib

    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (upgraded)"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
