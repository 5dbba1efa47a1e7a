"""argv → BuildRequest → build → files; prints, and is the only place that exits."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from aotc import __version__
from aotc.delivery import check_output, deliver, the_only_one
from aotc.errors import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    AotcError,
    InputError,
    InternalError,
    ToolError,
)
from aotc.options import make_request
from aotc.request import DEFAULT_CHIPS, DEFAULT_PTX, BuildRequest, EmitKind, MemoryMode
from aotc.toolchain.tools import OPTIONAL_TOOLS, TOOL_NAMES
from aotc.warnings import Severity, WarningOptions

# Options of the command that `make_request` takes as they are.
_SAME_NAME = (
    *("ptx", "target", "optimization", "debug", "pipeline", "memory", "block", "prefix"),
    *("runtime", "save_temps", "warnings", "frontend", "frontend_options"),
)
_TOOL_OPTIONS = tuple(name for name in TOOL_NAMES if name not in OPTIONAL_TOOLS)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits: 0, or as `aotc.errors` says."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; its exit code. Errors are printed on stderr."""
    try:
        with _terminable():
            result = _cli.main(args=arguments, prog_name="aotc", standalone_mode=False)
        return result if isinstance(result, int) else EXIT_OK
    except click.exceptions.Abort:
        return _interrupted()
    except KeyboardInterrupt:
        return _interrupted()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except AotcError as error:
        _print_error(error)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except Exception as error:
        traceback.print_exc()
        _print_error(InternalError(f"{type(error).__name__}: {error}", hint="Please report this."))
        return EXIT_INTERNAL


def _interrupted() -> int:
    print("aotc: interrupted", file=sys.stderr)
    return EXIT_INTERRUPTED


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM end a build as Ctrl-C does: with nothing left behind."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread: signals are the caller's
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_error(error: AotcError) -> None:
    has_place = re.match(r"\S+:\d+:\d+: error: ", error.message)
    prefix = "" if has_place else "aotc: error: "
    print(f"{prefix}{error.message}", file=sys.stderr)
    if isinstance(error, ToolError):
        if error.stderr:
            print(error.stderr.rstrip("\n"), file=sys.stderr)
        if error.command:
            import shlex

            print(f"aotc: the command was: {shlex.join(error.command)}", file=sys.stderr)
    if error.hint:
        print(f"aotc: hint: {error.hint}", file=sys.stderr)


class _Commas(click.ParamType[list[str]]):
    """Words separated by commas; the option may be repeated, too."""

    name = "LIST"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        return value if isinstance(value, list) else [word for word in value.split(",") if word]


def _flat(lists: Sequence[list[str]]) -> list[str]:
    return [word for words in lists for word in words]


