"""Buffers that indirect calls take and return: the called functions launch, the callers free."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library
from placement.emulation import call_on_fake_gpu
from placement.patterns import ALLOC, DEALLOC, KERNELS, READ, function, launch

MAKES = "() -> memref<32xf32>"
TAKES = "(memref<32xf32>) -> ()"


def _function(name: str, arguments: str, result: str, body: str) -> str:
    return function(name, arguments, result, body, is_entry=False)


def _choose(first: str, second: str, type_: str) -> str:
    """%f: @first where the entry's %n is 1, else @second."""
    return f"""%one = func.constant @{first} : {type_}
    %two = func.constant @{second} : {type_}
    %is_one = arith.cmpi eq, %n, %c1 : index
    %f = arith.select %is_one, %one, %two : {type_}"""


STORE = "memref.store %hundred, %t[%c5] : memref<32xf32>"
RETURN_BUFFER = "return %t : memref<32xf32>"
FUNCTIONS = (
    _function("filled", "", "memref<32xf32>", f"{ALLOC} {launch('fill', '%t')} {RETURN_BUFFER}"),
    _function("written", "", "memref<32xf32>", f"{ALLOC} {STORE} {RETURN_BUFFER}"),
    _function("increased", "%t: memref<32xf32>", "", f"{launch('inc', '%t')} return"),
    _function("left", "%t: memref<32xf32>", "", "return"),
    function(
        "returned",
        "%n: index",
        "f32",
        f"""{_choose("filled", "written", MAKES)}
    %t = func.call_indirect %f() : {MAKES}
    {READ}
    {DEALLOC}
    return %r : f32""",
    ),
    function(
        "passed",
        "%n: index",
        "f32",
        f"""{_choose("increased", "left", TAKES)}
    {ALLOC}
    {STORE}
    func.call_indirect %f(%t) : {TAKES}
    {READ}
    {DEALLOC}
    return %r : f32""",
    ),
)
TEXT = f"module attributes {{gpu.container_module}} {{\n{KERNELS}{''.join(FUNCTIONS)}\n}}\n"
EXPECTED = {
    ("returned", 1): 5.0,
    ("returned", 2): 100.0,
    ("passed", 1): 101.0,
    ("passed", 2): 100.0,
}


@pytest.mark.parametrize("memory", ["auto", "managed"])
def test_on_the_fake_gpu(memory: str, tmp_path: Path) -> None:
    """Each allocation is memory that both sides reach, and freed by the one that made it."""
    requests = [
        {"entry": name, "arguments": [number], "has_result": True} for name, number in EXPECTED
    ]
    answers = call_on_fake_gpu(TEXT, requests, tmp_path, "--memory", memory, "-O1")
    for expected, twice in zip(EXPECTED.values(), answers, strict=True):
        for answer in twice:
            assert (answer["error"], answer["result"]) == ("", expected)
            assert (answer["managed"], answer["frees"]) == (1, 1)


def test_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    library = build_library(TEXT, tmp_path, "-O1")
    for (name, number), expected in EXPECTED.items():
        np.testing.assert_equal(library.call(name, number), expected)
