"""`Exploration` → one HTML file: the templates with the compressed data."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from aotc.explore.facts import BufferFacts, Copy, KernelFacts, MatmulFacts
from aotc.explore.text import Line, Text
from aotc.explore.timeline import Run
from aotc.toolchain import data_dir

# Lines per compressed block of the line table: the browser decompresses only those it shows.
_CHUNK = 20_000
_ORIGINS = "\x1f"
# The placeholders in the template for the module's name and the data; and for styles and scripts.
_TITLE, _DATA = "<!-- aotc:title -->", "<!-- aotc:data -->"
_LINKED = re.compile(r'<link rel="stylesheet" href="([\w.]+)">|<script src="([\w.]+)"></script>')


class ImageFacts(Struct, frozen=True):
    """A cubin or PTX of a gpu.module, and its size in bytes."""

    unit: str
    kind: str
    chip: str
    bytes: int


class Decision(Struct, frozen=True):
    """A remark of --explain."""

    step: str
    place: str
    line: int | None
    text: str


class Exploration(Struct, frozen=True):
    """The data of a page about one build. `chips` are as in messages; `stages` are the seconds of
    each stage; `notes` say what is missing, and why."""

    title: str
    aotc: str
    target: str
    chips: str
    tools: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, float], ...]
    texts: tuple[Text, ...]
    kernels: tuple[KernelFacts, ...]
    matmuls: tuple[MatmulFacts, ...]
    images: tuple[ImageFacts, ...]
    buffers: tuple[BufferFacts, ...]
    copies: tuple[Copy, ...]
    decisions: tuple[Decision, ...]
    notes: tuple[str, ...]
    run: Run | None


def page_of(exploration: Exploration) -> str:
    """The page, as text."""
    folder = data_dir("templates") / "explore"

    def inlined(found: re.Match[str]) -> str:
        text = (folder / (found[1] or found[2])).read_text(encoding="utf-8")
        return f"<style>\n{text}</style>" if found[1] else _script(text)

    template = (folder / "page.html").read_text(encoding="utf-8")
    # The templates first, so that inserted data is not scanned.
    template = _LINKED.sub(inlined, template)
    before, _, after = template.partition(_DATA)
    data = "\n".join(_blobs(exploration))
    return before.replace(_TITLE, html.escape(exploration.title)) + data + after


def _script(text: str) -> str:
    # A browser ends a script at this text, also inside a string.
    text = text.replace("</script", "<\\/script")
    return f"<script>\n{text}</script>"


def _blobs(exploration: Exploration) -> list[str]:
    table = _LineTable()
    runs = [table.runs_of(text.lines) for text in exploration.texts]
    facts: dict[str, Any] = {
        name: msgspec.to_builtins(getattr(exploration, name))
        for name in Exploration.__struct_fields__
        if name != "texts"
    }
    facts["chunk"] = _CHUNK
    facts["texts"] = [
        {
            **{name: getattr(text, name) for name in Text.__struct_fields__ if name != "lines"},
            "count": len(text.lines),
            "bytes": text.bytes,
        }
        for text in exploration.texts
    ]
    return [
        _blob("facts", _json(facts)),
        *(_blob(f"text-{number}", _json(one)) for number, one in enumerate(runs)),
        *(_blob(f"lines-{number}", chunk) for number, chunk in enumerate(table.chunks())),
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _blob(name: str, text: str) -> str:
    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>'


class _LineTable:
    """A table of distinct lines with their origins, in the order of first occurrence.

    A pass leaves most lines unchanged: a text is then a few runs of lines of the table.
    """

    def __init__(self) -> None:
        self._numbers: dict[Line, int] = {}

    def runs_of(self, lines: Sequence[Line]) -> list[int]:
        """The text as pairs of first line and count, one per run."""
        runs: list[int] = []
        for line in lines:
            number = self._numbers.setdefault(line, len(self._numbers))
            if runs and runs[-2] + runs[-1] == number:
                runs[-1] += 1
            else:
                runs += [number, 1]
        return runs

    def chunks(self) -> list[str]:
        rows = [
            f"{line.text}{_ORIGINS}{' '.join(f'{text}:{number}' for text, number in line.origins)}"
            for line in self._numbers
        ]
        return ["\n".join(rows[at : at + _CHUNK]) for at in range(0, len(rows), _CHUNK)]
