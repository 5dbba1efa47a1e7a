"""A SCons tool with builders for the artifacts of `aotc build`.

    import aotc.scons

    env = Environment(tools=["default", "aotc"], toolpath=[aotc.scons.toolpath()])
    env.AotcProgram("matmul", "matmul.mlir", AOTCCHIPS=["sm_80", "sm_90"])
    package = env.AotcSharedLibrary("package", "vector_add.mlir")
    env.AotcUse(package)
    env.Program("main", "main.c")

`AotcProgram` and `AotcObject` make a file. `AotcSharedLibrary`, `AotcStaticLibrary` and
`AotcLibrary` (both) make a package in the folder that is their target: library, header, manifest,
and the files for CMake and pkg-config. The library is the first of the nodes that they return.
`AotcUse` makes an environment's compilers and linkers find it. Construction variables:

    AOTC        the command (default: this Python's aotc)
    AOTCCHIPS   chips to build for, a list or a text
    AOTCFLAGS   any options of `aotc build`
    AOTCCOMSTR  what is printed instead of the command

Everything that determines an output is a dependency of it: the module and the files that its front
end reads, the files that $AOTCFLAGS names, aotc and the packages of its tools.
"""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from SCons.Action import Action
from SCons.Builder import Builder
from SCons.Errors import UserError
from SCons.Util import CLVar

from aotc.delivery import known_outputs
from aotc.depfile import files_read
from aotc.errors import AotcError
from aotc.frontends.registry import MLIR, MLIR_ENDINGS
from aotc.identity import identity
from aotc.many.plan import named_inputs
from aotc.request_words import make_request
from aotc.toolchain.runtime import SYSTEM_LIBRARIES

_AOTC = (sys.executable, "-P", "-m", "aotc")
# Variables for aotc's cache folder and for Python's search path, which SCons does not pass to
# tools. None of them affects the result of a build.
_ENVIRONMENT = (
    *("HOME", "XDG_CACHE_HOME", "TMPDIR", "PYTHONPATH"),
    *("AOTC_CACHE", "AOTC_CACHE_SIZE", "AOTC_REMOTE_CACHE", "AOTC_REMOTE_CACHE_UPLOAD"),
)
_COMMAND = "$AOTC build $SOURCE --emit $_AOTCEMIT $_AOTCCHIPS $AOTCFLAGS -o $_AOTCOUT"


def toolpath() -> str:
    """The folder in which SCons finds the tool `aotc`: the parent of this package."""
    return str(Path(__file__).parent.parent.parent)


def exists(env: Any) -> bool:
    return True


def generate(env: Any) -> None:
    """Adds the builders to an environment."""
    for name in _ENVIRONMENT:
        if name in os.environ:
            env["ENV"].setdefault(name, os.environ[name])
    env.SetDefault(
        AOTC=CLVar(list(_AOTC)),
        AOTCFLAGS=CLVar(),
        AOTCCHIPS=[],
        AOTCCOM=_COMMAND,
        AOTCCOMSTR="",
        _AOTCCHIPS=_chips,
    )
    env.Append(
        BUILDERS={
            "AotcProgram": _builder("exe", suffix="$PROGSUFFIX"),
            "AotcObject": _builder("obj", suffix="$OBJSUFFIX"),
            "AotcSharedLibrary": _package_builder(env, "shared"),
            "AotcStaticLibrary": _package_builder(env, "static"),
            "AotcLibrary": _package_builder(env, "shared,static"),
        }
    )
    env.AddMethod(_use, "AotcUse")


def _builder(emit: str, *, suffix: str) -> Any:
    return Builder(
        action=Action("$AOTCCOM", "$AOTCCOMSTR"),
        emitter=_emit_file,
        suffix=suffix,
        src_suffix=".mlir",
        single_source=True,
        _AOTCEMIT=emit,
        _AOTCOUT="$TARGET",
    )


