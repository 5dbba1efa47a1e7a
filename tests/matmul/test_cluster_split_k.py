"""K divided by the blocks of a cluster, as far as a machine without such a GPU can tell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import Outcome
from matmul.test_wgmma import module, problem
from matmul.traced import Trace, traced

from aotc.kernels.matmul.wgmma.cluster_split_k import (
    ClusterSplitK,
    exchanged_bytes,
    parts_of,
    stored_columns,
)
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.variants import Variant

SPLIT = Variant(n=64, consumers=1, stages=4, cluster_split_k=4)


@pytest.mark.parametrize(
    ("n", "cluster_split_k", "parts"),
    [(64, 4, 4), (64, 8, 4), (128, 3, 2), (256, 8, 8), (48, 2, 1)],
)
def test_parts_are_of_one_width(n: int, cluster_split_k: int, parts: int) -> None:
    assert parts_of(n, cluster_split_k) == parts


@pytest.mark.parametrize(
    ("n", "m_blocks", "consumers", "cluster_split_k"),
    [(64, 1, 1, 4), (64, 1, 2, 3), (128, 2, 1, 8)],
)
def test_each_sum_is_of_all_blocks(
    n: int, m_blocks: int, consumers: int, cluster_split_k: int
) -> None:
    """In their order; each block stores a part of the columns, and none is left out."""
    seen = {}
    variant = Variant(n, consumers, m_blocks, cluster_split_k=cluster_split_k)
    threads = {(0, 0), (0, 127), (consumers - 1, 5)}
    columns = stored_columns(variant)
    with reduced(variant) as traced_reduction:
        for rank, (consumer, thread) in itertools.product(range(n // columns), threads):
            given = {"rank": rank, "address": 0, "consumer": consumer, "thread": thread}
            found, first = traced_reduction.stored(given)
            for block, i in itertools.product(range(m_blocks), range(columns // 2)):
                own = (block, i + first // 2)
                expected = [(peer, consumer, thread, *own) for peer in range(cluster_split_k)]
                assert found[block, i] == expected
                seen[consumer, thread, *own] = rank
    assert len(seen) == len(threads) * m_blocks * n // 2


@contextmanager
def reduced(variant: Variant) -> Iterator[Reduction]:
    struct = f"!llvm.struct<({', '.join(['f32'] * (variant.n // 2))})>"
    sums = {f"sums{block}": struct for block in range(variant.m_blocks)}
    names = ("rank", "address", "consumer", "thread")
    with traced(**sums, **dict.fromkeys(names, "i32")) as trace:
        yield Reduction(trace, variant)


class Reduction:
    """A reduction over blocks, built on arguments."""

    def __init__(self, trace: Trace, variant: Variant) -> None:
        self.trace, self.variant = trace, variant
        split_k = ClusterSplitK(trace.b, variant)
        split_k.rank = trace["rank"]
        sums = [trace[f"sums{block}"] for block in range(variant.m_blocks)]
        place = (trace[name] for name in ("address", "consumer", "thread"))
        self.results: list[Any] = []
        split_k.reduce(sums, *place, lambda *stored: self.results.extend(stored))

    def stored(self, given: dict[str, int]) -> tuple[dict[tuple[int, int], list[Any]], int]:
        """Of each sum that is stored, by its block of rows and its number: which accumulators are
        added. And the first column."""
        # What all threads of all blocks write to this one.
        memory: dict[int, tuple[int, int, int, int, int]] = {}
        threads, variant = np.arange(128), self.variant
        for rank, consumer in itertools.product(
            range(variant.cluster_split_k), range(variant.consumers)
        ):
            own = {**given, "rank": rank, "consumer": consumer, "thread": threads}
            values = self.evaluate(own)
            for store in self.trace.operations("llvm.store"):
                vector, pointer = store.operands
                peer, first = values[pointer]
                if peer != given["rank"]:
                    continue
                for thread, (number, element) in itertools.product(
                    threads, enumerate(values[vector])
                ):
                    address = int(first[thread]) + 4 * number
                    assert address not in memory
                    memory[address] = rank, consumer, int(thread), *values[element]
        assert max(memory) + 4 == exchanged_bytes(variant) == 4 * len(memory)
        values = self.evaluate(given)
        sums, first = self.results
        found = {}
        for block, result in enumerate(sums):
            for i, element in values[result].items():
                number, terms = values[element]
                found[block, i] = [memory[address + 4 * number] for address in terms]
        return found, values[first]

    def evaluate(self, given: dict[str, Any]) -> Any:
        """`Trace.evaluate`, and structs as dicts, addresses in other blocks as (block, address),
        sums of vectors as lists of addresses."""
        values = self.trace.evaluate(**given)
        for one in self.trace.operations():
            operands = list(one.operands)
            if one.name == "llvm.extractvalue":
                block = int(self.trace.name_of(operands[0]).removeprefix("sums"))
                found: Any = (block, number_in(one.attributes["position"]))
            elif one.name == "nvvm.mapa":
                found = values[operands[1]], values[operands[0]]
            elif one.name == "llvm.getelementptr":
                peer, address = values[operands[0]]
                found = peer, address + number_in(one.attributes["rawConstantIndices"])
            elif one.name == "llvm.load":
                found = [values[operands[0]]]
            elif one.name == "arith.addf":
                found = values[operands[0]] + values[operands[1]]
            elif one.name == "vector.extract":
                found = number_in(one.attributes["static_position"]), values[operands[0]]
            elif one.name == "llvm.mlir.undef":
                found = {}
            elif one.name == "llvm.insertvalue":
                place = number_in(one.attributes["position"])
                found = {**values[operands[0]], place: operands[1]}
            else:
                continue
            values[one.results[0]] = found
        return values


def number_in(attribute: Any) -> int:
    """The one of an array."""
    [number] = re.findall(r": (\d+)>", str(attribute))
    return int(number)


@pytest.mark.parametrize("cluster_split_k", [2, 3, 8])
@pytest.mark.parametrize("k", [0, 1, 64, 65, 200, 1024, 4100])
def test_blocks_divide_k(cluster_split_k: int, k: int) -> None:
    """Each step of K is one block's; each block has one step at least, if behind the end of K."""
    stages, done = -(-k // 64), []
    with traced(rank="i32", k="i32", stages="i32") as trace:
        split_k = ClusterSplitK(trace.b, Variant(64, 1, cluster_split_k=cluster_split_k))
        split_k.rank = trace["rank"]
        own, begin = split_k.divide(trace["stages"], trace["k"])
        for rank in range(cluster_split_k):
            values = trace.evaluate(rank=rank, k=k, stages=stages)
            first, count = values[begin], values[own]
            assert count >= 1
            assert first % 64 == 0
            done += [first + 64 * i for i in range(count) if first + 64 * i < max(k, 1)]
    assert sorted(done) == [64 * i for i in range(stages)]


@pytest.mark.parametrize(
    "variant",
    [
        Variant(n=64, consumers=1, cluster_split_k=9),
        Variant(n=128, m_blocks=2, ping_pong=True, cluster_split_k=2),
        # No room for the sums in the place of the ring.
        Variant(n=256, consumers=2, stages=2, cluster_split_k=2),
        # More rows than are fetched, and rows that are not known.
        Variant(n=64, consumers=1, small_m=16),
        Variant(n=64, consumers=2, small_m=64),
    ],
)
def test_what_cannot_be_split_is_refused(variant: Variant) -> None:
    assert not WGMMA.can_implement(problem(), variant)


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
