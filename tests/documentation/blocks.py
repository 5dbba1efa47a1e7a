"""The fenced blocks of README.md, docs/ and the samples, and the commands in them.

A block's language says what it is: `sh` has commands, `console` commands behind `$` with what they
print (`...` stands for any lines, or any characters in a line), any other is none. HTML comments
directly before a block say more:

    <!-- file: NAME -->        the block is a file that the page's commands use
    <!-- before: COMMAND -->   what prepares the block, and would only distract a reader
    <!-- needs: NAME -->       the block is run where the Python package, or the program, is there
    <!-- not run: REASON -->   the block is not run; its commands are checked (`wrong_words`)
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from helpers.command import REPOSITORY

from aotc.cli import command_line

PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(path for path in (REPOSITORY / "docs").rglob("*.md") if "reference" not in path.parts),
    *sorted((REPOSITORY / "samples").rglob("README.md")),
]
LANGUAGES = (
    *("sh", "console", "text", "mlir", "c", "cpp", "cmake", "make", "ninja"),
    *("nginx", "python", "toml", "json", "lua"),
)
_BLOCK = re.compile(
    r"(?P<marks>(?:^<!-- .* -->\n+)*)^```(?P<language>\S*).*\n(?P<text>(?:.*\n)*?)^```$",
    re.MULTILINE,
)
_MARK = re.compile(r"^<!-- (file|before|needs|not run): (.+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A line of a shell, and what it prints (None: not said)."""

    text: str
    expected: tuple[str, ...] | None


@dataclass(frozen=True)
class Block:
    """A fenced block: its place, language and text, and the marks before it."""

    page: Path
    line: int
    language: str
    text: str
    file: str | None
    before: tuple[str, ...]
    needs: tuple[str, ...]
    not_run: str | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    def commands(self) -> list[Command]:
        if self.language == "console":
            return list(_console(self.text))
        if self.language == "sh":
            return [Command(line, None) for line in _lines(self.text)]
        return []


def blocks(page: Path) -> list[Block]:
    return list(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        marks = _MARK.findall(match["marks"])

        def values(name: str, marks: list[tuple[str, str]] = marks) -> tuple[str, ...]:
            return tuple(value for mark, value in marks if mark == name)

        yield Block(
            page,
            text.count("\n", 0, match.start("language")) + 1,
            match["language"],
            match["text"],
            next(iter(values("file")), None),
            values("before"),
            values("needs"),
            next(iter(values("not run")), None),
        )


def _console(text: str) -> Iterator[Command]:
    first, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not first, f"a console block begins with '$ ': {first}"
    for part in parts:
        command, *expected = part.splitlines()
        yield Command(command, tuple(expected))


def _lines(text: str) -> Iterator[str]:
    """The lines of a script, with those that continue them."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def pattern(expected: tuple[str, ...]) -> str:
    """A regular expression for what a command prints."""
    return "".join(_line_pattern(line) for line in expected)


def _line_pattern(line: str) -> str:
    if line == "...":
        return "(?:[^\n]*\n)*"
    return "[^\n]*".join(re.escape(part) for part in line.split("...")) + "\n"


# --- Commands that are not run ---------------------------------------------------------


def wrong_words(line: str, files: Collection[str] = ()) -> list[str]:
    """What is wrong with a line of commands, as far as that is known without running it: commands
    and options of aotc, targets of make, Python's modules and files, extras of aotc. `files` are
    there beside the repository's."""
    found = []
    for words in _simple_commands(line):
        name, *arguments = words
        name = name.removeprefix("env/bin/").removeprefix(".venv/bin/")
        if name == "aotc":
            found += _wrong_for_aotc(arguments)
        elif name == "make":
            found += [f"make {word}" for word in _targets(arguments) if not _is_target(word)]
        elif name in ("python", "python3"):
            found += _wrong_for_python(arguments, files)
        elif name == "pip":
            extras = re.findall(r"aotc\[([\w,]+)\]", " ".join(arguments))
            known = _project()["optional-dependencies"]
            found += [f"aotc[{extra}]" for extra in extras if not {*extra.split(",")} <= {*known}]
    return found


def _simple_commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.wordchars += "*{}$:,%@+[]\\"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if re.fullmatch(r"[;&|()]+", word):
            if words:
                yield words
            words = []
        elif words or not re.fullmatch(r"[A-Z_]+=.*", word):  # a variable, for the command
            words.append(word)


def _wrong_for_aotc(arguments: list[str]) -> list[str]:
    # A command keeps the help option of its first context.
    context = click.Context(command_line, info_name="aotc", **command_line.context_settings)
    command: click.Command = command_line
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        inner = command.get_command(context, arguments[0])
        if inner is None:
            return [f"{context.command_path} {arguments[0]}"]
        command, arguments = inner, arguments[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    given = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = [word.partition("=")[0] for word in given if re.match(r"-\w|--\w", word)]
    return [
        f"{context.command_path} {option}"
        for option in options
        if option not in known
        and option not in ("-h", "--help")
        # A letter with its value: -O1, -Wno-unused.
        and not (option[1] != "-" and option[:2] in known)
    ]


def _targets(arguments: list[str]) -> list[str]:
    return [word for word in arguments if "=" not in word and not word.startswith("-")]


def _is_target(word: str) -> bool:
    makefile = (REPOSITORY / "Makefile").read_text()
    return re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE) is not None


def _wrong_for_python(arguments: list[str], files: Collection[str]) -> list[str]:
    if arguments[:1] == ["-m"]:
        module = arguments[1]
        path = REPOSITORY / module.replace(".", "/")
        is_there = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        return [] if is_there or module in ("venv", "pytest") else [f"python -m {module}"]
    file = next((word for word in arguments if word.endswith(".py")), None)
    is_there = file is None or file in files or (REPOSITORY / file).exists()
    return [] if is_there else [f"python {file}"]


def _project() -> dict[str, dict[str, object]]:
    project: dict[str, dict[str, object]] = tomllib.loads(
        (REPOSITORY / "pyproject.toml").read_text()
    )["project"]
    return project
