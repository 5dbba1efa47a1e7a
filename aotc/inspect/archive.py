"""Static libraries (`ar`): their members.

Source: ar(5) of System V and of 4.4BSD: a line, then members, each after a header of 60 bytes of
text. Long names are in a separate member (`//`, System V) or before the content (`#1/`, BSD).
"""

from __future__ import annotations

from collections.abc import Iterator

from aotc.errors import InputError
from aotc.images.view import View, printable

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
_HEADER = 60
_MOST_MEMBERS = 1 << 17


def members(view: View) -> Iterator[tuple[str, View]]:
    """(name, content) of each member, except the archive's own tables. Raises InputError."""
    if view.starts_with(THIN_MAGIC):
        raise InputError(
            f"{view.name} is a thin archive: it names files, and has nothing of them.",
            hint="Inspect the files themselves (`ar t` lists them).",
        )
    at = len(MAGIC)
    long_names: View | None = None
    for _ in range(_MOST_MEMBERS):
        if at >= view.size:
            return
        header = view.read(at, _HEADER, f"the header of the member at byte {at}")
        if header[58:60] != b"`\n":
            raise view.damaged(f"no member begins at byte {at}")
        digits = header[48:58].strip()
        if not digits.isdigit():
            raise view.damaged(f"the member at byte {at} does not say its size")
        size = int(digits)
        content = view.part(at + _HEADER, size, f"the member at byte {at}")
        at += _HEADER + size + size % 2
        field = header[:16].rstrip(b" ").decode("utf-8", "backslashreplace")
        if field in ("/", "/SYM64/") or field.startswith("__.SYMDEF"):
            continue
        if field == "//":
            long_names = content
            continue
        if field.startswith("#1/") and field[3:].isdecimal():
            length = int(field[3:])
            field = (
                content.read(0, length, "a member's name")
                .rstrip(b"\0")
                .decode("utf-8", "backslashreplace")
            )
            content = content.part(length, content.size - length, "a member")
        elif field.startswith("/") and field[1:].isdecimal() and long_names is not None:
            begin = int(field[1:])
            end = long_names.find(b"\n", begin) if begin < long_names.size else -1
            if end < 0:
                raise view.damaged(f"the member before byte {at} has no name")
            field = long_names.read(begin, min(end - begin, 4096), "a member's name").decode(
                "utf-8", "backslashreplace"
            )
        name = field.rstrip("/")
        yield (
            name,
            View(content.data, f"{view.name}({printable(name)})", content.start, content.size),
        )
    raise view.damaged(f"it would have more than {_MOST_MEMBERS} members")
