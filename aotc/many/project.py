"""aotc.toml: targets by name, each with its inputs and options.

    [defaults]
    chips = ["sm_80", "sm_90"]

    [target.kernels]
    inputs = ["kernels/*.mlir"]
    emit = "shared"
    out = "package/"

docs/build_systems.md lists the keys. Paths are relative to the file's folder.
"""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from aotc.errors import InputError
from aotc.many.plan import requests_for
from aotc.pipes import read_text
from aotc.request import BuildRequest, unique
from aotc.request_words import make_request

if TYPE_CHECKING:
    from aotc.many.toml_lines import Lines

NAME = "aotc.toml"
# The output folder if a target has no `out`.
_OUT = "build/{name}/"

# Maps each key to its type in TOML. All except `inputs` are options of `make_request`, which checks
# their values.
_TEXTS = "a text, or a list of texts"
_TEXT = "a text"
_FLAG = "true or false"
_NUMBER = "a number"
_TABLE = "a table of texts"
_FLAGS = (
    *("debug", "lineinfo", "cpu_kernels", "verify", "allow_tf32", "allow_3xtf32"),
    *("untested_kernels", "allow_file_directives", "add_weights"),
)
_LISTS = ("inputs", "emit", "chips", "target", "entries", "warnings", "replaceable")
KEYS = {
    **dict.fromkeys(_LISTS, _TEXTS),
    **dict.fromkeys(("out", "weights", "ptx", "pipeline", "memory", "block", "tuned"), _TEXT),
    **dict.fromkeys(("prefix", "runtime", "frontend", "cpu"), _TEXT),
    **dict.fromkeys(_FLAGS, _FLAG),
    "optimization": _NUMBER,
    "frontend_options": _TABLE,
}
# Options of `aotc build` whose parameter in `make_request` has another name.
_OF_OPTION = {
    "no_cpu_kernels": "cpu_kernels",
    **dict.fromkeys(("print_ir_before", "print_ir_after", "print_ir_dir"), "print_ir"),
}


class Planned(Struct, frozen=True):
    """A request of a target; with `pipeline` as it was written and the path `tuned`, which a
    depfile needs."""

    request: BuildRequest
    pipeline: str | None
    tuned: Path | None = None
    title: str = ""


