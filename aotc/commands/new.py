"""`aotc new`: a small project that builds and tests a kernel."""

from __future__ import annotations

from pathlib import Path

import click

from aotc.errors import EXIT_OK, InputError
from aotc.new_project import KINDS, project_files
from aotc.output import NewFile, write_files


@click.command("new")
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option("--cmake", "kind", flag_value="cmake", default=True, help="Built by CMake (default).")
@click.option("--make", "kind", flag_value="make", help="Built by Make.")
@click.option("--scons", "kind", flag_value="scons", help="Built by SCons.")
@click.option("--python", "kind", flag_value="python", help="Built and called by Python.")
def new(folder: Path, kind: str) -> int:
    """Create the directory NAME with a small project that builds and tests a kernel of this name.

    Its README.md has the commands.
    """
    assert kind in KINDS
    files = project_files(folder.name, kind)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"'{folder}' is there already, and is no empty folder.")
    write_files([NewFile(folder / path, text.encode()) for path, text in files.items()])
    click.echo(f"{folder}: {', '.join(sorted(map(str, files)))}")
    return EXIT_OK
