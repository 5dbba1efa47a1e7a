"""Nesting is bounded before the parser sees it, and what is no nesting is not counted."""

from __future__ import annotations

import io
import time

import pytest

from aotc.errors import InputError
from aotc.input.depth import MOST_LEVELS, check_depth
from aotc.input.source import parse_source
from aotc.mlir import ir, make_context

DEEP = MOST_LEVELS + 1


@pytest.mark.parametrize("pair", ["[]", "{}", "()", "<>"])
def test_brackets_are_counted_up_to_the_bound(pair: str) -> None:
    opening, closing = pair
    text = "#a = {}{}\n"
    check_depth("a.mlir", text.format(opening * MOST_LEVELS, closing * MOST_LEVELS).encode())
    with pytest.raises(InputError) as failure:
        check_depth("a.mlir", text.format(opening * DEEP, closing * DEEP).encode())
    assert failure.value.message == (
        f"a.mlir:1:{5 + DEEP}: error: this is nested more than {MOST_LEVELS} levels deep, which "
        "aotc does not take."
    )


@pytest.mark.parametrize(
    "line",
    [
        '"' + "(" * DEEP + '"',
        '"\\"' + "(" * DEEP + '\\5C"',
        "// " + "(" * DEEP + ' "',
        '"//" // "' + "[" * DEEP,
        "() -> " * DEEP,
        "d0 >= 0, d1 <= 1, " * DEEP,
        "<()>, [{}] " * DEEP,
        "] " * DEEP,
    ],
)
def test_what_is_no_nesting_is_taken(line: str) -> None:
    check_depth("a.mlir", f"{line}\n{line}\n".encode())


@pytest.mark.parametrize("before", ['"(\\5C" ', '"\\\\" ', '"" // "\n', "// \\\n", "-> >= <= "])
def test_nesting_behind_strings_and_comments_is_seen(before: str) -> None:
    with pytest.raises(InputError, match="levels deep"):
        check_depth("a.mlir", (before + "({[<" * DEEP + ">]})" * DEEP).encode())


def test_aliases_of_aliases_are_counted() -> None:
    chain = "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(1, 1500))
    with pytest.raises(InputError, match=r"a\.mlir:1002:1: error: this alias is made of more"):
        check_depth("a.mlir", f"#a0 = [1]\n{chain}".encode())
    check_depth("a.mlir", ("#a0 = [1]\n" + "#b = [#a0]\n" * 5000).encode())


def test_a_large_constant_takes_no_time() -> None:
    data = b"#a = dense<[" + b"[1.5, 2.5, 3.5], " * 1_000_000 + b"[0.0, 0.0, 0.0]]>"
    begin = time.perf_counter()
    check_depth("a.mlir", data)
    assert time.perf_counter() - begin < 5  # under 1 s where nothing else runs


def test_operations_of_bytecode_are_counted() -> None:
    context = make_context()
    text = "module {" * 400 + "}" * 400
    with context:
        module = ir.Module.parse(text)
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    with pytest.raises(InputError, match=r"its operations are nested more than 256 levels deep"):
        parse_source("a.mlirbc", buffer.getvalue(), context)
