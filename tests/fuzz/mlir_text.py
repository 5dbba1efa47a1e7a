"""Changes of MLIR text: of its tokens, its lines and its nesting.

The same change of every place (all `f32` of a module become `f16`) often gives another valid
module, of one place seldom: both are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from fuzz.mutators import LARGEST, mutate_bytes, number, several

_TYPES = (
    *("f32", "f16", "bf16", "f64", "f80", "f128", "tf32", "i1", "i8", "i16", "i32", "i64", "index"),
    *("i4", "i5", "i128", "si8", "ui32", "i65536", "f8E4M3FN", "f8E5M2", "f4E2M1FN", "f8E8M0FNU"),
    *("complex<f32>", "complex<f64>", "none", "vector<4xf32>", "vector<[4]xf32>", "!llvm.ptr"),
    *("vector<f32>", "memref<?xf32>", "memref<*xf32>", "tensor<4xf32>", "tensor<*xf32>"),
    *("tuple<f32, i32>", "!gpu.async.token", "!llvm.array<4 x f32>", "(f32) -> f32"),
    *('!gpu.mma_matrix<16x16xf16, "AOp">', "memref<4x?xf32, strided<[?, 1], offset: ?>>"),
)
_SCALARS = re.compile(r"\b(?:bf16|tf32|f\d+\w*|[su]?i\d+|index)\b")
# A dimension: in front of the `x` that no name begins with.
_DIMENSION = re.compile(r"(?<=[<x])(?:\d+|\?)(?=x)")
_NUMBER = re.compile(r"(?<![\w.%#@^-])-?\d+(?![\w.])")
_FLOAT = re.compile(r"(?<![\w%#@^])-?\d+\.\d+(?:[eE][-+]?\d+)?")
_OPERATION = re.compile(r'(?<![\w.#!@%$"])[a-z_]+\.[a-z_0-9.]+(?![\w.])')
_VALUE = re.compile(r"%[\w$.-]+")
_SYMBOL = re.compile(r'@(?:[\w$.-]+|"[^"\n]*")')
_ATTRIBUTE = re.compile(r"(?<=[{,\s])[\w.]+\s*=\s*(?:\[[^\]\n]*\]|\"[^\"\n]*\"|[^\s,}<>]+)")
_MEMREF = re.compile(r"\bmemref<([\dx?*]*x)?([\w<>]+?)>")
_KEYWORD = re.compile(r"(?<![\w.%#@!])[a-z_]+(?![\w.])")

_VALUES = (
    *("3", "-1", "0", "true", "unit", "[]", "{}", '""', '"x"', "[1, 2]", '["x"]', "3 : index"),
    *("9223372036854775807 : i64", "18446744073709551616 : i128", "1.0 : f32", "0x7FC00000 : f32"),
    *(
        "@nowhere",
        "@a::@b",
        "f32",
        "() -> ()",
        "affine_map<(d0) -> (d0 floordiv 0)>",
        "loc(unknown)",
    ),
    *("array<i32: 0, 0, 0>", "array<i64>", "array<i32: -1>", "dense<1> : tensor<4xi32>"),
    *("dense<1.0> : tensor<4294967296x4294967296xf32>", "dense<> : tensor<0xi8>", "#gpu.block<x>"),
    *("dense_resource<nothing> : tensor<4xf32>", "sparse<0, 1> : tensor<4xi32>", "strided<[1]>"),
    *('#nvvm.target<chip = "sm_12">', "#gpu.address_space<workgroup>", '"\\00\\FF\\22"'),
    *("affine_map<()[s0] -> (s0 * s0)>", "affine_set<(d0) : (d0 == 0)>", '"' + "x" * 5000 + '"'),
)
_NAMES = (
    *("llvm.emit_c_interface", "aotc.name", "aotc.names", "gpu.kernel", "gpu.container_module"),
    *("gpu.known_block_size", "gpu.known_grid_size", "nvvm.kernel", "nvvm.maxntid", "nvvm.reqntid"),
    *("nvvm.cluster_dim", "llvm.noalias", "llvm.align", "llvm.nocapture", "llvm.byval", "sym_name"),
    *("llvm.data_layout", "llvm.target_triple", "dlti.dl_spec", "mapping", "fastmath", "alignment"),
    *("bufferization.writable", "bufferization.access", "linalg.inplaceable", "lowering_config"),
    *("operandSegmentSizes", "function_type", "sym_visibility", "arg_attrs", "res_attrs", "value"),
)
_SPACES = (
    *("0", "1", "2", "3", "4", "5", "7", "-1", "4294967296", '"x"', "{}", "true", "f32"),
    *("#gpu.address_space<workgroup>", "#gpu.address_space<private>", "#gpu.address_space<global>"),
    *("#nvvm.memory_space<shared>", "strided<[1], offset: ?>", "strided<[0]>", "strided<[-1]>"),
    *("affine_map<(d0) -> (d0 * 2)>", "affine_map<(d0, d1) -> (d1, d0)>", "strided<[?, ?]>"),
)
_SYMBOLS = (
    *('@"a b"', '@"a\\22b"', '@"a\\0Ab"', '@""', '@"\\00"', '@"\\FF"', '@"é"', "@main", "@malloc"),
    *(
        "@int",
        "@memcpy",
        "@_start",
        "@free",
        "@printf",
        "@a.b",
        "@a$b",
        "@__aotc",
        "@mgpuModuleLoad",
    ),
    *(
        "@" + "long" * 100,
        "@" + "long" * 5000,
        "@llvm.memcpy",
        "@stdin",
        "@environ",
        "@help",
        "@out",
    ),
)
# What stands around some lines, and how deep: an opening, and its closing.
_NESTS = (
    ("scf.execute_region {\n", "scf.yield\n}\n"),
    ("module {\n", "}\n"),
    ("%true_n = arith.constant true\nscf.if %true_n {\n", "}\n"),
    ("%c_n = arith.constant 2 : index\nscf.for %i_n = %c_n to %c_n step %c_n {\n", "}\n"),
    ("affine.for %i_n = 0 to 4 {\n", "}\n"),
    ("memref.alloca_scope {\n", "}\n"),
    (
        "%c_n = arith.constant 2 : index\nscf.parallel (%i_n) = (%c_n) to (%c_n) step (%c_n) {\n",
        "}\n",
    ),
)
_DEPTHS = (1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 8, 8, 40, 300, 3000)
_BRACKETS = (("[", "]"), ("{a = ", "}"), ("tuple<", ">"), ("(", ")"), ("complex<", ">"))


def mutate_mlir(text: str, others: Sequence[str], random: Random) -> str:
    """The text with some changes; `others` are modules whose lines may come into it."""

    def splice(text: str, random: Random) -> str:
        other = random.choice(others).splitlines(keepends=True)
        start = random.randrange(len(other))
        chunk = "".join(other[start : start + random.choice((1, 1, 2, 5))])
        at = random.choice([0, *(found.end() for found in re.finditer("\n", text))])
        return text[:at] + chunk + text[at:]

    def change_operation(text: str, random: Random) -> str:
        pool = _OPERATION.findall(random.choice(others))

        def new(old: str) -> str:
            alike = [name for name in pool if name.split(".")[0] == old.split(".")[0]]
            return random.choice(alike or pool or [old])

        return _substitute(_OPERATION, new)(text, random)

    return several(text, (*_CHANGES, splice, change_operation, change_operation), random)


def _substitute(
    pattern: re.Pattern[str], new: Callable[[str], str]
) -> Callable[[str, Random], str]:
    """A change of one token that fits the pattern: there, or everywhere."""

    def change(text: str, random: Random) -> str:
        places = list(pattern.finditer(text))
        if not places:
            return text
        old = random.choice(places)
        to = new(old[0])
        if random.random() < 0.5:
            return text[: old.start()] + to + text[old.end() :]
        return pattern.sub(lambda found: to if found[0] == old[0] else found[0], text)

    return change


def _change_type(text: str, random: Random) -> str:
    def new(old: str) -> str:
        alike = [name for name in _TYPES if name[0] == old[0]]
        return random.choice((random.choice(_TYPES), random.choice(alike or _TYPES)))

    return _substitute(_SCALARS, new)(text, random)


def _change_dimension(text: str, random: Random) -> str:
    def new(old: str) -> str:
        return random.choice(("?", str(number(random)), "0", "1", "1x1", "-1", "[4]", "*"))

    return _substitute(_DIMENSION, new)(text, random)


def _change_number(text: str, random: Random) -> str:
    def new(old: str) -> str:
        return random.choice(("0", "1", "2", "-1", str(number(random)), str(number(random))))

    return _substitute(_NUMBER, new)(text, random)


def _change_float(text: str, random: Random) -> str:
    floats = ("0.0", "-0.0", "1.0e400", "0x7FC00000", "0xFF800000", "1", "1.0e-50")
    return _substitute(_FLOAT, lambda old: random.choice(floats))(text, random)


def _change_value(text: str, random: Random) -> str:
    values = _VALUE.findall(text) or ["%x"]
    return _substitute(_VALUE, lambda old: random.choice(values))(text, random)


def _change_symbol(text: str, random: Random) -> str:
    pool = (*_SYMBOLS, *_SYMBOL.findall(text))
    return _substitute(_SYMBOL, lambda old: random.choice(pool))(text, random)


def _change_keyword(text: str, random: Random) -> str:
    pool = _KEYWORD.findall(text) or ["x"]
    return _substitute(_KEYWORD, lambda old: random.choice(pool))(text, random)


def _change_attribute(text: str, random: Random) -> str:
    def new(old: str) -> str:
        return f"{old.split('=')[0].strip()} = {random.choice(_VALUES)}"

    return _substitute(_ATTRIBUTE, new)(text, random)


def _add_attribute(text: str, random: Random) -> str:
    """To a function, a module or an operation that has some."""
    places = [found.end() for found in re.finditer(r"attributes \{|\)\s*\{(?=\S)|<\{", text)]
    added = f"{random.choice(_NAMES)} = {random.choice(_VALUES)}"
    if random.random() < 0.5 or not places:
        heads = [found.start() for found in re.finditer(r"\{\n", text)]
        if not heads:
            return text
        at = random.choice(heads)
        before = text[:at].rstrip()
        word = " " if before.endswith("}") else " attributes "
        return f"{before}{word}{{{added}}} {text[at:]}"
    at = random.choice(places)
    return f"{text[:at]}{added}, {text[at:]}"


def _change_memref(text: str, random: Random) -> str:
    space = random.choice(_SPACES)
    return _substitute(_MEMREF, lambda old: f"{old[:-1]}, {space}>")(text, random)


def _change_lines(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, count = random.randrange(len(lines)), random.choice((1, 1, 1, 2, 4))
    to = random.randrange(len(lines) + 1)
    some = lines[at : at + count]
    how = random.randrange(4)
    if how == 0:
        lines[at : at + count] = []
    elif how == 1:
        lines[to:to] = some
    elif how == 2:
        lines[at : at + count] = []
        lines[to:to] = some
    else:
        most = LARGEST // max(1, len("".join(some)))
        lines[to:to] = some * min(random.choice((2, 30, 1000)), most)
    return "".join(lines)


def _nest(text: str, random: Random) -> str:
    """Some lines stand in more regions."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, count = random.randrange(len(lines)), random.choice((1, 1, 2, 5))
    opening, closing = random.choice(_NESTS)
    depth = random.choice(_DEPTHS)
    openings = "".join(opening.replace("_n", f"_n{level}") for level in range(depth))
    inner = "".join(lines[at : at + count])
    lines[at : at + count] = [openings, inner, closing * depth]
    return "".join(lines)


def _nest_brackets(text: str, random: Random) -> str:
    """A type or an attribute stands in more brackets."""
    places = list(re.finditer(r"(?<== )[^\s,}]+|\bf32\b", text))
    if not places:
        return text
    place, (opening, closing) = random.choice(places), random.choice(_BRACKETS)
    depth = random.choice(_DEPTHS)
    new = opening * depth + place[0] + closing * depth
    return text[: place.start()] + new + text[place.end() :]


def _delete_token(text: str, random: Random) -> str:
    places = list(re.finditer(r"\w+|[^\w\s]", text))
    if not places:
        return text
    place = random.choice(places)
    return text[: place.start()] + text[place.end() :]


def _change_bytes(text: str, random: Random) -> str:
    return mutate_bytes(text.encode(errors="surrogateescape"), random).decode(
        errors="surrogateescape"
    )


_CHANGES = (
    *(_change_type, _change_type, _change_dimension, _change_dimension, _change_number),
    *(_change_number, _change_value, _change_value, _change_symbol, _change_attribute),
    *(_add_attribute, _add_attribute, _change_memref, _change_memref, _change_lines),
    *(_change_lines, _change_lines, _nest, _nest_brackets, _delete_token, _change_bytes),
    *(_change_float, _change_keyword),
)