def _build_options(command: Any) -> Any:
    """The options that decide what a build makes: those of `build` and `run`."""
    options = [
        click.option(
            "--chip",
            "chips",
            multiple=True,
            type=_Commas(),
            help="GPUs to compile for, as sm_80,sm_90a; 'native' asks the driver. "
            f"Default: {','.join(DEFAULT_CHIPS)}, and PTX {DEFAULT_PTX} for later ones.",
        ),
        click.option(
            "--ptx",
            help=f"PTX to embed for GPUs without a cubin: compute_80, or none. Default: "
            f"{DEFAULT_PTX} with the default chips, none with --chip.",
        ),
        click.option(
            "--target",
            help="Host to compile for: x86_64-linux-gnu.2.28, aarch64-linux-gnu.2.28, ... "
            "Default: this machine, glibc 2.28.",
        ),
        click.option(
            "-O",
            "optimization",
            type=click.IntRange(0, 3),
            default=3,
            show_default=True,
            help="Optimization of host and device code.",
        ),
        click.option("-g", "debug", is_flag=True, help="Keep line information, host and device."),
        click.option(
            "--entry",
            "entries",
            multiple=True,
            type=_Commas(),
            help="Export these functions, rather than those that carry llvm.emit_c_interface.",
        ),
        click.option(
            "--frontend",
            metavar="NAME",
            help="Read the input by this front end, or as mlir. Default: by the file's ending; "
            "--version lists them.",
        ),
        click.option(
            "--frontend-option",
            "frontend_options",
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the front end.",
        ),
        click.option(
            "--pipeline",
            metavar="PASSES",
            help="Your own lowering, 'builtin.module(...)' or @FILE that has it, in place of "
            "aotc's: --explain prints aotc's to start from.",
        ),
        click.option(
            "--memory",
            type=click.Choice([mode.value for mode in MemoryMode]),
            default=MemoryMode.AUTO.value,
            show_default=True,
            help="Where buffers that kernels use are: placed by what the host does with them, left "
            "where the input has them (explicit), or in managed memory.",
        ),
        click.option(
            "--block",
            metavar="XxYxZ",
            help="Threads of the blocks that parallel loops are mapped to: 256, 32x8. Default: "
            "chosen by each loop's shape.",
        ),
        click.option(
            "--no-cpu-kernels",
            is_flag=True,
            help="Leave out the kernels' CPU forms: smaller and built faster, for GPUs alone.",
        ),
        click.option(
            "--prefix",
            default="",
            help="Put this in front of all that a library exports, and of its name: one_ makes "
            "one_matmul, one_last_error, libone_matmul.so.",
        ),
        click.option(
            "--runtime",
            type=click.Choice(["static", "shared"]),
            default="static",
            show_default=True,
            help="A library's runtime: a part of it, or libmlir_cuda_runtime.so beside it.",
        ),
        click.option(
            "--save-temps",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write every stage's artifacts into DIR, numbered.",
        ),
        click.option(
            "--explain",
            is_flag=True,
            help="Print what aotc decided, and why: the level of the input, the pipeline (as "
            "--pipeline takes it), how loops are mapped and memory is placed.",
        ),
        click.option(
            "-W",
            "warnings",
            multiple=True,
            metavar="NAME",
            help="Warnings by name, as a C compiler has them: -Wno-NAME, -Werror=NAME, -Werror; "
            "docs/warnings.md lists them.",
        ),
        click.option("--time-report", is_flag=True, help="Print how long each stage took."),
        click.option("-v", "--verbose", is_flag=True, help="Print each command as it runs."),
        click.option("-q", "--quiet", is_flag=True, help="Print errors alone."),
        *(
            click.option(
                f"--{name}",
                f"tool_{name.replace('-', '_')}",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help=f"Use this {name} (also AOTC_{name.upper().replace('-', '_')}).",
            )
            for name in _TOOL_OPTIONS
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _print_version(context: click.Context, parameter: Any, value: bool) -> None:
    if not value:
        return
    from aotc import mlir
    from aotc.frontends import frontends
    from aotc.toolchain import Toolchain

    click.echo(f"aotc {__version__}")
    bindings = mlir.bindings()
    click.echo(
        f"  mlir           {bindings.package} {bindings.version}, LLVM {bindings.llvm_version}"
        f"  {bindings.path}"
    )
    for tool in Toolchain(os.environ).tools():
        if isinstance(tool, AotcError):
            click.echo(f"  {tool.message}")
        else:
            click.echo(f"  {tool.name:<14} {tool.version}  {tool.path}  ({tool.source})")
    if found := frontends():
        click.echo("front ends")
        for frontend in found:
            click.echo(f"  {frontend.line()}")
    context.exit()


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Builds native programs and libraries from MLIR, with the GPU code inside them.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version of aotc and of every tool, with its place.",
)
def _cli() -> None:
    pass


@_cli.command("build")
@click.argument("source", metavar="INPUT.mlir", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--emit",
    multiple=True,
    type=_Commas(),
    metavar="KIND",
    help=f"What to make: {', '.join(kind.value for kind in reversed(EmitKind))}. Default: exe. "
    "Several at once: --emit shared,manifest.",
)
@click.option("-o", "out", metavar="PATH", help="A file, a directory, or - for text on stdout.")
@_build_options
def _build(source: Path, emit: Sequence[list[str]], out: str | None, **options: Any) -> int:
    """Build INPUT.mlir ('-' reads standard input)."""
    request = _request(source, options, emit, out)
    check_output(request)
    with _work_folder() as folder:
        files = _run_stages(request, folder, {**options, "stdout_is_free": out != "-"})
        if out == "-":
            sys.stdout.buffer.write(the_only_one(request, files).content())
            sys.stdout.buffer.flush()
        else:
            deliver(request, files)
    return EXIT_OK


@_cli.command("run", context_settings={"ignore_unknown_options": False})
@click.argument("source", metavar="INPUT.mlir", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@_build_options
def _run(source: Path, arguments: tuple[str, ...], **options: Any) -> int:
    """Build INPUT.mlir into an executable and run it with ARGUMENTS; its exit code is ours."""
    request = _request(source, options)
    if not request.target.is_native:
        raise InputError(f"Cannot run a program for {request.target.triple} on this machine.")
    with _work_folder() as folder:
        (made,) = _run_stages(request, folder, {**options, "stdout_is_free": False})
        # In a folder of its own: the stages' files have names like it.
        from aotc.output import write_file

        program = folder / "run" / made.file_name
        write_file(program, made.content(), executable=True)
        code = subprocess.run([program, *arguments], check=False).returncode
    return code if code >= 0 else 128 - code


def _request(
    source: Path, options: dict[str, Any], emit: Sequence[list[str]] = (), out: str | None = None
) -> BuildRequest:
    return make_request(
        source,
        emit=_flat(emit),
        out=out,
        chips=_flat(options["chips"]),
        entries=_flat(options["entries"]),
        cpu_kernels=not options["no_cpu_kernels"],
        **{name: options[name] for name in _SAME_NAME},
    )


@contextlib.contextmanager
def _work_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="aotc-") as folder:
        yield Path(folder)


def _run_stages(request: BuildRequest, folder: Path, options: dict[str, Any]) -> list[Any]:
    # The bindings take a sixth of a second to load: not for --help or a usage error.
    from aotc.observers import Progress, SaveTemps, TimeReport
    from aotc.pipeline import new_build, run_build

    overrides = {
        name: path
        for name in _TOOL_OPTIONS
        if (path := options[f"tool_{name.replace('-', '_')}"]) is not None
    }
    observer = (lambda line: print(line, file=sys.stderr)) if options["verbose"] else None
    build = new_build(request, folder, tools=overrides, watch_commands=observer)
    times = TimeReport()
    observers: list[Any] = [times]
    if request.save_temps is not None:
        observers.append(SaveTemps(request.save_temps))
    progress = Progress()
    if sys.stderr.isatty() and not options["quiet"] and not options["verbose"]:
        observers.append(progress)
    try:
        files = run_build(build, observers)
    except KeyboardInterrupt:
        build.runner.stop()
        raise
    finally:
        progress.close()
        if options["explain"] and build.explanation is not None:
            # Where the build failed, too. Standard output may be an artifact's, or the program's.
            is_free = options["stdout_is_free"]
            print(build.explanation.text(), file=sys.stdout if is_free else sys.stderr)
        if not options["quiet"]:
            _print_warnings(build.warnings, request.warnings)
    if options["time_report"]:
        print(times.text(), file=sys.stderr)
    return files


def _print_warnings(found: Iterable[Any], options: WarningOptions) -> None:
    for warning in dict.fromkeys(found):
        if options.severity(warning.name, is_sure=warning.is_sure) is Severity.WARNING:
            print(warning.text(Severity.WARNING), file=sys.stderr)
