"""Pages of the reference that are made of something else, as Markdown.

`generated(source)` has what stands for `<!-- generated: SOURCE -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
# A rule, and the title of the declarations below.
_SECTION = re.compile(r"^// -{60,}\n// (.+)\n", re.MULTILINE)


def generated(source: str) -> str:
    """The Markdown for a C header, a JSON schema, or `header of MODULE.mlir`."""
    if source.startswith("header of "):
        return _c(_header_of(REPOSITORY / source.removeprefix("header of ")))
    text = (REPOSITORY / source).read_text(encoding="utf-8")
    if source.endswith(".h"):
        return _sections(text)
    return "\n".join(_schema(json.loads(text)))


def _header_of(module: Path) -> str:
    from tempfile import TemporaryDirectory

    import aotc

    with TemporaryDirectory() as folder:
        return aotc.build(module, emit="header", out=f"{folder}/").path.read_text()


def _sections(header: str) -> str:
    """The header's text, divided where it has a title."""
    first, *others = _SECTION.split(header)
    titled = zip(others[::2], others[1::2], strict=True)
    return _c(first) + "".join(f"\n### {title}\n\n{_c(text)}" for title, text in titled)


def _c(text: str) -> str:
    return f"```c\n{text.strip()}\n```\n"


def _schema(schema: Mapping[str, Any]) -> Iterator[str]:
    """A table of fields for the schema's object, and for each object that it defines."""
    yield from _object("The whole", schema)
    for name, definition in schema.get("$defs", {}).items():
        yield from _object(name, definition)


def _object(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if "properties" not in schema:
        yield from (f"## {name}", "", f"{_type(schema)}. {schema.get('description', '')}", "")
        return
    yield from (f"## {name}", "", schema.get("description", ""), "")
    yield from ("| field | type | |", "|---|---|---|")
    inner = []
    for field, value in schema["properties"].items():
        nested = [one for one in _alternatives(value) if "properties" in one]
        inner += [(f"{name}, {field}", one) for one in nested]
        optional = "" if field in schema.get("required", ()) else " Optional."
        description = value.get("description", "").replace("|", "\\|")
        yield f"| `{field}` | {_type(value)} | {description}{optional} |"
    yield ""
    for title, one in inner:
        yield from _object(title, one)


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemas that a value may have, those of a list's elements among them."""
    found = []
    for one in (schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        found.append(one)
        found += [one["items"]] if isinstance(one.get("items"), dict) else []
    return found


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        # Of a definition, or of a field of one: #/$defs/value/properties/dtype
        _, _, name, *field = schema["$ref"].split("/")
        return (f"as `{field[-1]}` of " if field else "") + f"[{name}](#{name})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(_type(choice) for choice in choices)
    types = schema.get("type", "any")
    words = [types] if isinstance(types, str) else list(types)
    if "array" in words and isinstance(schema.get("items"), dict):
        words[words.index("array")] = f"array of {_type(schema['items'])}"
    return " or ".join(words)
