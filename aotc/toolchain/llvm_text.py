"""LLVM IR text as the MLIR bindings print it → text that the older clang accepts.

The bindings are built with a newer LLVM than clang, and they exchange LLVM IR as text.
`downlevel` handles each difference between the two, in one table, by the first version
that reads the new spelling. What the old syntax cannot express is left unchanged: clang
then rejects it (`explain_refusal` finds the line), or treats an intrinsic that it does not
know as an external function (`unknown_intrinsics` finds it in the output).

The text is processed line by line, and only outside quotes and comments. A line's quotes
are balanced: LLVM writes a quote inside a string as `\\22`.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from array import array
from collections.abc import Callable
from fractions import Fraction

from msgspec import Struct

from aotc.errors import InternalError
from aotc.toolchain.version import Version

# --- Floating-point literals ---------------------------------------------------------
#
# LLVM 24 prints `float f0x322BCC77`, `double +inf`, `half -qnan`, `float +nan(0x1)`,
# `float +snan(0x1)`, and the shortest decimal that rounds to a value, although it is not equal
# to it (`float 1.000000e-01`). All LLVMs read the older hexadecimal forms, which are exact.


class _Format(Struct, frozen=True):
    """A binary floating-point type: its bit widths, and its spelling in older LLVMs."""

    exponent_bits: int
    fraction_bits: int
    prefix: str
    digits: int
    # x87 stores the leading one of the significand, which is implicit in the other formats.
    has_integer_bit: bool = False

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def exponent_mask(self) -> int:
        return (1 << self.exponent_bits) - 1

    def pack(self, negative: bool, exponent: int, fraction: int) -> int:
        """The bits of a sign, a biased exponent and a fraction (without the leading one)."""
        significand = fraction
        width = self.fraction_bits
        if self.has_integer_bit:
            significand |= (exponent != 0) << self.fraction_bits
            width += 1
        return (((negative << self.exponent_bits) | exponent) << width) | significand

    def round(self, magnitude: Fraction, negative: bool) -> int:
        """The bits of the nearest value, ties to even."""
        if magnitude == 0:
            return self.pack(negative, 0, 0)
        # 2**power <= magnitude < 2**(power + 1)
        power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < Fraction(2) ** power:
            power -= 1
        # Below the smallest normal exponent the spacing is constant: these are the subnormals.
        spacing = max(power, 1 - self.bias) - self.fraction_bits
        count = round(magnitude / Fraction(2) ** spacing)  # Fraction rounds ties to even
        if count >> (self.fraction_bits + 1):  # rounded up to the next power of two
            count >>= 1
            spacing += 1
        if not count >> self.fraction_bits:
            return self.pack(negative, 0, count)
        exponent = spacing + self.fraction_bits + self.bias
        if exponent >= self.exponent_mask:
            return self.pack(negative, self.exponent_mask, 0)
        return self.pack(negative, exponent, count & ((1 << self.fraction_bits) - 1))

    def special(self, word: str) -> int:
        """The bits of `+inf`, `-qnan`, `+nan(0x1)`, `-snan(0x2a)`."""
        kind, _, payload = word[1:].partition("(")
        fraction = int(payload[:-1], 16) if payload else 0
        if kind in ("nan", "qnan"):
            fraction |= 1 << (self.fraction_bits - 1)
        return self.pack(word[0] == "-", self.exponent_mask, fraction)


_FLOAT = _Format(8, 23, "0x", 8)
_DOUBLE = _Format(11, 52, "0x", 16)
_FORMATS = {
    "half": _Format(5, 10, "0xH", 4),
    "bfloat": _Format(8, 7, "0xR", 4),
    "float": _FLOAT,
    "double": _DOUBLE,
    "x86_fp80": _Format(15, 63, "0xK", 20, has_integer_bit=True),
    "fp128": _Format(15, 112, "0xL", 32),
}

_LEAST_NORMAL_FLOAT = 2.0**-126


def _bits(form: _Format, literal: str) -> int:
    if literal.startswith("f0x"):
        return int(literal[3:], 16)
    if literal[-1] in "fn)":
        return form.special(literal)
    if form is _DOUBLE:
        pattern: int = struct.unpack("<Q", struct.pack("<d", float(literal)))[0]
        return pattern
    if form is _FLOAT and (quick := _quick_float_bits(float(literal))) is not None:
        return quick
    return form.round(Fraction(literal.lstrip("+-")), literal.startswith("-"))


def _quick_float_bits(double: float) -> int | None:
    """The bits of the float nearest to a decimal whose nearest double is `double`.

    None if double rounding may be wrong: if the double is exactly halfway between two floats.
    """
    try:
        packed = struct.pack("<f", double)
        single: float = struct.unpack("<f", packed)[0]
        # Exact; it is as far from `double` as `single` is, on the other side.
        mirrored = 2 * double - single
        if single != double and struct.unpack("<f", struct.pack("<f", mirrored))[0] == mirrored:
            return None
    except OverflowError:
        return None
    bits: int = struct.unpack("<I", packed)[0]
    return bits


def _widen(bits: int) -> int:
    """A float's bits → the bits of the double that spells it in the old syntax."""
    sign, exponent, fraction = bits >> 31, (bits >> 23) & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:  # infinities and NaNs: the payload moves up, a signaling NaN stays one
        return _DOUBLE.pack(bool(sign), 0x7FF, fraction << 29)
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    widened: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return widened


