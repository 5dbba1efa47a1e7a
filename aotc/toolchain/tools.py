"""`Toolchain`: finds every tool, in the installed packages or where the user says.

PATH, CUDA_HOME and conda's folders are not searched: a machine may have an older CUDA there, and
the result of a build must not depend on it. For the same reason the finders of cuda-pathfinder are
not used: they search all of these if a package lacks a file. A package's own list of files says
what it installed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from aotc.distributions import files_of, version_of
from aotc.errors import InputError, ToolError
from aotc.target import TARGETS
from aotc.toolchain.spec import ToolSpec
from aotc.toolchain.version import UNKNOWN, Version

if TYPE_CHECKING:
    import subprocess


class Tool(Struct, frozen=True):
    """A program, or a file that programs read.

    `source` says how it was selected: "package", or the option ("--ptxas") or the variable
    ("AOTC_PTXAS") that names it. `arguments` precede all others: zig contains several tools.
    """

    name: str
    path: Path
    version: Version
    source: str
    arguments: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The first words of every command for this tool."""
        return (str(self.path), *self.arguments)


_SPECS = {
    spec.name: spec
    for spec in (
        ToolSpec(
            "zig",
            "compiles and links for the host",
            ("ziglang",),
            ("ziglang/zig",),
            probe=("version",),
            answer=r"\A(\d+\.\d+\.\d+)\S*\s*\Z",
        ),
        ToolSpec(
            "clang",
            "compiles LLVM IR",
            ("ziglang",),
            ("ziglang/zig",),
            answer=r"clang version ([\d.]+)",
            has_own_version=True,
        ),
        *(spec for target in TARGETS for spec in target.tools),
    )
}

# The names that an override may have, in the order in which `aotc --version` lists the tools.
TOOL_NAMES = tuple(_SPECS)
OPTIONAL_TOOLS = tuple(spec.name for spec in _SPECS.values() if spec.is_optional)
# The tools that determine the bytes of artifacts.
_DECIDING = [spec for spec in _SPECS.values() if spec.decides_artifacts]
DECIDING_TOOLS = tuple(spec.name for spec in _DECIDING)


def _packages_of(specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for spec in specs for name in spec.packages))


# The packages of the tools: of all, and of those that determine the bytes of artifacts.
TOOL_PACKAGES = _packages_of(_SPECS.values())
DECIDING_PACKAGES = _packages_of(_DECIDING)


def purpose_of(name: str) -> str:
    """The purpose of a tool of `TOOL_NAMES`: "assembles PTX"."""
    return _SPECS[name].purpose


def package_of(name: str) -> str:
    """The package that contains a tool of `TOOL_NAMES`."""
    return _SPECS[name].packages[0]


def header_of(name: str) -> str:
    """The header in the folder that is a tool of `TOOL_NAMES`."""
    return _SPECS[name].header


# A command that prints a version, and its environment.
_Question = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


class Toolchain:
    """The tools. Each is looked up once, when it is first used.

    `environment` is the user's; `overrides` maps names of `TOOL_NAMES` to files that options name.
    An option takes precedence over a variable, and both over the packages. A missing tool raises
    ToolError. With `asks`, the programs of packages are run to print their versions, too, which
    tests whether they run.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        overrides: Mapping[str, Path] | None = None,
        *,
        asks: bool = False,
    ) -> None:
        self.environment = environment
        self._asks = asks
        self._overrides = dict(overrides or {})
        self._found: dict[str, Tool] = {}
        unknown = sorted(set(self._overrides) - set(_SPECS))
        if unknown:
            raise InputError(f"No such tools: {', '.join(unknown)}")

    def tool(self, name: str) -> Tool:
        """The tool of `TOOL_NAMES` with that name. Raises ToolError if it is missing."""
        if name not in self._found:
            self._found[name] = self._find_clang() if name == "clang" else self._find(name)
        return self._found[name]

    def look_for(self, name: str) -> Tool | None:
        """The tool of `TOOL_NAMES` with that name; None if it is optional and missing."""
        spec = _SPECS[name]
        is_there = self._named(name) is not None or _package_file(spec) is not None
        return self.tool(name) if is_there or not spec.is_optional else None

    @property
    def zig(self) -> Tool:
        """The program that contains `zig cc`, `zig ar` and `zig ld.lld`."""
        return self.tool("zig")

    @property
    def clang(self) -> Tool:
        """Plain clang, without zig's handling of targets, for LLVM IR."""
        return self.tool("clang")

    @property
    def zig_cc(self) -> Tool:
        """Compiles C and links, for any `-target` with a glibc version."""
        return replace(self.zig, name="zig cc", arguments=("cc",))

    @property
    def zig_ar(self) -> Tool:
        """Creates static libraries."""
        return replace(self.zig, name="zig ar", arguments=("ar",))

    @property
    def zig_ld(self) -> Tool:
        """The linker itself."""
        return replace(self.zig, name="zig ld.lld", arguments=("ld.lld",))

    def driver_headers(self) -> list[Tool]:
        """The folders of headers that the runtime is compiled with."""
        return [self.tool(spec.name) for spec in _SPECS.values() if spec.is_folder]

    def place_of(self, name: str) -> Path:
        """The path of the tool of `TOOL_NAMES` with that name. Runs nothing. Raises ToolError if it
        is missing."""
        spec = _SPECS[name]
        named = self._named(name)
        if named is None and name == "clang":
            named = self._named("zig")
        if named is not None:
            return _named_file(spec, *named)
        path = _package_file(spec)
        if path is None:
            raise _missing(spec)
        return path

    def tools(self) -> list[Tool | ToolError]:
        """Every tool that exists, and a ToolError for each missing tool that is required."""
        found: list[Tool | ToolError] = []
        for name in TOOL_NAMES:
            try:
                tool = self.look_for(name)
            except ToolError as error:
                found.append(error)
                continue
            if tool is not None:
                found.append(tool)
        return found

    def _named(self, name: str) -> tuple[Path, str] | None:
        """The file that the user selected for this tool, and by which option or variable."""
        spec = _SPECS[name]
        if name in self._overrides:
            return Path(self._overrides[name]), spec.option
        if self.environment.get(spec.variable):
            return Path(self.environment[spec.variable]), spec.variable
        return None

    def _find_clang(self) -> Tool:
        named = self._named("zig")
        if self._named("clang") is not None:
            return self._find("clang")
        if named is not None:  # the clang of the zig that the user selected
            path = _named_file(_SPECS["zig"], *named)
            return self._tool("clang", path, named[1], ("clang",))
        return self._find("clang", ("clang",))

    def _find(self, name: str, arguments: tuple[str, ...] = ()) -> Tool:
        spec = _SPECS[name]
        named = self._named(name)
        if named is not None:
            return self._tool(name, _named_file(spec, *named), named[1], arguments)
        path = _package_file(spec)
        if path is None:
            raise _missing(spec)
        return self._tool(name, path, "package", arguments)

    def _tool(self, name: str, path: Path, source: str, arguments: tuple[str, ...]) -> Tool:
        spec = _SPECS[name]
        is_known = source == "package" and not spec.has_own_version and not self._asks
        if spec.probe is not None and not is_known:
            version = _probe(name, source, *self._question(spec, path, arguments))
        elif source == "package":
            version = _package_version(spec)
        else:
            version = UNKNOWN
        return Tool(name, path, version, source, arguments)

    def expect_clang(self) -> None:
        """Starts the packages' clang in the background to print its version, needed soon."""
        path = _package_file(_SPECS["clang"])
        if path is None or self._named("clang") or self._named("zig"):
            return
        question = self._question(_SPECS["clang"], path, ("clang",))
        if question not in _expected:
            with contextlib.suppress(OSError):
                _expected[question] = _start_probe(*question)

    def _question(self, spec: ToolSpec, path: Path, arguments: tuple[str, ...]) -> _Question:
        from aotc.toolchain.runner import tool_environment

        environment = tuple(sorted(tool_environment(self.environment).items()))
        return (str(path), *arguments, *(spec.probe or ())), environment


