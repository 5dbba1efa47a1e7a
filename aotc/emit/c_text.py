"""C text: identifiers, string literals and numbers.

An identifier keeps letters, digits and `_`. Any other byte becomes `_XX`, its hexadecimal value. A
string literal keeps printable ASCII except `"`, `\\` and `?` (trigraphs). Any other byte becomes
three octal digits: unlike `\\x`, they do not absorb a digit that follows.
"""

from __future__ import annotations

import hashlib
import re


def in_comment(text: str) -> str:
    """`text` in a `//` comment, which it does not end or continue."""
    return text.replace("\n", " ").replace("\\", "/")


def c_identifier(name: str) -> str:
    """`name` as a C identifier. A name that is a C identifier is not changed."""
    text = "".join(
        chr(b) if re.match(r"[A-Za-z0-9_]", chr(b)) else f"_{b:02X}" for b in name.encode()
    )
    return f"_{text}" if not text or text[0].isdigit() else text


_LONGEST_STEM = 100


def file_stem(name: str) -> str:
    """`name` as an identifier that is a prefix of file names. A long name is truncated, with a hash
    to keep it unique."""
    text = c_identifier(name)
    if len(text) <= _LONGEST_STEM:
        return text
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{text[: _LONGEST_STEM - len(digest) - 1]}_{digest}"


# The keywords of C and C++, and names that the headers and their users need.
_RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t
    uint32_t uint64_t aotc linux unix errno std NULL EOF INT64_MIN INT64_MAX INT32_MIN INT32_MAX
    stdin stdout stderr assert offsetof
    """.split()
)


# Names that are reserved for C implementations (C11, 7.1.3), which have macros of such names.
_OF_IMPLEMENTATIONS = re.compile(r"_[_A-Z]")


def c_name(name: str) -> str:
    """`name` as an identifier that is not reserved in C or C++."""
    identifier = c_identifier(name)
    is_kept = identifier in _RESERVED or _OF_IMPLEMENTATIONS.match(identifier)
    return f"{identifier}_" if is_kept else identifier


def c_string(text: str) -> str:
    """`text` as a C string literal."""
    plain = set(range(0x20, 0x7F)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'


def c_bool(value: bool) -> str:
    return "true" if value else "false"