def _package_builder(env: Any, emit: str) -> Any:
    return Builder(
        action=Action("$AOTCCOM", "$AOTCCOMSTR"),
        emitter=_emit_package,
        # The default is a file.
        target_factory=env.fs.Entry,
        src_suffix=".mlir",
        single_source=True,
        _AOTCEMIT=emit,
        # The library is the first target, in a subfolder of the package.
        _AOTCOUT="${TARGET.dir.dir}/",
    )


def _chips(target: Any, source: Any, env: Any, for_signature: bool) -> str:
    chips = env.Split(env["AOTCCHIPS"])
    return f"--chip={','.join(map(str, chips))}" if chips else ""


def _emit_file(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    options = _options(env, target, source)
    _depend(env, target, source[0], options)
    return [*target, *_weights(env, options)], source


def _emit_package(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    """Replaces the target folder by all files that are written to it."""
    options = _options(env, target, source)
    folder = env.Dir(target[0].get_abspath())
    request = make_request(
        Path(source[0].name),
        emit=env["_AOTCEMIT"].split(","),
        out="package/",
        prefix=options["prefix"],
        runtime=options["runtime"],
    )
    files = [folder.File(str(file.relative_to("package"))) for file in known_outputs(request)]
    _depend(env, files, source[0], options)
    return [*files, *_weights(env, options)], source


def _options(env: Any, target: Any, source: Any) -> dict[str, Any]:
    """The options of `aotc build` in $AOTCFLAGS, parsed by the command's own parser."""
    from aotc.commands.build import build

    words = [str(word) for word in env.subst_list("$AOTCFLAGS", 0, target, source)[0]]
    try:
        return build.make_context("aotc build", words).params
    except (click.ClickException, AotcError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else error
        raise UserError(f"AOTCFLAGS: {message}") from None


def _weights(env: Any, options: dict[str, Any]) -> list[Any]:
    return [env.File(f"#{options['weights']}")] if options["weights"] else []


def _depend(env: Any, targets: Sequence[Any], source: Any, options: dict[str, Any]) -> None:
    """Makes the targets depend on aotc, and on files that options or the source name."""
    from aotc.commands.options import named_tools

    command = tuple(str(word) for word in env.subst_list("$AOTC")[0])
    env.Depends(targets, env.Value(identity() if command == _AOTC else _identity_of(command)))
    tools = list(named_tools(options).values())
    files = named_inputs(options["pipeline"], tools, options["tuned"])
    env.Depends(targets, [env.File(file if file.is_absolute() else f"#{file}") for file in files])
    env.Depends(targets, _files_beside(env, source, options["frontend"]))


@functools.cache
def _identity_of(command: tuple[str, ...]) -> str:
    """What another aotc than this says of itself and its tools."""
    try:
        return subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"AOTC: {shlex.join(command)} --version fails: {error}") from None


def _files_beside(env: Any, source: Any, frontend: str | None) -> list[Any]:
    """What a front end reads beside the source, if that is there now.

    It is asked while SCons reads its files. A scanner would be asked in one of SCons's threads,
    whose stacks (256 KiB) are too small to import a framework.
    """
    place = Path(source.srcnode().get_abspath())
    if (frontend in (None, MLIR) and place.suffix in MLIR_ENDINGS) or not place.is_file():
        return []
    try:
        request = make_request(place, frontend=frontend)
        return [env.File(str(file)) for file in files_read(request)[1:]]
    except (AotcError, ImportError):  # the build will say it
        return []


def _use(env: Any, *packages: Any) -> None:
    """Has C and C++ of this environment find the header and link the library of each package, which
    is what a library's builder returned. Of both libraries it takes the shared one."""
    for package in packages:
        library = package[0]
        env.AppendUnique(CPPPATH=[library.dir.dir.Dir("include")])
        if library.name.endswith(".so"):
            name = library.name.removeprefix("lib").removesuffix(".so")
            env.AppendUnique(LIBPATH=[library.dir], LIBS=[name], RPATH=[library.dir.get_abspath()])
        else:
            env.AppendUnique(LIBS=[library, *SYSTEM_LIBRARIES])
