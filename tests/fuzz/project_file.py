"""Changes of an aotc.toml: of its keys, values and lines, or of bytes."""

from __future__ import annotations

import re
from random import Random

from fuzz.mutators import mutate_bytes, number, several

_VALUES = (
    *('""', '"x"', '"-"', '"/"', '".."', '"*"', '"**"', '"["', '"a\\u0000b"', '"é"', '"\\n"', "[]"),
    *(
        '[""]',
        '["sm_90", 3]',
        "[[]]",
        "{}",
        '{ a = "b" }',
        "true",
        "false",
        "0",
        "-1",
        "3.5",
        "nan",
    ),
    *(
        "1979-05-27",
        '"sm_80,,"',
        '"native"',
        '"none"',
        '"out"',
        '"out/out/"',
        '"module.mlir"',
        "0x10",
    ),
    *(
        '"builtin.module()"',
        '"@nowhere"',
        '"1x1x1x1"',
        '"0x0"',
        '"32"',
        '"99999999999x1"',
        '"shared"',
    ),
    '"' + "long" * 2000 + '"',
)
_VALUE = re.compile(r"(?<== ).*$", re.MULTILINE)
_KEY = re.compile(r"^\w+(?= =)", re.MULTILINE)
_STRING = re.compile(r'"[^"\n]*"')
_TABLE = re.compile(r"^\[.*\]$", re.MULTILINE)
_KEYS = (
    *(
        "inputs",
        "emit",
        "chips",
        "target",
        "entries",
        "warnings",
        "out",
        "weights",
        "ptx",
        "prefix",
    ),
    *("pipeline", "memory", "block", "tuned", "runtime", "frontend", "debug", "cpu_kernels"),
    *("allow_tf32", "optimization", "frontend_options", "nothing", '""', '"a b"', "a.b"),
)
_TABLES = (
    *("[target]", "[target.'']", '[target."a b"]', "[[target]]", "[defaults.x]", "[other]", "[x"),
    *("[target.'a/b']", "[target.one]", "[target.one.two]", "[target.'..']"),
)


def mutate_project(text: str, random: Random) -> bytes:
    """The text with some changes."""
    if random.random() < 0.15:
        return mutate_bytes(text.encode(), random)
    return several(text, _CHANGES, random).encode()


def _substitute(pattern: re.Pattern[str], to: str, text: str, random: Random) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = random.choice(places)
    return text[: place.start()] + to + text[place.end() :]


def _change_value(text: str, random: Random) -> str:
    value = random.choice((*_VALUES, *_VALUE.findall(text), str(number(random))))
    return _substitute(_VALUE, value, text, random)


def _change_string(text: str, random: Random) -> str:
    return _substitute(_STRING, random.choice(_VALUES), text, random)


def _change_key(text: str, random: Random) -> str:
    return _substitute(_KEY, random.choice(_KEYS), text, random)


def _add_key(text: str, random: Random) -> str:
    line = f"{random.choice(_KEYS)} = {random.choice(_VALUES)}\n"
    at = random.choice([found.end() for found in re.finditer("\n", text)] or [0])
    return text[:at] + line + text[at:]


def _change_table(text: str, random: Random) -> str:
    return _substitute(_TABLE, random.choice(_TABLES), text, random)


def _change_lines(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, to = random.randrange(len(lines)), random.randrange(len(lines) + 1)
    some = lines[at : at + random.choice((1, 1, 3))]
    if random.random() < 0.5:
        lines[at : at + len(some)] = []
    lines[to:to] = some * random.choice((0, 1, 1, 500))
    return "".join(lines)


_CHANGES = (
    *(_change_value, _change_value, _change_value, _change_string, _change_string, _change_key),
    *(_add_key, _add_key, _change_table, _change_lines),
)
