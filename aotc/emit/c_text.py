"""C text: identifiers, string literals and numbers.

An identifier keeps letters, digits and `_`; any other byte becomes `_XX`, its hexadecimal
value. A string literal keeps printable ASCII but `"`, `\\` and `?` (trigraphs), and writes every
other byte as three octal digits, which, unlike `\\x`, cannot swallow the digit behind them.
"""

from __future__ import annotations

import re


def c_identifier(name: str) -> str:
    """`name` as a C identifier; names that are one already are unchanged."""
    text = "".join(
        chr(b) if re.match(r"[A-Za-z0-9_]", chr(b)) else f"_{b:02X}" for b in name.encode()
    )
    return f"_{text}" if not text or text[0].isdigit() else text


def c_string(text: str) -> str:
    """`text` as a C string literal."""
    plain = set(range(0x20, 0x7F)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'


def c_bool(value: bool) -> str:
    return "true" if value else "false"