def _missing(spec: ToolSpec) -> ToolError:
    package = spec.packages[0]
    return ToolError(
        f"{spec.name} is missing, which {spec.purpose}. The package '{package}' brings it: "
        "it is not installed beside aotc, or it lacks the file.",
        hint=f"pip install {package}, or name another with {spec.option} or {spec.variable}",
    )


def _named_file(spec: ToolSpec, path: Path, source: str) -> Path:
    """`path`, made absolute, if it is a valid file for the tool."""
    path = path.expanduser().absolute()
    if not path.exists():
        problem = "which does not exist"
    elif spec.is_folder and not (path / spec.header).is_file():
        problem = f"which has no {spec.header}"
    elif not spec.is_folder and not path.is_file():
        problem = "which is no file"
    elif spec.probe is not None and not os.access(path, os.X_OK):
        problem = "which is not executable"
    else:
        return path
    raise ToolError(f"{source} names '{path}' as {spec.name}, {problem}.")


@functools.cache
def _package_file(spec: ToolSpec) -> Path | None:
    """The tool's file in its package; for a folder, its header."""
    for package in spec.packages:
        for place in _package_places(package, spec.files):
            if place.is_file() and (spec.probe is None or os.access(place, os.X_OK)):
                return place.parent if spec.is_folder else place
    return None


def _package_places(package: str, ends: tuple[str, ...]) -> list[Path]:
    if package == "ziglang":
        # Its list has twenty thousand files: the module's path is found faster.
        module = PathFinder.find_spec("ziglang")
        folders = (module.submodule_search_locations or []) if module is not None else []
        return [Path(folder) / "zig" for folder in folders]
    return [
        file.absolute()
        for end in ends
        for file in files_of(package) or []
        if file.as_posix().endswith(f"/{end}")
    ]


def _package_version(spec: ToolSpec) -> Version:
    for package in spec.packages:
        version = version_of(package)
        if version is not None:
            return Version.parse(version)
    raise _missing(spec)


@functools.cache
def _probe(
    name: str, source: str, command: tuple[str, ...], environment: tuple[tuple[str, str], ...]
) -> Version:
    """The version that the tool prints. Cached per process, because it starts the tool."""
    import subprocess

    errors = b""
    try:
        started = _expected.get((command, environment))
        _expected[command, environment] = None
        with started or _start_probe(command, environment) as process:
            try:
                answer, errors = process.communicate(timeout=60)
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        text = answer.decode("utf-8", errors="replace")
        found = re.search(_SPECS[name].answer, text)
        if found is None:
            first = text.partition("\n")[0][:80]
            raise ValueError(f"it answers '{first}', as {name} does not")
        return Version.parse(found[1])
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ToolError(
            f"{name} ({command[0]}, from {source}) does not say its version: {error}",
            command=command,
            stderr=errors.decode("utf-8", errors="replace"),
        ) from None


# Probes that were started in advance and not yet read.
_expected: dict[_Question, subprocess.Popen[bytes] | None] = {}


def _start_probe(
    command: tuple[str, ...], environment: tuple[tuple[str, str], ...]
) -> subprocess.Popen[bytes]:
    import subprocess

    return subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
