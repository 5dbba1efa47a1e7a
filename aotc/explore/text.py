"""`Text`: the module at one point of a build, and the origins of its lines.

The texts form a graph. The lines of a text come from lines of its parents: MLIR that passes changed
comes from the input; LLVM IR, PTX and machine code come from the lowered device module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

# A line of a text: the text's index among all texts, and the one-based line number.
Origin = tuple[int, int]


class Line(Struct, frozen=True):
    """A line, and the lines of other texts that it was made from, in order."""

    text: str
    origins: tuple[Origin, ...] = ()


class Text(Struct, frozen=True):
    """The module, or one gpu.module, at one point of a build.

    `stage` is the artifact's kind as in `--emit`, or the stage that ran the pass `title`. `unit` is
    the gpu.module and `chip` the chip that it is for, if it is for one. `language` is mlir, llvm,
    ptx, sass or text. A pass has its duration in seconds, and its reason if the plan gives one.
    `is_final` is true for artifacts, as opposed to the texts after passes.
    """

    title: str
    stage: str
    language: str
    lines: tuple[Line, ...]
    unit: str = ""
    chip: str = ""
    reason: str = ""
    seconds: float | None = None
    is_final: bool = False

    @property
    def bytes(self) -> int:
        """The size of the text in UTF-8."""
        return sum(len(line.text.encode()) + 1 for line in self.lines)


# Maps files of locations to the texts whose lines they refer to.
Files = Mapping[str, int]

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_LEAF = re.compile(r'(#loc\d*)|"((?:[^"\\]|\\.)*)":(\d+)')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def located_mlir(assembly: str, files: Files) -> tuple[Line, ...]:
    """The lines of MLIR text that was printed with debug information, without the locations.

    The location of an operation with regions follows its last line, and applies to its first line,
    too. If a location refers to several texts, the last of these is used: it is the nearest.
    """
    rows, aliases = [], {}
    for row in assembly.split("\n"):
        if row.startswith("#loc") and (alias := _ALIAS.match(row)) is not None:
            aliases[alias[1]] = alias[2]
        else:
            rows.append(row)
    while rows and not rows[-1]:
        rows.pop()
    known: dict[str, frozenset[Origin]] = {}
    found: list[tuple[str, frozenset[Origin]]] = []
    opened: list[list[int]] = []
    for number, row in enumerate(rows):
        text, location = _without_locations(row)
        origins = _leaves(location, aliases, files, known) if location else frozenset()
        found.append((text, origins))
        closes, opens = text.lstrip().startswith("}"), text.endswith("{")
        group = opened.pop() if closes and opened else []
        if opens:
            opened.append([*group, number])
        elif closes and origins:
            for one in group:
                found[one] = (found[one][0], found[one][1] or origins)
    return tuple(Line(text, _nearest(origins)) for text, origins in found)


def _nearest(origins: Iterable[Origin]) -> tuple[Origin, ...]:
    ordered = sorted(origins)
    return tuple(one for one in ordered if one[0] == ordered[-1][0])


def _without_locations(row: str) -> tuple[str, str]:
    """A printed line without its locations; and the last location, if the line ends with it."""
    if "loc(" not in row:
        return row, ""
    last = ""
    parts, at = [], 0
    while (begin := row.find("loc(", at)) >= 0:
        if begin and (row[begin - 1].isalnum() or row[begin - 1] in "_.$\"'"):
            parts.append(row[at : begin + 4])
            at = begin + 4
            continue
        end = _closing(row, begin + 3)
        parts.append(row[at:begin].removesuffix(" "))
        last, at = row[begin + 4 : end], end + 1
    parts.append(row[at:])
    rest = row[at:].strip()
    return "".join(parts), last if not rest else ""


def _closing(row: str, opening: int) -> int:
    """The index of the parenthesis that closes the one at `opening`."""
    depth, at = 0, opening
    while at < len(row):
        sign = row[at]
        if sign == '"' and (string := _STRING.match(row, at)) is not None:
            at = string.end()
            continue
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return at
        at += 1
    return len(row)


def _leaves(
    location: str, aliases: Mapping[str, str], files: Files, known: dict[str, frozenset[Origin]]
) -> frozenset[Origin]:
    """The lines of known texts that a location refers to."""
    if location in known:
        return known[location]
    known[location] = frozenset()  # ends a cycle
    found: set[Origin] = set()
    for alias, file, line in _LEAF.findall(location):
        if alias:
            found |= _leaves(alias, aliases, files, known)
            found |= _leaves(aliases.get(alias, ""), aliases, files, known)
        elif file in files and line != "0":
            found.add((files[file], int(line)))
    known[location] = frozenset(found)
    return known[location]


_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(\w+)\((.*)\)$")
_SCOPE_FILE = re.compile(r"\bfile: !(\d+)")
_PARENT = re.compile(r"\bscope: !(\d+)")
_FILE_NAME = re.compile(r'filename: "((?:[^"\\]|\\.)*)"')


def located_llvm(assembly: str, files: Files) -> tuple[Line, ...]:
    """The lines of LLVM IR with their origins by debug information, which the text keeps."""
    nodes = {
        found[1]: (found[2], found[3])
        for row in assembly.split("\n")
        if row.startswith("!") and (found := _NODE.match(row)) is not None
    }

    def file_of(number: str) -> str:
        for _ in range(64):  # scopes are nested, and damaged ones may form a cycle
            _, body = nodes.get(number, ("", ""))
            if (file := _SCOPE_FILE.search(body)) is not None:
                named = _FILE_NAME.search(nodes.get(file[1], ("", ""))[1])
                return named[1] if named else ""
            if (parent := _PARENT.search(body)) is None:
                return ""
            number = parent[1]
        return ""

    places: dict[str, tuple[Origin, ...]] = {}
    for number, (kind, body) in nodes.items():
        line = re.search(r"\bline: (\d+)", body)
        if kind not in ("DILocation", "DISubprogram") or line is None or line[1] == "0":
            continue
        file = file_of(_PARENT.search(body)[1]) if kind == "DILocation" else file_of(number)  # type: ignore[index]
        if file in files:
            places[number] = ((files[file], int(line[1])),)
    lines = []
    for row in assembly.rstrip("\n").split("\n"):
        found = re.search(r"!dbg !(\d+)", row) if "!dbg" in row else None
        lines.append(Line(row, places.get(found[1], ()) if found else ()))
    return tuple(lines)


_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_PTX_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')


def located_ptx(assembly: str, files: Files) -> tuple[Line, ...]:
    """The lines of PTX: an instruction comes from the line that the last `.loc` refers to."""
    rows = assembly.rstrip("\n").split("\n")
    numbers = {
        found[1]: index
        for row in rows
        if (found := _PTX_FILE.match(row)) is not None
        and (index := _text_of_file(found[3] or found[2], files)) is not None
    }
    lines, now = [], ()  # type: tuple[list[Line], tuple[Origin, ...]]
    for row in rows:
        if (found := _LOC.match(row)) is not None:
            is_known = found[1] in numbers and found[2] != "0"
            now = ((numbers[found[1]], int(found[2])),) if is_known else ()
        elif row.startswith(("}", ".")):
            now = ()
        is_code = row.startswith(("\t", " ")) and not row.lstrip().startswith(("//", ".file"))
        lines.append(Line(row, now if is_code else ()))
    return tuple(lines)


def _text_of_file(path: str, files: Files) -> int | None:
    return files.get(path, files.get(path.rpartition("/")[2]))


# nvdisasm indents instructions far to the right.
_SASS_MARGIN = re.compile(r"^\s*(/\*[0-9a-f]+\*/)\s+")
_SASS_LINE = re.compile(r'//## File "([^"]*)", line (\d+)')


def located_sass(disassembly: str, files: Files) -> tuple[Line, ...]:
    """The lines of `nvdisasm -g`, without its line markers, which give the origins."""
    lines: list[Line] = []
    now: tuple[Origin, ...] = ()
    for row in disassembly.rstrip("\n").split("\n"):
        if (found := _SASS_LINE.search(row)) is not None:
            index = _text_of_file(found[1], files)
            now = ((index, int(found[2])),) if index is not None and found[2] != "0" else ()
            continue
        if row.startswith((".section", ".text", "//-----")):
            now = ()
        is_code = row.lstrip().startswith("/*") or ";" in row
        lines.append(Line(_SASS_MARGIN.sub(r"  \1  ", row), now if is_code else ()))
    return tuple(lines)


def plain(text: str) -> tuple[Line, ...]:
    """The lines of a text without origins."""
    return tuple(Line(row) for row in text.rstrip("\n").split("\n"))


def number_lines(lines: Sequence[Line], index: int) -> dict[int, int]:
    """Maps operation numbers, which are the origins in text `index`, to their first lines."""
    found: dict[int, int] = {}
    for number, line in enumerate(lines, 1):
        for text, operation in line.origins:
            if text == index:
                found.setdefault(operation, number)
    return found