def _spell(type_name: str, literal: str) -> str:
    """Spells one literal in the old syntax. Exact for every type; `_spell_run` is faster."""
    form = _FORMATS[type_name]
    bits = _bits(form, literal)
    if form is _FLOAT:
        return f"0x{_widen(bits):016X}"
    if type_name == "fp128":  # the old form has the low half first
        return f"0xL{bits & (1 << 64) - 1:016X}{bits >> 64:016X}"
    return f"{form.prefix}{bits:0{form.digits}X}"


class _Spelling(dict[str, str]):
    """The spellings of one 16-bit type, which has few values: each is computed once."""

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self._type_name = type_name

    def __missing__(self, literal: str) -> str:
        spelling = self[literal] = _spell(self._type_name, literal)
        return spelling


_SMALL = {name: _Spelling(name) for name in ("half", "bfloat")}


def _digits(doubles: array[float]) -> list[str]:
    """The bits of each double, as 16 hexadecimal digits. Modifies the array."""
    if not doubles:
        return []
    if sys.byteorder == "little":
        doubles.byteswap()
    return doubles.tobytes().hex(" ", 8).upper().split(" ")


# A double exactly halfway between two floats: its bits below a float's are 1000…
_TIE = re.compile(r"[13579BDF]0{7}$")


def _float_decimal_digits(literals: list[str]) -> list[str]:
    """Spells decimals of type float by converting them to double: fast, and right except near ties.

    Double rounding (to double, then to float) is wrong only if the double is exactly halfway
    between two floats. Lists that contain such a double, a subnormal or an overflow are spelled
    one by one.
    """
    doubles = array("d", map(float, literals))
    floats = array("f", doubles)
    exact = array("d", floats)
    subnormal = any(0.0 < abs(value) < _LEAST_NORMAL_FLOAT for value in doubles)
    if subnormal or not all(map(math.isfinite, floats)) or any(map(_TIE.search, _digits(doubles))):
        return [_spell("float", literal)[2:] for literal in literals]
    return _digits(exact)


def _float_pattern_digits(literals: list[str]) -> list[str]:
    """Spells bit patterns (`f0x…`) of type float."""
    text = "".join(literals).replace("f0x", "")
    if len(text) != _FLOAT.digits * len(literals):  # the printer writes leading zeros
        return [_spell("float", literal)[2:] for literal in literals]
    patterns = array("f")
    patterns.frombytes(bytes.fromhex(text))
    if sys.byteorder == "little":
        patterns.byteswap()
    # The processor would convert a signaling NaN to a quiet one.
    if not all(map(math.isfinite, patterns)):
        return [_spell("float", literal)[2:] for literal in literals]
    return _digits(array("d", patterns))


def _spell_run(type_name: str, literals: list[str]) -> list[str]:
    """Spells many literals of one type, as in a large constant array."""
    if type_name in _SMALL:
        return list(map(_SMALL[type_name].__getitem__, literals))
    if type_name not in ("float", "double") or len(literals) < _RUN_PAYS:
        return [_spell(type_name, literal) for literal in literals]
    patterns = [literal for literal in literals if literal[0] == "f"]
    decimals = [literal for literal in literals if literal[-1].isdigit() and literal[0] != "f"]
    if type_name == "float":
        pattern_digits = iter(_float_pattern_digits(patterns))
        decimal_digits = iter(_float_decimal_digits(decimals))
    else:
        pattern_digits = iter([literal[3:] for literal in patterns])
        decimal_digits = iter(_digits(array("d", map(float, decimals))))
    if len(patterns) + len(decimals) == len(literals):
        return [
            f"0x{next(pattern_digits if literal[0] == 'f' else decimal_digits)}"
            for literal in literals
        ]
    spelled: list[str] = []
    for literal in literals:  # some of them are infinities or NaNs
        if literal[0] == "f":
            spelled.append(f"0x{next(pattern_digits)}")
        elif literal[-1].isdigit():
            spelled.append(f"0x{next(decimal_digits)}")
        else:
            spelled.append(_spell(type_name, literal))
    return spelled


