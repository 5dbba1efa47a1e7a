"""The `fix` pairs in `changes.toml`: replacement of old text by new text.

A pair is a regular expression and a replacement. In the expression, names in braces stand for forms
of MLIR's text (`_FORMS`). In the replacement, `\\1` is a group, and `«name|\\1»` is the result of
the function `name` of `_FUNCTIONS` for these groups.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping

# Angle brackets and their content, which may nest. The bracket of an arrow closes nothing.
_ANGLES = r"<(?:->|[^<>]|<(?:->|[^<>]|<(?:->|[^<>]|<(?:->|[^<>])*>)*>)*>)*>"
_FORMS = {
    "{angles}": _ANGLES,
    "{value}": r"%[\w$.-]+(?:#\d+)?",
    "{type}": rf"!?[\w.]+(?:{_ANGLES})?",
    # A typed pointer: its pointee type, and maybe an address space.
    "{pointer}": rf"(?:!llvm\.|(?<![\w.!]))ptr(?!<\d+>){_ANGLES}",
}
_CALL = re.compile(r"«(\w+)\|([^«»]*)»")
_ALIAS = re.compile(r"^[ \t]*(!\w+)[ \t]*=[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_NAME = re.compile(r"!\w+(?![\w.<])")
_LEVELS = ("dense", "compressed", "singleton")
_PROPERTIES = {"nu": "nonunique", "no": "nonordered"}


class NoFixError(Exception):
    """The new text cannot be derived from the old one."""


@functools.cache
def pattern(find: str) -> re.Pattern[str]:
    """The compiled regular expression of a pair."""
    for name, form in _FORMS.items():
        find = find.replace(name, form)
    return re.compile(find, re.MULTILINE)


def aliases(text: str) -> dict[str, str]:
    """The type aliases of a text (`!name`), with their definitions."""
    return dict(_ALIAS.findall(text))


def apply_fix(found: re.Match[str], replace: str, names: Mapping[str, str]) -> str:
    """The text that replaces `found`. `names` are the type aliases. Raises NoFixError."""

    def call(found: re.Match[str]) -> str:
        given = _NAME.sub(lambda name: names.get(name[0], name[0]), found[2])
        return _FUNCTIONS[found[1]](given)

    return _CALL.sub(call, found.expand(replace.removeprefix("\n")))


def _tensor(text: str) -> str:
    """memref<8x?xf32, LAYOUT> → tensor<8x?xf32>"""
    shape = _inner(text, "memref")
    return f"tensor<{_comma_parts(shape)[0].strip()}>"


def _shape(text: str) -> str:
    """tensor<2x4xf32> → [2, 4]"""
    sizes, _ = _sizes(_comma_parts(_inner(text, "tensor", "memref"))[0])
    if "?" in sizes:
        raise NoFixError
    return f"[{', '.join(sizes)}]"


def _element(text: str) -> str:
    """vector<4xf32> → f32"""
    return _sizes(_inner(text, "vector"))[1]


def _part(text: str) -> str:
    """[0]|vector<2x4xf32> → vector<4xf32>: the type at a position."""
    position, _, vector = text.partition("|")
    sizes, element = _sizes(_inner(vector, "vector"))
    indices = [index for index in position.strip("[] ").split(",") if index.strip()]
    if len(indices) > len(sizes):
        raise NoFixError
    left = sizes[len(indices) :]
    return f"vector<{'x'.join([*left, element])}>" if left else element


def _values(text: str) -> str:
    """[8, %n] → %n"""
    return ", ".join(re.findall(_FORMS["{value}"], text))


def _zeros(text: str) -> str:
    """[@f, @g] → #llvm.zero, #llvm.zero"""
    return ", ".join(["#llvm.zero"] * text.count("@"))


def _opaque(text: str) -> str:
    """!llvm.ptr<f32, 3> → !llvm.ptr<3>"""
    _, space = _pointer_parts(text)
    return f"{'!llvm.' * text.startswith('!llvm.')}ptr{f'<{space}>' if space else ''}"


