"""C text: identifiers and literals, checked by a C compiler."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

from aotc.emit.c_text import c_bool, c_identifier, c_string
from aotc.toolchain import Toolchain

NAMES = ["a", "_a1", "1a", "", "a-b", "a.b", "a b", "größe", "a_2Db", "int", "a\nb", "$x", "?"]
TEXTS = [
    *("", "plain", 'a "quote"', "back\\slash", "??/ trigraph ??=", "tab\tnewline\n", "größe €"),
    *("\x01" + "7", "\x7f9", "%d %s", "/* comment */ // too", "a\\", "nul\0inside"),
]


def test_names_that_are_identifiers_stay() -> None:
    for name in ("a", "_a1", "matmul", "A_b_3"):
        assert c_identifier(name) == name


def test_every_name_becomes_an_identifier() -> None:
    for name in NAMES:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", c_identifier(name)), name
    assert c_identifier("a-b") == "a_2Db"
    assert c_identifier("1a") == "_1a"
    assert c_identifier("ß") == "_C3_9F"


def test_names_that_differ_by_one_character_stay_apart() -> None:
    """Each character on its own gives an identifier of its own."""
    characters = [chr(c) for c in range(1, 256)]
    assert len({c_identifier(f"x{c}") for c in characters}) == len(characters)


def test_literals_mean_the_text(tmp_path: Path) -> None:
    """A C compiler reads each literal back as the bytes of the text, without a warning."""
    texts = [*TEXTS, *("".join(pair) for pair in itertools.product('\x01\\?"8a', repeat=2))]
    checks = "\n".join(
        f"  CHECK({c_string(text)}, {', '.join(map(str, text.encode())) or '0'});" for text in texts
    )
    source = tmp_path / "literals.c"
    source.write_text(
        "#include <string.h>\n"
        "#define CHECK(literal, ...) do {                                  \\\n"
        "    const unsigned char expected[] = {__VA_ARGS__};               \\\n"
        "    ++count;                                                      \\\n"
        "    if (sizeof(literal) > 1                                       \\\n"
        "            ? sizeof(literal) - 1 != sizeof(expected) ||          \\\n"
        "                  memcmp(literal, expected, sizeof(expected)) != 0\\\n"
        "            : expected[0] != 0) return count;                     \\\n"
        "  } while (0)\n"
        f"int main(void) {{\n  int count = 0;\n{checks}\n  return 0;\n}}\n"
    )
    program = tmp_path / "literals"
    command = [*Toolchain(os.environ).zig_cc.command, "-std=c11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [*command, "-pedantic", "-Wtrigraphs", str(source), "-o", str(program)], check=True
    )
    done = subprocess.run([program], check=False)
    assert done.returncode == 0, f"literal {done.returncode}: {texts[done.returncode - 1]!r}"


def test_truth() -> None:
    assert (c_bool(True), c_bool(False)) == ("true", "false")