# For fewer consecutive literals, the setup of the fast path costs more than it saves.
_RUN_PAYS = 16

_LITERAL = (
    r"(?:f0x[0-9A-Fa-f]+|[+-]?[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?"
    r"|[+-](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\)))(?![\w.$-])"
)
# `(?<!…)`: not part of a name such as %my.float or @float.
_TYPE = r"(?<![\w.$%@!#-])(half|bfloat|float|double|x86_fp80|fp128|ppc_fp128)(?![\w.$-])"
# LLVM puts a space before every literal.
_ANY_LITERAL = re.compile(f"(?<= ){_LITERAL}")
# A type with the literals of that type that directly follow it, or a literal alone. Runs have a
# bounded length, because the matcher keeps state per repetition. (A possessive `*+` would not, but
# CPython before 3.11.5 loses the group around it.)
_SCAN = re.compile(f"{_TYPE}(?: ({_LITERAL}(?:, \\1 {_LITERAL}){{0,4095}}))?|(?<= )({_LITERAL})")


class _Line:
    """State that is kept between the pieces of a line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.type_name: str | None = None


def _rewrite_literals(piece: str, line: _Line) -> str:
    """Spells each literal by the nearest floating-point type to its left on the line."""

    def rewrite(found: re.Match[str]) -> str:
        type_name, run, bare = found.groups()
        if type_name is not None:
            line.type_name = type_name
            if run is None:
                return found[0]
            separator = f", {type_name} "
            literals = run.split(separator)
        else:
            literals = [bare]
        if line.type_name not in _FORMATS:
            raise InternalError(
                f"A floating-point literal of type {line.type_name or 'unknown'} cannot be "
                f"written for the older LLVM:\n  {_excerpt(line.text, line.text.find(literals[0]))}"
            )
        spelled = _spell_run(line.type_name, literals)
        if type_name is None:
            return spelled[0]
        return f"{type_name} {separator.join(spelled)}"

    if _ANY_LITERAL.search(piece) is None:
        return piece
    return _SCAN.sub(rewrite, piece)


# --- Attributes ----------------------------------------------------------------------

# Function attributes that LLVM 22 does not know. None of them affects semantics: noipa, nooutline
# and flatten control optimizations that aotc does not run between modules, prefalign is only a
# preferred alignment.
_NEW_ATTRIBUTES = re.compile(r" (?:noipa|nooutline|flatten|prefalign\(\d+\)|prefalign=\d+)(?= |$)")


def _drop_new_attributes(piece: str, line: _Line) -> str:
    if not line.text.startswith(("attributes #", "define ", "declare ")):
        return piece
    return _fill_group(_NEW_ATTRIBUTES.sub("", piece))


_DEAD_ON_RETURN = re.compile(r" dead_on_return\(\d+\)")


def _drop_dead_on_return_size(piece: str, line: _Line) -> str:
    """Removes `dead_on_return(8)`: it names the dead bytes, the old attribute means all bytes."""
    return _DEAD_ON_RETURN.sub("", piece)


_MEMORY = re.compile(r"memory\(([^()]*\btarget_mem[^()]*)\)")
_TARGET_MEMORY = re.compile(r"target_mem\d*: (\w+)")


def _drop_target_memory(piece: str, line: _Line) -> str:
    """Removes `target_mem0: none` from `memory(read, target_mem0: none)`; the rest is weaker.

    A function that does access such memory loses the whole attribute, which permits any access.
    """

    def rewrite(found: re.Match[str]) -> str:
        if any(access != "none" for access in _TARGET_MEMORY.findall(found[1])):
            return ""
        parts = [part for part in found[1].split(", ") if not _TARGET_MEMORY.fullmatch(part)]
        return f"memory({', '.join(parts)})" if parts else ""

    return _fill_group(_MEMORY.sub(rewrite, piece))


def _fill_group(piece: str) -> str:
    """Fills an empty attribute group, which the old syntax rejects; other lines may refer to it."""
    return _EMPTY_GROUP.sub('= { "downleveled" }', piece)


_EMPTY_GROUP = re.compile(r"= \{ +\}$")


_DENORMAL = re.compile(r"denormal_fpenv\(([^()]*)\)")
_DENORMAL_WORDS = {
    "ieee": "ieee",
    "preservesign": "preserve-sign",
    "positivezero": "positive-zero",
    "dynamic": "dynamic",
}


def _spell_denormal_modes(piece: str, line: _Line) -> str:
    """Spells `denormal_fpenv(ieee, float: preservesign|dynamic)` as two string attributes."""

    def modes(text: str) -> str:
        words = [_DENORMAL_WORDS[word.strip()] for word in text.strip(", ").split("|")]
        return f"{words[0]},{words[-1]}"

    def rewrite(found: re.Match[str]) -> str:
        default, _, single = found[1].partition("float:")
        spelled = []
        if default.strip(", "):
            spelled.append(f'"denormal-fp-math"="{modes(default)}"')
        if single.strip(", "):
            spelled.append(f'"denormal-fp-math-f32"="{modes(single)}"')
        return " ".join(spelled)

    return _DENORMAL.sub(rewrite, piece)


# --- Intrinsics ----------------------------------------------------------------------

_TMA_REDUCE = re.compile(
    r"@llvm\.nvvm\.cp\.async\.bulk\.tensor\.reduce\.((?:tile|im2col)\.\dd\()"
    r"(.*), (?:/\*[^*]*\*/ )?i32 (\d), (i1 (?:true|false)\))"
)
# The values of the new argument, in order.
_TMA_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def _name_tma_reduction(piece: str, line: _Line) -> str:
    """Moves the operation of a TMA reduction from an argument into the intrinsic's name.

    The declaration is removed: an undeclared intrinsic is declared by its call.
    """
    if line.text.startswith("declare "):
        return ""
    return _TMA_REDUCE.sub(
        lambda found: (
            "@llvm.nvvm.cp.async.bulk.tensor.reduce."
            f"{_TMA_OPERATIONS[int(found[3])]}.{found[1]}{found[2]}, {found[4]}"
        ),
        piece,
    )


_MOVMATRIX = re.compile(r"@llvm\.nvvm\.movmatrix\.sync\.aligned\.m8n8\.trans\.b16(\(i32 [^()]*\))")


def _assemble_movmatrix(piece: str, line: _Line) -> str:
    """Replaces this intrinsic, which LLVM 22 does not have, by inline assembly."""
    if line.text.startswith("declare "):
        return ""
    return _MOVMATRIX.sub(
        r'asm sideeffect "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"\1 convergent',
        piece,
    )


# --- The table -----------------------------------------------------------------------

_Rewrite = Callable[[str, _Line], str]


class _Difference(Struct, frozen=True):
    """A spelling that LLVM reads from version `read_from` on.

    Every occurrence contains one of `needles`: a text without them is not searched. Some
    differences may be older than stated: what is known is that LLVM 22 rejects them and LLVM 24
    writes them, and the old spelling is valid for both.
    """

    read_from: Version
    needles: tuple[str, ...]
    rewrite: _Rewrite


_LITERALS = _Difference(Version(24), (), _rewrite_literals)
_DIFFERENCES = (
    _Difference(
        Version(24),
        ("noipa", "nooutline", "flatten", "prefalign"),
        _drop_new_attributes,
    ),
    _Difference(Version(24), ("dead_on_return(",), _drop_dead_on_return_size),
    _Difference(Version(24), ("target_mem",), _drop_target_memory),
    _Difference(Version(24), ("denormal_fpenv(",), _spell_denormal_modes),
    _Difference(
        Version(24),
        ("@llvm.nvvm.cp.async.bulk.tensor.reduce.tile", "tensor.reduce.im2col"),
        _name_tma_reduction,
    ),
    _Difference(Version(24), ("@llvm.nvvm.movmatrix.",), _assemble_movmatrix),
)


# From this version on, a module's assembly lines are in one `module asm`, each in quotes.
_ASSEMBLY_LINES = Version(24)
_MANY_ASSEMBLY_LINES = re.compile(r'^module asm\n((?:[ \t]+"[^"\n]*"\n)+)', re.MULTILINE)


def _one_by_one(found: re.Match[str]) -> str:
    return "".join(f"module asm {line.strip()}\n" for line in found[1].splitlines())


def downlevel(text: str, *, writer: Version, reader: Version) -> str:
    """`text`, written by LLVM `writer`, in the syntax of LLVM `reader`.

    Unchanged if `reader` is not older than `writer`.
    """
    if reader >= writer:
        return text
    if reader < _ASSEMBLY_LINES and "\nmodule asm\n" in text:
        text = _MANY_ASSEMBLY_LINES.sub(_one_by_one, text)
    rewrites: list[tuple[tuple[str, ...], _Rewrite]] = [
        (difference.needles, difference.rewrite)
        for difference in _DIFFERENCES
        if reader < difference.read_from and any(needle in text for needle in difference.needles)
    ]
    if reader < _LITERALS.read_from:
        rewrites.append((_LITERALS.needles, _LITERALS.rewrite))
    lines = text.split("\n")
    if not rewrites:
        return text
    literals_only = [rewrite for _, rewrite in rewrites] == [_rewrite_literals]
    for number, line in enumerate(lines):
        # Most lines need no change. A line with quotes may contain an image of many megabytes,
        # which only splitting at quotes skips quickly.
        if literals_only and '"' not in line and _ANY_LITERAL.search(line) is None:
            continue
        lines[number] = _rewrite_line(line, rewrites)
    return "\n".join(lines)


def _rewrite_line(text: str, rewrites: list[tuple[tuple[str, ...], _Rewrite]]) -> str:
    # Splitting first keeps embedded images cheap: nothing else scans their bytes.
    pieces = text.split('"')
    for needles, rewrite in rewrites:
        line = _Line(text)
        for index in range(0, len(pieces), 2):  # pieces with an odd index are quoted
            code, semicolon, comment = pieces[index].partition(";")
            if not needles or any(needle in code for needle in needles):
                pieces[index] = rewrite(code, line) + semicolon + comment
            if semicolon:
                break
    return '"'.join(pieces)


# --- When clang refuses ----------------------------------------------------------------

# Places in <inline asm> do not refer to this text.
_PLACED = re.compile(r"^(?!<inline asm>)[^\n]*?:(\d+):(\d+): error: (.*)$", re.MULTILINE)
_NAMED = re.compile(r"@(\"[^\"\n]*\"|[\w.$-]+)|intrinsic %(llvm\.[\w.]+)")
_EXCERPT = 120


def _excerpt(line: str, column: int) -> str:
    """The part of `line` around `column`: a line may contain an image of many megabytes."""
    if len(line) <= _EXCERPT:
        return line
    start = max(0, min(column - _EXCERPT // 2, len(line) - _EXCERPT))
    end = start + _EXCERPT
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def explain_refusal(stderr: str, text: str) -> str | None:
    """The line of `text` that clang's `stderr` refers to, with a caret; None if there is none.

    Errors of the parser have a place. Errors of the verifier and of instruction selection only
    name a function or an intrinsic: the result is the first line that contains the name.
    """
    lines = text.split("\n")
    placed = _PLACED.search(stderr)
    if placed is not None and 1 <= int(placed[1]) <= len(lines):
        number, column, message = int(placed[1]), int(placed[2]), placed[3]
        line = lines[number - 1]
        excerpt = _excerpt(line, column - 1)
        shown = line[max(0, column - 1) :][: len("x" * 8)]
        caret = excerpt.find(shown, max(0, min(column - 1, _EXCERPT // 2) - 1)) if shown else -1
        mark = f"\n  {' ' * caret}^" if caret >= 0 else ""
        return f"line {number}: {message}\n  {excerpt}{mark}"
    for named in _NAMED.finditer(stderr):
        name = named[1] or named[2]
        for number, line in enumerate(lines, start=1):
            column = line.find(f"@{name}")
            if column >= 0:
                return f"line {number}, which has @{name}:\n  {_excerpt(line, column)}"
    return None


_INTRINSIC = re.compile(rb"(?<![\w.$])llvm\.[a-z][\w.]*")


def unknown_intrinsics(output: bytes) -> list[str]:
    """The intrinsics that clang did not know, from the PTX or the object that it wrote.

    Clang treats them as external functions and compiles the call: only the name remains.
    """
    if output.startswith(b"\x7fELF"):
        found = re.findall(rb"\x00(llvm\.[a-z][\w.]*)(?=\x00)", output)
    else:
        found = []
        for declaration in re.finditer(rb"^\.extern \.func [^;]*;", output, re.MULTILINE):
            found += _INTRINSIC.findall(declaration[0].split(b"_param_")[0])
    return sorted({name.decode() for name in found})


def check_intrinsics(made: bytes) -> None:
    """Raises InternalError if PTX or an object calls an intrinsic that clang did not know.

    Clang treats it as an external function, without a warning.
    """
    unknown = unknown_intrinsics(made)
    if unknown:
        raise InternalError(
            f"The clang in use does not know what the MLIR bindings use: {', '.join(unknown)}.",
            hint="This is a gap between two LLVM versions: please report it, with the input.",
        )
