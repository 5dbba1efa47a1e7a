"""K divided by the blocks of a cluster, as far as a machine without such a GPU can tell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import Outcome
from matmul.test_wgmma import OPERATIONS, evaluate, module, problem

from aotc.kernels.matmul.wgmma.cluster_split_k import Exchange, parts_of
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.tiles import Body
from aotc.kernels.matmul.wgmma.variants import Variant

SPLIT = Variant(n=64, consumers=1, stages=4, splits=4)


@pytest.mark.parametrize(
    ("n", "splits", "parts"), [(64, 4, 4), (64, 8, 4), (128, 3, 2), (256, 8, 8), (48, 2, 1)]
)
def test_parts_are_of_one_width(n: int, splits: int, parts: int) -> None:
    assert parts_of(n, splits) == parts


@pytest.mark.parametrize(
    ("n", "m_blocks", "consumers", "splits"), [(64, 1, 1, 4), (64, 1, 2, 3), (128, 2, 1, 8)]
)
def test_each_sum_is_of_all_blocks(n: int, m_blocks: int, consumers: int, splits: int) -> None:
    """In their order; each block stores a part of the columns, and none is left out."""
    seen = {}
    for rank in range(parts_of(n, splits)):
        for consumer, thread in ((0, 0), (0, 127), (consumers - 1, 5)):
            exchange = Exchange(Body(), Variant(n, consumers, m_blocks, splits=splits))
            exchange.rank = "%rank"
            given = {"%rank": rank, "%address": 0, "%part": consumer, "%thread": thread}
            found, first = traced(exchange, given)
            for block, i in itertools.product(range(m_blocks), range(exchange.columns // 2)):
                own = (block, i + first // 2)
                expected = [(peer, consumer, thread, *own) for peer in range(splits)]
                assert found[block, i] == expected
                seen[consumer, thread, *own] = rank
    assert len(seen) == len({(0, 0), (0, 127), (consumers - 1, 5)}) * m_blocks * n // 2


def traced(
    exchange: Exchange, given: dict[str, int]
) -> tuple[dict[tuple[int, int], list[Any]], int]:
    """Of each sum that is stored, by its block of rows and its number: which sums are added. And
    the first column."""
    stored: list[tuple[list[str], str]] = []
    sums = [f"%sums{block}" for block in range(exchange.m_blocks)]
    exchange.add(
        sums, "%address", "%part", "%thread", lambda *values: stored.append((values[0], values[1]))
    )
    lines = exchange.e.lines
    # What all threads of all blocks write to this one.
    memory: dict[int, tuple[int, int, int, int, int]] = {}
    threads = np.arange(128)
    for rank, consumer in itertools.product(range(exchange.splits), range(exchange.consumers)):
        own = {**given, "%rank": rank, "%part": consumer, "%thread": threads}
        values = evaluate_all(lines, own)
        for line in lines:
            if not line.strip().startswith("llvm.store"):
                continue
            vector, place = re.findall(r"%\w+", line)
            peer, first = values[place]
            if peer != given["%rank"]:
                continue
            for thread, (number, name) in itertools.product(threads, enumerate(values[vector])):
                address = int(first[thread]) + 4 * number
                assert address not in memory
                memory[address] = rank, consumer, int(thread), *values[name]
    assert max(memory) + 4 == exchange.bytes == 4 * len(memory)
    values = evaluate_all(lines, given)
    [(results, first)] = stored
    found = {}
    for block, result in enumerate(results):
        for i, name in values[result].items():
            number, terms = values[name]
            found[block, i] = [memory[address + 4 * number] for address in terms]
    return found, values[first]


def evaluate_all(lines: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """`evaluate`, and structs as dicts, addresses in other blocks as (block, address), sums of
    vectors as lists of addresses."""
    values: dict[str, Any] = dict(given)
    for line in lines:
        words = re.findall(r"%\w+", line)
        if "extractvalue" in line:
            values[words[0]] = int(words[1][5:]), int(re.findall(r"\[(\d+)\]", line)[0])
        elif "from_elements" in line:
            values[words[0]] = words[1:]
        elif "nvvm.mapa" in line:
            values[words[0]] = values[words[2]], values[words[1]]
        elif "getelementptr" in line:
            peer, address = values[words[1]]
            values[words[0]] = peer, address + int(re.findall(r"\[(\d+)\]", line)[0])
        elif "llvm.load" in line:
            values[words[0]] = [values[words[1]]]
        elif "arith.addf" in line:
            values[words[0]] = values[words[1]] + values[words[2]]
        elif "vector.extract" in line:
            values[words[0]] = int(re.findall(r"\[(\d+)\]", line)[0]), values[words[1]]
        elif "llvm.mlir.undef" in line:
            values[words[0]] = {}
        elif "insertvalue" in line:
            place = int(re.findall(r"\[(\d+)\]", line)[0])
            values[words[0]] = {**values[words[2]], place: words[1]}
        else:
            values = evaluate([line], values) if "cmpi" not in line else values
    return values


@pytest.mark.parametrize("splits", [2, 3, 8])
@pytest.mark.parametrize("k", [0, 1, 64, 65, 200, 1024, 4100])
def test_blocks_divide_k(splits: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of K is one block's; each block has one step at least, if behind the end of K."""
    monkeypatch.setitem(OPERATIONS, "maxui", max)
    monkeypatch.setitem(OPERATIONS, "maxsi", max)
    exchange = Exchange(Body(), Variant(64, 1, splits=splits))
    exchange.rank = "%rank"
    own, begin = exchange.divide("%stages", "%k")
    stages, done = -(-k // 64), []
    for rank in range(splits):
        given = {"%rank": rank, "%k": k, "%stages": stages, "%none": int(k == 0)}
        lines = [re.sub(r"= arith.extui .*", "= arith.addi %none, %zero : i32", line)
                 for line in exchange.e.lines if "cmpi" not in line]  # fmt: skip
        values = evaluate(lines, {**given, "%zero": 0})
        first, count = values[begin], values[own]
        assert count >= 1
        assert first % 64 == 0
        done += [first + 64 * i for i in range(count) if first + 64 * i < max(k, 1)]
    assert sorted(done) == [64 * i for i in range(stages)]


@pytest.mark.parametrize(
    "variant",
    [
        Variant(n=64, consumers=1, splits=9),
        Variant(n=128, m_blocks=2, ping_pong=True, splits=2),
        # No room for the sums in the place of the ring.
        Variant(n=256, consumers=2, stages=2, splits=2),
        # More rows than are fetched, and rows that are not known.
        Variant(n=64, consumers=1, few=16),
        Variant(n=64, consumers=2, few=64),
    ],
)
def test_what_cannot_be_split_is_refused(variant: Variant) -> None:
    assert not WGMMA.can_take(problem(), variant)


def test_a_cluster_is_launched(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    path, out = mlir_file(module(problem(), SPLIT)), tmp_path / "out"
    command = ("build", path, "--chip", "sm_90a", "--emit", "ptx,cubin", "-o", f"{out}/")
    assert "warning" not in aotc(*command).succeeded().stderr
    ptx = next(out.glob("*.ptx")).read_text()
    assert ".reqnctapercluster 4, 1, 1" in ptx
    assert ptx.count("barrier.cluster.wait") == 2
    # To each of four blocks its part, two pieces of 8 columns.
    assert ptx.count("st.shared::cluster.v4") == 8
