"""Manual pages of the command line, from what click knows of it.

    python docs/tools/man.py [FOLDER]

writes aotc.1, and aotc-COMMAND.1 for each command, into FOLDER (docs/man). The wheel installs
those of docs/man into share/man/man1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from aotc.cli import command_line
from aotc.errors import EXIT_INPUT, EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_OK, EXIT_TOOL

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = REPOSITORY / "docs" / "man"
_EXIT_CODES = {
    EXIT_OK: "It is done.",
    EXIT_INPUT: "The input, or the usage, is wrong.",
    EXIT_TOOL: "A tool, or a device, is missing or failed.",
    EXIT_INTERNAL: "A bug or a known limit of aotc.",
    EXIT_INTERRUPTED: "It was interrupted.",
}


def pages() -> dict[str, str]:
    """The text of each page, in roff, by the name of its file."""
    root = click.Context(command_line, info_name="aotc", **command_line.context_settings)
    commands = _commands(root)
    names = ["aotc", *(f"aotc-{context.info_name}" for context in commands)]
    return {
        f"{name}.1": "\n".join(_page(name, context, names)) + "\n"
        for name, context in zip(names, [root, *commands], strict=True)
    }


def _commands(context: click.Context) -> list[click.Context]:
    """The contexts of a group's commands; none for a command that is no group."""
    group = context.command
    if not isinstance(group, click.Group):
        return []
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append(click.Context(command, info_name=name, parent=context))
    return found


def _page(name: str, context: click.Context, names: list[str]) -> Iterator[str]:
    summary = context.command.get_short_help_str(limit=1000).rstrip(".")
    yield f'.TH "{_quote(name.upper())}" "1" "" "aotc" "aotc"'
    yield ".SH NAME"
    yield f"{_quote(name)} \\- {_quote(summary)}"
    yield ".SH SYNOPSIS"
    yield from _usage(context)
    yield ".SH DESCRIPTION"
    yield from _description(context.command)
    yield ".SH OPTIONS"
    yield from _options(context)
    inner = _commands(context)
    if inner:
        yield ".SH COMMANDS"
    for one in inner:
        yield from _command(one, is_page=context.parent is None)
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES.items():
        yield from (".TP", f".B {code}", _quote(meaning))
    yield ".SH SEE ALSO"
    others = [f".BR {_quote(other)} (1)" for other in names if other != name]
    yield ",\n".join(others)


def _command(context: click.Context, *, is_page: bool) -> Iterator[str]:
    """A command within the page of its group: all of it, unless it has a page of its own."""
    if is_page:
        yield from (".TP", f".BR aotc\\-{_quote(context.info_name or '')} (1)")
        yield _quote(context.command.get_short_help_str(limit=1000))
        return
    yield f".SS {_quote(context.info_name or '')}"
    yield from _usage(context)
    yield ".PP"
    yield from _description(context.command)
    yield from _options(context)


def _usage(context: click.Context) -> Iterator[str]:
    yield f".B {_quote(context.command_path)}"
    yield _quote(" ".join(context.command.collect_usage_pieces(context)))


def _description(command: click.Command) -> Iterator[str]:
    """Its paragraphs; what follows click's mark \\b stays as it is set."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        if paragraph.startswith("\b"):
            lines = paragraph.removeprefix("\b").strip("\n").splitlines()
            yield from (".nf", *map(_quote, lines), ".fi")
        else:
            yield from map(_quote, paragraph.splitlines())


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:  # arguments are in the usage
            names, meaning = record
            yield from (".TP", f".B {_quote(names)}", _quote(meaning))


def _quote(text: str) -> str:
    """The text, without what roff reads as its own: backslashes, hyphens, a leading dot."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else PAGES
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1"):
        old.unlink()
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
