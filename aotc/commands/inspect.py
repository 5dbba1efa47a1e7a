"""`aotc inspect`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aotc.chips import MAX_BLOCK_THREADS
from aotc.commands.option import option
from aotc.errors import EXIT_OK, InputError

if TYPE_CHECKING:
    from aotc.inspect import Report

_ALL = "*"


@click.command("inspect")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@option(
    "--ptx",
    is_flag=False,
    flag_value=_ALL,
    metavar="[NAME]",
    help="Print all PTX, or the PTX for the chip or with the kernel NAME.",
)
@option(
    "--sass",
    is_flag=False,
    flag_value=_ALL,
    metavar="[NAME]",
    help="Print the machine code, disassembled by nvdisasm, selected as by --ptx.",
)
@option(
    "--occupancy",
    metavar="CHIP",
    help="Print the number of warps of each kernel that fit on a multiprocessor of CHIP.",
)
@option(
    "--block",
    type=click.IntRange(1, MAX_BLOCK_THREADS),
    metavar="THREADS",
    help="With --occupancy: threads per block. Default: the kernel's maximum.",
)
@option(
    "--nvdisasm",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Use this nvdisasm instead of the installed package's (also AOTC_NVDISASM).",
)
def inspect(
    file: Path,
    as_json: bool,
    ptx: str | None,
    sass: str | None,
    occupancy: str | None,
    block: int | None,
    nvdisasm: Path | None,
) -> int:
    """Describe FILE: entries, kernels, device images, requirements, and the tools that made it.

    FILE is an executable, a shared or static library, an object, a fatbin, a cubin or PTX, of aotc
    or of another tool.
    """
    from aotc.inspect import opened
    from aotc.inspect.report import report_of
    from aotc.inspect.text import to_text

    if sum(option is not None for option in (ptx, sass, occupancy)) > 1:
        raise InputError("--ptx, --sass and --occupancy are one at a time.")
    if block is not None and occupancy is None:
        raise InputError("--block is for --occupancy.")
    if as_json and (ptx is not None or sass is not None):
        raise InputError("--json is for the report and for --occupancy.")
    with opened(file) as view:
        if ptx is not None or sass is not None:
            from aotc.inspect.images import image_texts

            kind, name = ("ptx", ptx) if ptx is not None else ("cubin", sass)
            name = None if name == _ALL else name
            overrides = {"nvdisasm": nvdisasm} if nvdisasm is not None else {}
            for text in image_texts(view, kind, name, os.environ, overrides):
                click.echo(text)
            return EXIT_OK
        report = report_of(view)
    if occupancy is not None:
        _print_occupancy(report, occupancy, block, as_json)
        return EXIT_OK
    click.echo(report.to_json() if as_json else to_text(report), nl=not as_json)
    if report.problems:
        raise InputError("\n".join(report.problems))
    return EXIT_OK


def _print_occupancy(report: Report, name: str, threads: int | None, as_json: bool) -> None:
    import json

    from msgspec.structs import asdict

    from aotc.inspect.images import occupancy_rows, occupancy_text
    from aotc.request import Chip

    if name == "native":
        from aotc.targets.native import native_chips

        chip = native_chips()[0]
    else:
        chip = Chip.parse(name)
    rows = occupancy_rows(report, chip, threads)
    if not as_json:
        click.echo(occupancy_text(rows, chip))
        return
    kernels = [
        {"image": image, "kernel": kernel, **(asdict(found) if found is not None else {})}
        for image, kernel, found in rows
    ]
    click.echo(json.dumps({"chip": chip.name, "kernels": kernels}, indent=2))