def _pointee(text: str) -> str:
    """!llvm.ptr<ptr<f32>> → !llvm.ptr"""
    pointee, _ = _pointer_parts(text)
    opaque = pattern("({pointer})").sub(lambda found: _opaque(found[1]), pointee)
    is_short = re.match(r"(?:ptr|struct|array|func|vec|void)\b", opaque)
    return f"!llvm.{opaque}" if is_short else opaque


def _tiles(text: str) -> str:
    """amx.tile_zero : vector<16x64xi8> → x86.amx.tile_zero : !x86.amx.tile<16x64xi8>"""
    text = re.sub(r"(?<!x86\.)\bamx\.", "x86.amx.", text)
    return re.sub(r"(?<![\w.!])vector(?=<[\dx]+x\w+>)", "!x86.amx.tile", text)


def _levels(text: str) -> str:
    """{dimLevelType = ["dense", "compressed"], dimOrdering = affine_map<(i, j) -> (j, i)>} →
    { map = (i, j) -> (j : dense, i : compressed) }"""
    fields = {}
    for part in _comma_parts(text.strip()[1:-1]):
        name, _, value = part.partition("=")
        if name.strip():
            fields[name.strip()] = value.strip()
    levels = re.findall(r'"([\w-]+)"', fields.pop("dimLevelType"))
    ordering = fields.pop("dimOrdering", "")
    if ordering:
        found = re.fullmatch(r"affine_map<\(([^()]*)\)\s*->\s*\(([^()]*)\)>", ordering)
        if found is None:
            raise NoFixError
        dimensions, ordered = (
            [name.strip() for name in found[number].split(",")] for number in (1, 2)
        )
    else:
        dimensions = ordered = [f"d{number}" for number in range(len(levels))]
    if len(ordered) != len(levels):
        raise NoFixError
    pairs = [f"{name} : {_level(level)}" for name, level in zip(ordered, levels, strict=True)]
    parts = [f"map = ({', '.join(dimensions)}) -> ({', '.join(pairs)})"]
    for old, new in (
        ("pointerBitWidth", "posWidth"),
        ("indexBitWidth", "crdWidth"),
        ("posWidth", "posWidth"),
        ("crdWidth", "crdWidth"),
    ):
        if old in fields:
            parts.append(f"{new} = {fields.pop(old)}")
    if fields:
        raise NoFixError
    return f"{{ {', '.join(parts)} }}"


def _level(text: str) -> str:
    kind, *properties = text.split("-")
    if kind not in _LEVELS or not set(properties) <= set(_PROPERTIES):
        raise NoFixError
    names = ", ".join(_PROPERTIES[name] for name in properties)
    return f"{kind}({names})" if names else kind


_FUNCTIONS: dict[str, Callable[[str], str]] = {
    "tensor": _tensor,
    "shape": _shape,
    "element": _element,
    "part": _part,
    "values": _values,
    "zeros": _zeros,
    "opaque": _opaque,
    "pointee": _pointee,
    "tiles": _tiles,
    "levels": _levels,
}


def _inner(text: str, *kinds: str) -> str:
    """The text between the brackets of a type of one of these kinds."""
    kind, _, rest = text.strip().partition("<")
    if kind not in kinds or not rest.endswith(">"):
        raise NoFixError
    return rest[:-1].strip()


def _sizes(text: str) -> tuple[list[str], str]:
    """The sizes and the element type of `2x?xf32`."""
    found = re.fullmatch(r"((?:(?:\d+|\?|\[\d+\])x)*)(.*)", text.strip(), re.DOTALL)
    assert found is not None  # the groups may be empty
    return found[1].split("x")[:-1], found[2]


def _pointer_parts(text: str) -> tuple[str, str]:
    """The pointee type of a pointer, and its address space or an empty string."""
    parts = _comma_parts(text[text.index("<") + 1 : -1])
    return parts[0].strip(), parts[1].strip() if len(parts) > 1 else ""


def _comma_parts(text: str) -> list[str]:
    """The parts of a text between commas that are outside of all brackets."""
    parts, depth = [""], 0
    for token in _tokens(text):
        depth += (token in "<([{") - (token in ">)]}") if len(token) == 1 else 0
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def _tokens(text: str) -> Iterator[str]:
    for found in re.finditer(r"->|.", text, re.DOTALL):
        yield found[0]