class Project(Struct, frozen=True):
    """The contents of an aotc.toml; keys and types of values are checked, their meaning is not."""

    path: Path
    lines: Lines
    defaults: Mapping[str, Any]
    targets: Mapping[str, Mapping[str, Any]]

    def plan(
        self, names: Iterable[str], words: Mapping[str, Any], given: frozenset[str]
    ) -> list[Planned]:
        """The requests of the targets, in the file's order.

        `words` are the command's options for `make_request`; the options in `given` are on the
        command line and take precedence over the file. Raises InputError with the place in the
        file.
        """
        given = frozenset(_OF_OPTION.get(name, name) for name in given)
        override = {key: value for key, value in words.items() if key in given}
        chosen = set(names)
        found = [
            one for name in self.targets if name in chosen for one in self._requests(name, override)
        ]
        sources = [one.request.source for one in found]
        return [
            one if sources.count(one.request.source) > 1 else replace(one, title="")
            for one in found
        ]

    def _requests(self, name: str, override: Mapping[str, Any]) -> list[Planned]:
        values = {**self.defaults, **self.targets[name]}
        sources = self._inputs(name, _listed(values.pop("inputs")))
        hosts = _listed(values.pop("target", []))
        values = {key: self._value(key, value) for key, value in values.items()}
        values.setdefault("out", self._value("out", _OUT.format(name=name)))
        if "target" in override:
            hosts = []
        planned = []
        for host in hosts or [None]:
            own = {**values, "target": host, **override}
            if len(hosts) > 1:
                own["out"] = self._folder_for(name, own["out"], host)
            request = self._request(name, sources[0], own)
            title = ", ".join([name, *([str(host)] if len(hosts) > 1 else [])])
            try:
                requests = requests_for(sources, request)
            except InputError as error:
                self._fail(error.message, ("target", name))
            planned += [
                Planned(one, own.get("pipeline"), own.get("tuned"), f"{one.source} ({title})")
                for one in requests
            ]
        return planned

    def _request(self, name: str, source: Path, words: dict[str, Any]) -> BuildRequest:
        try:
            return make_request(source, **words)
        except InputError as error:
            raise self._placed(error, name, source, words) from None

    def _placed(
        self, error: InputError, name: str, source: Path, words: Mapping[str, Any]
    ) -> InputError:
        """The error with the line of the key that alone causes it, otherwise of the target."""
        line = self.lines.of("target", name)
        for key, value in words.items():
            try:
                make_request(source, **{key: value})
            except InputError as other:
                if other.message == error.message:
                    line = self.lines.of("target", name, key) or self.lines.of("defaults", key)
        return InputError(f"{self._place(line)}: error: {error.message}", hint=error.hint)

    def _inputs(self, name: str, patterns: list[str]) -> list[Path]:
        """The files of the patterns, in order; the files of one pattern are sorted."""
        from aotc.many.patterns import find_files

        found: list[str] = []
        for pattern in patterns:
            if not glob.has_magic(pattern) or os.path.exists(self.path.parent / pattern):  # noqa: PTH110
                found.append(pattern)
                continue
            try:
                files = find_files(pattern, self.path.parent)
            except InputError as error:
                self._fail(error.message, ("target", name, "inputs"))
            if not files:
                self._fail(f"no file is '{pattern}'.", ("target", name, "inputs"))
            found += files
        if not found:
            self._fail("'inputs' is empty.", ("target", name, "inputs"))
        return [Path(self._here(file)) for file in unique(found)]

    def _value(self, key: str, value: Any) -> Any:
        """The value for `make_request`, with paths relative to the current folder."""
        if key == "out":
            return self._here(value) + ("/" if value.endswith("/") else "")
        if key in ("weights", "tuned"):
            return Path(self._here(value))
        if key == "pipeline" and value.startswith("@"):
            return f"@{self._here(value[1:])}"
        if key == "frontend_options":
            return [f"{option}={text}" for option, text in value.items()]
        return _listed(value) if KEYS[key] == _TEXTS else value

    def _folder_for(self, name: str, out: str, host: Any) -> str:
        """The output folder; each of several host targets has its own."""
        if os.path.lexists(out) and not Path(out).is_dir():
            self._fail(
                "'out' is a file, and 'target' has several: write a directory.",
                ("target", name, "out"),
            )
        return f"{out.rstrip('/')}/{host}/"

    def _here(self, path: str) -> str:
        return os.path.relpath(self.path.parent / path)

    def _fail(self, message: str, place: tuple[str, ...]) -> NoReturn:
        line = self.lines.of(*place) or self.lines.of(*place[:-1])
        raise InputError(f"{self._place(line)}: error: {message}")

    def _place(self, line: int | None) -> str:
        return f"{os.path.relpath(self.path)}:{line or 1}"

    def check(self, tables: Mapping[str, Any]) -> None:
        """Raises one InputError for all unknown keys and values of the wrong type."""
        problems: list[tuple[int, str]] = []

        def note(message: str, *place: str) -> None:
            line = self.lines.of(*place) or self.lines.of(*place[:-1]) or 0
            problems.append((line, f"{self._place(line)}: error: {message}"))

        for key, table in tables.items():
            if key not in ("defaults", "target") or not isinstance(table, dict):
                note(_unknown(key, ("[defaults]", "[target.NAME]")), key)
        if not isinstance(tables.get("target"), dict) or not tables["target"]:
            note("there is no [target.NAME].", "target")
        for section, table in _sections(tables):
            if not isinstance(table, dict):
                note(f"'{section[-1]}' is no table: write [target.{section[-1]}].", *section)
                continue
            known = [key for key in KEYS if key != "inputs" or section[0] == "target"]
            for key, value in table.items():
                problem = _problem_of(key, value, known)
                if problem is not None:
                    note(problem, *section, key)
            if section[0] == "target" and "inputs" not in table:
                note(f"target '{section[1]}' has no 'inputs'.", *section)
        if problems:
            raise InputError("\n".join(text for _, text in sorted(problems)))


