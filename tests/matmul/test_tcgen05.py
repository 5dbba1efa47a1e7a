"""Products on Blackwell's tensor cores: that they assemble, and that they say what the PTX manual
asks for. No such GPU has run them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from matmul.test_wgmma import matrix

import aotc
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.tcgen05 import TCGEN05, Variant

# PTX manual, «Instruction descriptor», kinds f16: the first bit and the width of each field.
FIELDS = {"sums": (4, 2), "a": (7, 3), "b": (10, 3), "a_rows": (15, 1), "b_columns": (16, 1)}
SIZES = {"n": (17, 6), "m": (24, 5)}


def problem(
    m: int, n: int, k: int, *, element: str = "f16", c: str = "f16", layout: str = "nn",
    dynamic: bool = False, batch: tuple[int, ...] = (), adds: bool = False,
) -> Problem:  # fmt: skip
    a, b = layout == "tn" or layout == "tt", layout in ("nt", "tt")
    return Problem(
        matrix((*batch, *((k, m) if a else (m, k))), element, transposed=a, dynamic=dynamic),
        matrix((*batch, *((n, k) if b else (k, n))), element, transposed=b, dynamic=dynamic),
        matrix((*batch, m, n), c, dynamic=dynamic),
        "f32",
        adds=adds,
        batched=bool(batch),
    )


def ptx_of(p: Problem, variant: Variant, folder: Path) -> str:
    text = TCGEN05.function(p, variant, "gemm")
    text = text.replace(") {", ") attributes {llvm.emit_c_interface} {", 1)
    options: dict[str, Any] = {"chips": ("sm_100a",), "cpu_kernels": False}
    # An image, too: what ptxas does not take is an error.
    aotc.build(text, emit="cubin", name="gemm", out=f"{folder}/gemm.cubin", **options)
    aotc.build(text, emit="ptx", name="gemm", out=f"{folder}/gemm.ptx", **options)
    return (folder / "gemm.ptx").read_text()


@pytest.mark.parametrize(
    "p",
    [
        problem(512, 512, 512),
        problem(1000, 1000, 1000, element="bf16", c="f32", layout="nt", dynamic=True),
        problem(200, 104, 72, layout="tn", batch=(3,), adds=True),
        problem(200, 100, 72, c="f32", layout="tt"),
    ],
)
def test_it_assembles_and_keeps_nothing_in_memory(p: Problem, tmp_path: Path) -> None:
    variant = TCGEN05.variants(p)[0]
    ptx = ptx_of(p, variant, tmp_path)
    # For each stage there is a commit, and one for all. (Where K is known, there may be several.)
    stages = ptx.count("tcgen05.mma") / 4
    assert stages >= 1
    assert ptx.count("tcgen05.commit") == stages + 1
    assert ptx.count("tcgen05.alloc") == ptx.count("tcgen05.dealloc") == 1
    assert ".local" not in ptx


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_what_is_multiplied_is_described(element: str, layout: str, tmp_path: Path) -> None:
    p = problem(512, 512, 512, element=element, layout=layout)
    ptx = ptx_of(p, Variant(n=192), tmp_path)
    registers = set(re.findall(r"tcgen05\.mma[^;]*, (%r\d+), %p\d+;", ptx))
    (number,) = {
        int(word)
        for register in registers
        for word in re.findall(rf"mov\.b32\s+{register}, (\d+);", ptx)
    }
    seen = {name: number >> at & (1 << bits) - 1 for name, (at, bits) in (FIELDS | SIZES).items()}
    type_ = {"f16": 0, "bf16": 1}[element]
    assert seen == {
        "sums": 1,
        "a": type_,
        "b": type_,
        # K is contiguous (0), or rows and columns are.
        "a_rows": int(layout[0] == "t"),
        "b_columns": int(layout[1] == "n"),
        "n": 192 // 8,
        "m": 128 // 16,
    }


def test_what_it_cannot_take() -> None:
    assert not TCGEN05.can_implement(problem(512, 512, 512), Variant(n=100))
    assert not TCGEN05.can_implement(problem(512, 512, 512), Variant(n=256, stages=5))
    assert not TCGEN05.variants(problem(512, 512, 100))  # A's rows are not aligned


def test_it_is_asked_for(tmp_path: Path) -> None:
    text = """
func.func @gemm(%A: memref<512x512xf16>, %B: memref<512x512xf16>, %C: memref<512x512xf16>)
    attributes {llvm.emit_c_interface} {
  linalg.matmul ins(%A, %B : memref<512x512xf16>, memref<512x512xf16>)
      outs(%C : memref<512x512xf16>)
  return
}
"""
    found = []
    for untested in (False, True):
        options: dict[str, Any] = {"chips": ("sm_100",), "cpu_kernels": False}
        artifact = aotc.build(
            text, emit="shared", name="gemm", out=f"{tmp_path}/{untested}/",
            untested_kernels=untested, **options,
        )  # fmt: skip
        found.append({chip for kernel in artifact.manifest.kernels for chip in kernel.built_for})
    assert found == [{"sm_100"}, {"sm_100", "sm_100a"}]
