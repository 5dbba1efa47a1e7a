"""Elements of 8 and of 32 bits on Hopper's tensor cores, as far as a machine without one can tell.

What a lane reads is computed here of the kernel's arithmetic, and compared with what the PTX manual
says of a wgmma's left operand in registers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.command import Outcome
from matmul.test_wgmma import element_names, groups_of, matrix, module, place_of
from matmul.traced import Trace, Values, traced
from msgspec.structs import replace

from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.wgmma.family import WGMMA, Variant
from aotc.kernels.matmul.wgmma.fragments import Fragments
from aotc.kernels.matmul.wgmma.transposed_store import TransposedEpilogue
from aotc.mlir import ir

Aotc = Callable[..., Outcome]


def problem(
    element: str, c: str, *, b: str = "", transposed: str = "b", batch: int | None = None,
    c_alignment: int | None = None, adds: bool = False,
) -> Problem:  # fmt: skip
    m, n, k = 200, 208, 144
    outer = () if batch is None else (batch,)
    a_sizes = (k, m) if "a" in transposed else (m, k)
    b_sizes = (n, k) if "b" in transposed else (k, n)
    return Problem(
        a=matrix((*outer, *a_sizes), element, transposed="a" in transposed),
        b=matrix((*outer, *b_sizes), b or element, transposed="b" in transposed),
        c=matrix((*outer, m, n), c, alignment=c_alignment),
        accumulator="i32" if element == "i8" else "f32",
        adds=adds,
        batched=batch is not None,
        allow_tf32=True,
    )


PROBLEMS = {
    "f8": problem("f8E4M3FN", "bf16"),
    "mixed f8": problem("f8E5M2", "f32", b="f8E4M3FN", transposed=""),
    "i8": problem("i8", "i32"),
    "i8, B along N": problem("i8", "i32", transposed="", batch=2),
    "tf32": problem("f32", "f32"),
    "tf32, B along N": problem("f32", "f32", transposed="", adds=True),
    "tf32 to an unaligned C": problem("f32", "f32", transposed="", c_alignment=4),
    "f8 to an unaligned C": problem("f8E4M3FN", "f16", transposed="", c_alignment=2),
}


def variants(p: Problem) -> list[Variant]:
    """The first, one in a cluster, and a small one."""
    found = WGMMA.variants(p)
    shared = replace(found[0], down=2)
    assert WGMMA.can_implement(p, shared)
    return [found[0], shared, min(found, key=lambda one: one.m * one.n)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_text_is_a_module(name: str) -> None:
    p = PROBLEMS[name]
    for variant in variants(p):
        with ir.Context(), ir.Location.unknown():
            ir.Module.parse(module(p, variant)).operation.verify()


@pytest.mark.parametrize("name", ["mixed f8", "f8", "i8, B along N", "tf32, B along N"])
def test_sums_stay_in_registers(
    name: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    p = PROBLEMS[name]
    path, out = mlir_file(module(p, WGMMA.variants(p)[0])), tmp_path / "out"
    command = ("build", path, "--chip", "sm_90a", "--emit", "ptx,cubin", "-o", f"{out}/")
    assert "warning" not in aotc(*command).succeeded().stderr
    said = aotc("inspect", next(out.glob("*.cubin"))).succeeded().stdout
    registers, _, stack = map(int, re.findall(r" [a-z]\w+ +(\d+) +(\d+) +(\d+)", said)[0])
    assert (registers <= 168, stack) == (True, 0)
    ptx = next(out.glob("*.ptx")).read_text()
    types = {
        "f8": "k32.f32.e4m3.e4m3",
        "mixed f8": "k32.f32.e4m3.e5m2",  # B is the left operand
        "i8, B along N": "k32.s32.s8.s8",
        "tf32, B along N": "k8.f32.tf32.tf32",
    }
    assert types[name] in ptx


def test_what_wgmma_cannot_read_is_refused() -> None:
    for element, c in (("f32", "f32"), ("i8", "i32"), ("f8E4M3FN", "f32")):
        assert WGMMA.variants(problem(element, c, transposed="ab")) == ()
    assert WGMMA.variants(replace(PROBLEMS["tf32"], allow_tf32=False)) == ()
    assert WGMMA.variants(problem("f8E4M3FN", "bf16", b="f16")) == ()


def test_sums_of_f8_are_promoted() -> None:
    assert all(one.promotes for one in WGMMA.variants(PROBLEMS["f8"]))
    assert not any(one.promotes for one in WGMMA.variants(PROBLEMS["tf32"]))


def test_maps_have_cudas_types(aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path) -> None:
    """8 bits are UINT8 (0) and f32 that is rounded TFLOAT32 (11): cuda.h, CUtensorMapDataType."""
    for name, expected in (("f8", {0, 9}), ("i8", {0, 3}), ("tf32", {11, 7})):
        path = mlir_file(module(PROBLEMS[name], Variant(n=64, transposes_c=False)))
        out = tmp_path / f"{name}.ll"
        aotc("build", path, "--chip", "sm_90a", "--emit", "host-ll", "-o", out).succeeded()
        calls = re.findall(
            r"call ptr @\w*mgpuTensorMapEncodeTiledMemref\(i64 [^,]*, ptr [^,]*, i64 (\d+)",
            out.read_text(),
        )
        assert set(map(int, calls)) == expected


# --- Fragments -----------------------------------------------------------------------------


@contextmanager
def fragments(element: str) -> Iterator[Trace]:
    """The loads of a fragment of the second step along K, of a stage at an offset of 65536."""
    with traced(lane="i32", row="i32", address="i32", offset="i32") as trace:
        place = (trace[name] for name in ("lane", "row", "address"))
        Fragments(trace.b, element, *place, 1).load(trace["offset"], 0, 1)
        yield trace


def lanes_of(trace: Trace, row: int) -> list[Values]:
    """The values of each lane, of a warp whose rows begin at `row`."""
    given = {"row": row, "address": 1024, "offset": 65536}
    return [trace.evaluate(**given, lane=lane) for lane in range(32)]


def element_at(address: int, bytes_: int) -> tuple[int, int]:
    """The row of the left operand and the element of K at a place of the second stage, which has
    slabs of swizzled rows."""
    width = 128 // bytes_
    slab, place = divmod(address - 1024 - 65536, 128 * width)
    k, _ = divmod(place, 128)
    column = next(
        column for column in range(width)
        if place_of(k, column, bytes_, 128, is_swizzled=True) <= place
        < place_of(k, column, bytes_, 128, is_swizzled=True) + bytes_
    )  # fmt: skip
    return slab * width + column, k


@pytest.mark.parametrize("row", [0, 16, 48, 112])
def test_words_are_those_of_a_fragment(row: int) -> None:
    """Register r of lane (g, t) has row 2g + r % 2 and K's element 8 + t + 4 (r / 2): that of the
    second step."""
    with fragments("f32") as trace:
        loads = [load.operands[0] for load in trace.operations("llvm.load")]
        for lane, values in enumerate(lanes_of(trace, row)):
            group, member = divmod(lane, 4)
            found = [element_at(values[place], 4) for place in loads]
            ks = [8 + member, 12 + member]
            assert found == [(row + 2 * group, k) for k in (ks if lane % 2 == 0 else ks[::-1])]


def test_words_come_from_all_banks() -> None:
    """Each half of a warp reads 128 different bytes, modulo 128."""
    with fragments("f32") as trace:
        loads = [load.operands[0] for load in trace.operations("llvm.load")]
        lanes = lanes_of(trace, 0)
        for place, half in itertools.product(loads, (range(16), range(16, 32))):
            assert len({lanes[lane][place] % 128 for lane in half}) == 16


@pytest.mark.parametrize("row", [0, 16, 112])
def test_bytes_are_those_of_a_fragment(row: int) -> None:
    """Register r of lane (g, t) has row 2g + r % 2 and four elements of K from 32 + 4t + 16 (r / 2)
    on, after bytes of two matrices are exchanged as the selectors say."""
    with fragments("i8") as trace:
        [load] = trace.operations("nvvm.ldmatrix")
        lanes = [values[load.operands[0]] for values in lanes_of(trace, row)]
    for lane in range(32):
        group, member = divmod(lane, 4)
        words = []
        for which in range(4):
            # Rows 2t and 2t + 1 of the matrix, of each the pair g.
            rows = [lanes[8 * which + 2 * member + i] for i in range(2)]
            pairs = [rows[i] + 2 * group for i in range(2)]
            words.append([element_at(pair + byte, 1) for pair in pairs for byte in range(2)])
        selectors = (0x2064, 0x3175) if member >= 2 else (0x6420, 0x7531)
        for half, (side, selector) in itertools.product(range(2), enumerate(selectors)):
            both = words[2 * half] + words[2 * half + 1]
            chosen = [both[selector >> 4 * i & 15] for i in range(4)]
            first = 32 + 4 * member + 16 * half
            assert chosen == [(row + 2 * group + side, first + i) for i in range(4)]


def test_rows_of_bytes_come_from_all_banks() -> None:
    with fragments("i8") as trace:
        [load] = trace.operations("nvvm.ldmatrix")
        lanes = [values[load.operands[0]] for values in lanes_of(trace, 0)]
    for which in range(4):
        assert len({lanes[8 * which + i] % 128 for i in range(8)}) == 8


# --- C transposed --------------------------------------------------------------------------


@pytest.mark.parametrize(("c", "bytes_"), [("f32", 4), ("bf16", 2)])
def test_subtiles_lie_as_tma_takes_them(c: str, bytes_: int) -> None:
    """Lane (g, t) has columns 2g and 2g + 1 of rows 2t and 2t + 1 of each 8 rows of C."""
    p, rows = problem("f8E4M3FN", c, transposed=""), 128 // bytes_
    memory = {}
    elements = dict.fromkeys(element_names(rows // 8), c)
    with traced(lane="i32", address="i32", c=p.c.type, **elements) as trace:
        epilogue = TransposedEpilogue(trace.b, p, 64, trace["c"])
        assert epilogue.columns == rows
        epilogue.lane = trace["lane"]
        epilogue._write(groups_of(trace, rows // 8), trace["address"])
        for lane in range(32):
            values = trace.evaluate(lane=lane, address=2048)
            group, member = divmod(lane, 4)
            for store in trace.operations("llvm.store"):
                pair, place = store.operands
                for side, element in enumerate(values[pair]):
                    of, half, _ = trace.name_of(element).removeprefix("p").split("_")
                    at = 8 * int(of) + 2 * member + int(half), 2 * group + side
                    memory[at] = values[place] + bytes_ * side - 2048
    assert len(memory) == 16 * rows
    pitch = 16 * bytes_
    for (row, column), place in memory.items():
        address = row * pitch + column * bytes_
        # Swizzled by 64 bytes: bits 4 and 5 by 7 and 8; by 32: bit 4 by 7.
        assert place == address ^ (address >> 7 & pitch // 16 - 1) << 4
