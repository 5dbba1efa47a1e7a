"""`aotc tune`: finds the fastest matmul kernels on a GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from aotc.commands.option import option
from aotc.commands.options import build_options, named_tools, request_of
from aotc.delivery import places_read
from aotc.errors import EXIT_OK, InputError, ToolError
from aotc.output import check_writable
from aotc.places import Place, check_apart
from aotc.processes.record import temporary_folder
from aotc.request import BuildRequest, Chip, HostTarget
from aotc.request_words import read_tuned


@click.command("tune")
@click.argument("source", metavar="INPUT.mlir", type=click.Path(path_type=Path, allow_dash=True))
@option(
    "--bundle",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the kernels for the GPUs of --chip to DIR, to measure them on another machine with "
    "a GPU and Python: DIR/run FILE writes the measurements to FILE.",
)
@build_options
def tune(source: Path, bundle: Path | None, **options: Any) -> int:
    """Measure the kernels for INPUT.mlir's matmuls on this machine's GPU.

    The fastest kernels are added to the file of --tuned (default: INPUT.tune.json), which
    'aotc build --tuned FILE' reads.
    """
    request = request_of(source, {**options, "tuned": None})
    if bundle is None:
        tune_here(request, options["tuned"], options)
        return EXIT_OK
    from aotc.tuning.candidates import bundle_files

    if not request.chips:
        raise InputError("--bundle is for another machine's GPU: say which, as --chip sm_90a.")
    check_writable(bundle)
    check_apart(
        _reads(request, options), [Place("file", path, "--bundle") for path in bundle_files(bundle)]
    )
    written = _write(request, bundle, request.chips, request.target, options)
    if not written:
        raise _nothing(request)
    if not options["quiet"]:
        print(f"{bundle}: {written} kernels; time them there with {bundle}/run FILE")
    return EXIT_OK


def tuned_file(request: BuildRequest) -> Path:
    """The default file for the measurements of an input."""
    if str(request.source) == "-":
        raise InputError("Standard input has no place for what is measured: name a file, --tuned.")
    return request.source.with_suffix(".tune.json")


def tune_here(request: BuildRequest, file: Path | None, options: Mapping[str, Any]) -> Path:
    """Times the kernels of a module's matmuls on this machine's GPU; returns the written file.

    Raises InputError if there is no GPU or no choice of kernels, and ToolError if timing fails.
    """
    from aotc.targets.native import NoGpuError, found_chips

    file = file or tuned_file(request)
    check_apart(_reads(request, options), [Place("file of what is fastest", file, "--tuned")])
    check_writable(file.parent)
    if file.exists():
        read_tuned(file)
    try:
        chips = found_chips()
    except NoGpuError as error:
        raise InputError(
            f"Kernels are timed on this machine's GPU, and there is none: {error.message}.",
            hint="aotc tune --bundle DIR --chip sm_90a makes a folder to run on another machine.",
        ) from None
    with temporary_folder() as place:
        if not _write(request, place, chips[:1], HostTarget.native(), options):
            raise _nothing(request)
        command = [sys.executable, str(place / "measure.py"), str(file)]
        _run(command, _told(options))
    return file


def _reads(request: BuildRequest, options: Mapping[str, Any]) -> list[Place]:
    tools = (Place("file", tool) for tool in named_tools(options).values())
    return [*places_read(request), *tools]


def _nothing(request: BuildRequest) -> InputError:
    return InputError(
        f"There is nothing to time: {request.source} has no matmul with several "
        "kernels to choose from.",
        hint="aotc build --explain says what matmuls have become.",
    )


def _write(
    request: BuildRequest,
    folder: Path,
    chips: tuple[Chip, ...],
    target: HostTarget,
    options: Mapping[str, Any],
) -> int:
    """Builds the programs to be timed; returns the number of kernels."""
    from aotc.toolchain.runner import cores
    from aotc.tuning.candidates import find_matmuls, write_candidates

    tools = named_tools(options)
    cases = find_matmuls(request, tools, chips)
    if not cases:
        return 0
    tell = _told(options)
    for case in cases:
        tell(f"{case}: {len(case.kernels)} kernels")
    return write_candidates(cases, folder, tools, target=target, jobs=cores())


def _run(command: list[str], tell: Callable[[str], None]) -> None:
    """Runs the command, and passes each line of its output to `tell`."""
    said = []
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if not line.startswith("run: "):
                tell(line.rstrip())
    if process.returncode != 0:
        reasons = [line.removeprefix("run: ").strip() for line in said if line.startswith("run: ")]
        reason = reasons[-1] if reasons else f"it ended with {process.returncode}"
        stderr = "" if reasons else "".join(said)
        raise ToolError(f"Timing kernels failed: {reason}.", command=command, stderr=stderr)


def _told(options: Mapping[str, Any]) -> Callable[[str], None]:
    if options["quiet"]:
        return lambda line: None
    return lambda line: print(line, file=sys.stderr, flush=True)