def _sections(tables: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    if isinstance(tables.get("defaults"), dict):
        found.append((("defaults",), tables["defaults"]))
    if isinstance(tables.get("target"), dict):
        found += [(("target", name), table) for name, table in tables["target"].items()]
    return found


def _problem_of(key: str, value: Any, known: Sequence[str]) -> str | None:
    if key not in known:
        return _unknown(key, known)
    if "\0" in "".join(_texts_in(value)):
        return f"'{key}' has a NUL character."
    if not _fits(KEYS[key], value):
        return f"'{key}' is {KEYS[key]}, not {value!r}."
    if key in ("inputs", "out") and "-" in _listed(value):
        return f"'{key}' names files: '-' is for the command line."
    return None


def _unknown(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=2, cutoff=0.6)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"unknown key '{key}'.{hint} Known: {', '.join(known)}."


def _fits(kind: str, value: Any) -> bool:
    if kind == _TEXTS:
        return all(isinstance(one, str) for one in _listed(value))
    if kind == _TABLE:
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    types = {_TEXT: str, _FLAG: bool, _NUMBER: int}
    return isinstance(value, types[kind]) and (kind == _FLAG or not isinstance(value, bool))


def _texts_in(value: Any) -> list[str]:
    found = [*value, *value.values()] if isinstance(value, dict) else _listed(value)
    return [one for one in found if isinstance(one, str)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def find_project(folder: Path) -> Path | None:
    """The aotc.toml of `folder`, or of the nearest folder above that has one."""
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        if (place / NAME).is_file():
            return place / NAME
    return None


def read_project(path: Path) -> Project:
    """Reads an aotc.toml. Raises InputError with the place of the problem."""
    import tomllib

    from aotc.many.toml_lines import Lines, line_of_error

    shown = os.path.relpath(path)
    text = read_text(path, f"'{shown}'")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, message = line_of_error(str(error), text)
        raise InputError(f"{shown}:{line}: error: {message}") from None
    except ValueError as error:  # raised by Python, for a number or a date
        raise InputError(f"{shown}: error: a value cannot be read: {error}.") from None
    except RecursionError:
        raise InputError(f"{shown}: error: a value is nested too deeply.") from None
    project = Project(path, Lines(text), tables.get("defaults", {}), tables.get("target", {}))
    project.check(tables)
    return project


def chosen_targets(words: Sequence[Path]) -> tuple[Project, list[str]] | None:
    """The targets that the command's words name, or all targets without words; None if the words
    are files. Raises InputError if they are neither."""
    # A folder is not an input: it may have the name of a target.
    if any(str(word) == "-" or (word.exists() and not word.is_dir()) for word in words):
        return None
    path = find_project(Path())
    if path is None:
        if words:
            return None
        raise InputError(
            f"Nothing to build: no input is named, and there is no {NAME} here or above.",
            hint="aotc build INPUT.mlir; aotc build --help tells the rest.",
        )
    names = [str(word) for word in words]
    if names and all(word.suffix or len(word.parts) > 1 for word in words):
        return None  # they look like files, and are reported as missing files
    project = read_project(path)
    unknown = [name for name in names if name not in project.targets]
    if unknown:
        near = difflib.get_close_matches(unknown[0], project.targets, n=2, cutoff=0.6)
        raise InputError(
            f"'{unknown[0]}' is no file, and no target of {os.path.relpath(path)}."
            + (f" Did you mean {' or '.join(near)}?" if near else "")
            + f" Targets: {', '.join(project.targets)}."
        )
    return project, names or list(project.targets)
