"""`aotc run`: builds an executable and runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click

from aotc.commands.build import run_stages, traced, work_folder
from aotc.commands.options import build_options, named_tools, request_of
from aotc.delivery import places_read
from aotc.errors import InputError
from aotc.many.plan import trace_place
from aotc.output import write_file
from aotc.places import Place, check_apart


class _Run(click.Command):
    """Adds a hint to the error for an unknown option: the program's own options follow --."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = f"{error.message} (Options of the program itself come after '--'.)"
            raise click.NoSuchOption(
                error.option_name, message, error.possibilities, error.ctx
            ) from None


@click.command("run", cls=_Run, context_settings={"ignore_unknown_options": False})
@click.argument("source", metavar="INPUT.mlir", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@build_options
def run(source: Path, arguments: tuple[str, ...], **options: Any) -> int:
    """Build INPUT.mlir into an executable, run it with ARGUMENTS, and return its exit code."""
    request = request_of(source, options)
    if not request.target.is_native:
        raise InputError(f"Cannot run a program for {request.target.triple} on this machine.")
    # Checked now, because a trace could overwrite a file. (There is no output.)
    reads = [
        *places_read(request),
        *(Place("file", tool) for tool in named_tools(options).values()),
    ]
    check_apart(reads, trace_place(options["trace"]), numbered=request.save_temps)
    with work_folder() as folder:
        with traced(options["trace"]):
            (made,) = run_stages(request, folder, {**options, "stdout_is_free": False})
        # In a separate folder, because files of the stages have similar names.
        program = folder / "run" / made.file_name
        write_file(program, made.content(), executable=True)
        code = subprocess.run([program, *arguments], check=False).returncode
    return code if code >= 0 else 128 - code
