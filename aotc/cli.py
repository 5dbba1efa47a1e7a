"""argv → a command of `aotc.commands`; prints errors and returns the exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from aotc.errors import (
    EXIT_INPUT,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    AotcError,
    InputError,
    InternalError,
)
from aotc.owner import PROCESS
from aotc.processes.memory import check_stack, collect_rarely
from aotc.processes.record import record_handle
from aotc.version import __version__

# Errors of writing an unnamed file that the user can fix.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Errors of paths that are invalid or that this user may not access, in any option.
_UNUSABLE = (
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
)
_LONGEST_SHOWN = 200  # characters of a path
# In the order in which `aotc --help` lists them.
_COMMANDS = (
    *("new", "build", "run", "check", "explore", "tune", "bench", "inspect"),
    *("upgrade", "explain", "cache", "doctor", "completion", "lsp"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line in a process of its own; returns the exit code after all output."""
    PROCESS.is_ours = True
    # A thread whose tool has ended should get the interpreter lock soon.
    sys.setswitchinterval(0.0005)
    # Not only around `run`: the first collection after it would visit all objects of a build.
    collect_rarely()
    code = run(arguments)
    # The caller ends the process immediately after this: destroying the interpreter and MLIR's
    # objects takes longer than a stage.
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # the reader of the output has closed it
    except OSError as error:
        code = code or _no_output(error)
    sys.stderr.flush()
    return code


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code. Errors are printed on stderr."""
    try:
        check_stack()
        with _terminable():
            result = command_line.main(args=arguments, prog_name="aotc", standalone_mode=False)
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
        # The reader of the output has closed it.
        _drop_output()
        return EXIT_OK
    except MemoryError:
        _print_error(InternalError("Memory ran out."))
        return EXIT_INTERNAL
    except Exception as error:
        if isinstance(error, OSError) and (error.errno in _FULL or _is_closed(error)):
            return _no_output(error)
        if isinstance(error, OSError) and error.errno in _UNUSABLE and error.filename:
            _print_error(InputError(f"Cannot use {_shown_path(error)}: {error.strerror}."))
            return EXIT_INPUT
        import traceback

        traceback.print_exc()
        _print_error(InternalError(f"{type(error).__name__}: {error}", hint="Please report this."))
        return EXIT_INTERNAL


def _shown_path(error: OSError) -> str:
    path = os.fsdecode(error.filename)
    shown = path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}..."
    return repr(shown)


def _no_output(error: OSError) -> int:
    if _is_closed(error):
        problem = InputError("Cannot write: standard output is closed.")
    else:
        problem = InputError(
            f"Cannot write: {error.strerror}.",
            hint="It is standard output, or the folder for temporary files (TMPDIR).",
        )
    _drop_output()
    _print_error(problem)
    return problem.exit_code


def _is_closed(error: OSError) -> bool:
    """Whether the error is due to a standard output that was closed when the process started."""
    if error.errno != errno.EBADF:
        return False
    return fcntl.fcntl(sys.stdout.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted() -> int:
    print("aotc: interrupted", file=sys.stderr)
    return EXIT_INTERRUPTED


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM end a build like Ctrl-C, without leaving files behind."""

    parent = os.getppid()

    def interrupt(number: int, frame: Any) -> None:
        # A running supervisor receives the signal, too, and ends this process. If the supervisor
        # has ended itself, this signal is how the process learns of it.
        if record_handle() is None or os.getppid() != parent:
            raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread: signals belong to the caller
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_error(error: AotcError) -> None:
    print(error.text(), file=sys.stderr)


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
    for tool in Toolchain(os.environ, asks=True).tools():
        if isinstance(tool, AotcError):
            click.echo(f"  {tool.message}")
        else:
            click.echo(f"  {tool.name:<14} {tool.version}  {tool.path}  ({tool.source})")
    if found := frontends():
        click.echo("front ends")
        for frontend in found:
            click.echo(f"  {frontend.line()}")
    context.exit()


def _print_cmake_dir(context: click.Context, parameter: Any, value: bool) -> None:
    if value:
        click.echo(Path(__file__).parent / "cmake")
        context.exit()


class _Commands(click.Group):
    """The group of commands; each command is imported only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(
            importlib.import_module(f"aotc.commands.{cmd_name}"), cmd_name
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{name}'.{_suggestion(name)}")
        return super().resolve_command(ctx, args)


def _suggestion(name: str) -> str:
    """A hint for a word that is not a command: what the user may have meant."""
    import difflib

    if Path(name).is_file():
        return f" To build the file: aotc build {shlex.quote(name)}"
    near = difflib.get_close_matches(name, _COMMANDS, 1)
    return f" Did you mean '{near[0]}'?" if near else ""


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Builds native programs and libraries from MLIR, with the GPU code inside them.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version of aotc, and the version and path of every tool.",
)
@click.option(
    "--cmake-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_cmake_dir,
    help="Print the directory of the CMake package: -Daotc_DIR=$(aotc --cmake-dir).",
)
def command_line() -> None:
    pass
