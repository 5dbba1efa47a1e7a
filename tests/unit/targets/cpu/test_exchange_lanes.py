"""Exchanges that not all lanes of a warp come to: in branches, after some have ended, in loops.

What is checked here is defined on a GPU, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module
from unit.targets.cpu.exchange_kernels import FIRST, LANE, LINEAR, THREADS, WARP, kernel, per_group

I32 = "memref<?xi32>"
F64 = "memref<?xf64>"

# Lanes below 16 exchange words twice as long as all of them do afterwards.
HALF_THEN_ALL = kernel(
    "half_then_all",
    f"%in: {F64}, %words: {I32}, %half: {F64}, %out: {I32}",
    f"""    %c16 = arith.constant 16 : i32
    %lane = gpu.lane_id
    %end = arith.constant 16 : index
    %x = memref.load %in[%t] : {F64}
    %y = memref.load %words[%t] : {I32}
    %is_low = arith.cmpi ult, %lane, %end : index
    scf.if %is_low {{
      %s, %ok = gpu.shuffle xor %x, %c5, %c16 : f64
      memref.store %s, %half[%t] : {F64}
    }}
    %r, %yes = gpu.shuffle xor %y, %c1, %c32 : i32
    memref.store %r, %out[%t] : {I32}""",
)

# Odd and even lanes go different ways, and exchange on both.
BOTH_WAYS = kernel(
    "both_ways",
    f"%in: {I32}, %votes: {I32}, %first: {I32}, %sums: {I32}",
    f"""    %lane = gpu.lane_id
    %two = arith.constant 2 : index
    %zero = arith.constant 0 : index
    %n0 = arith.constant 0 : i32
    %x = memref.load %in[%t] : {I32}
    %is_set = arith.cmpi slt, %x, %n0 : i32
    %rest = arith.remui %lane, %two : index
    %is_even = arith.cmpi eq, %rest, %zero : index
    scf.if %is_even {{
      %v = gpu.ballot %is_set : i32
      %f = gpu.subgroup_broadcast %x, first_active_lane : i32
      %s = gpu.subgroup_reduce add %x : (i32) -> i32
      memref.store %v, %votes[%t] : {I32}
      memref.store %f, %first[%t] : {I32}
      memref.store %s, %sums[%t] : {I32}
    }} else {{
      %s = gpu.subgroup_reduce minsi %x : (i32) -> i32
      %v = gpu.ballot %is_set : i32
      %f = gpu.subgroup_broadcast %x, first_active_lane : i32
      memref.store %s, %sums[%t] : {I32}
      memref.store %v, %votes[%t] : {I32}
      memref.store %f, %first[%t] : {I32}
    }}""",
)

# Threads from a limit on end at once; the others go on without them.
SOME_END = f"""
  gpu.func @some_end(%in: {I32}, %votes: {I32}, %sums: {I32}, %limit: index) kernel {{
    %t = gpu.thread_id x
    %all = arith.constant -1 : i32
    %true = arith.constant true
    %is_in = arith.cmpi ult, %t, %limit : index
    cf.cond_br %is_in, ^work, ^end
  ^work:
    %x = memref.load %in[%t] : {I32}
    %v = gpu.ballot %true : i32
    memref.store %v, %votes[%t] : {I32}
    %s = nvvm.redux.sync umax %x, %all : i32 -> i32
    memref.store %s, %sums[%t] : {I32}
    cf.br ^end
  ^end:
    gpu.return
  }}"""

# Lane l turns l + 1 times; in each turn, those that are still there count each other.
DIFFERENT_TURNS = kernel(
    "different_turns",
    f"%out: {I32}",
    f"""    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n0 = arith.constant 0 : i32
    %true = arith.constant true
    %lane = gpu.lane_id
    %end = arith.addi %lane, %one : index
    %r = scf.for %i = %zero to %end step %one iter_args(%sum = %n0) -> i32 {{
      %v = gpu.ballot %true : i32
      %n = math.ctpop %v : i32
      %next = arith.addi %sum, %n : i32
      scf.yield %next : i32
    }}
    memref.store %r, %out[%t] : {I32}""",
)

# nvvm's masks name the lanes that come by.
MASKED = kernel(
    "masked",
    f"%in: {I32}, %votes: {I32}, %same: {I32}",
    f"""    %mask = arith.constant 0x00FFFF00 : i32
    %lane = nvvm.read.ptx.sreg.lanemask.eq : i32
    %n0 = arith.constant 0 : i32
    %x = memref.load %in[%t] : {I32}
    %own = arith.andi %lane, %mask : i32
    %is_named = arith.cmpi ne, %own, %n0 : i32
    scf.if %is_named {{
      %is_set = arith.cmpi slt, %x, %n0 : i32
      nvvm.bar.warp.sync %mask : i32
      %v = nvvm.vote.sync ballot %mask, %is_set -> i32
      %m = nvvm.match.sync any %mask, %x : i32 -> i32
      memref.store %v, %votes[%t] : {I32}
      memref.store %m, %same[%t] : {I32}
    }}""",
)


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    return CpuDevice(
        gpu_module(HALF_THEN_ALL, BOTH_WAYS, SOME_END, DIFFERENT_TURNS, MASKED),
        tmp_path_factory.mktemp("lanes"),
        request.param,
    )


def integers(seed: int, low: int = -(2**31), high: int = 2**31) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, high, THREADS).astype(np.int32)


def bits(lanes: np.ndarray[Any, Any]) -> np.int32:
    """The lanes of one warp, given by threads, as bits."""
    return np.array([1 << int(lane) for lane in lanes % WARP], np.int64).sum().astype(np.int32)


def test_some_lanes_exchange_before_the_others(device: CpuDevice) -> None:
    """Lanes that wait at a later exchange do not disturb an earlier one of other lanes."""
    x = np.random.default_rng(1).standard_normal(THREADS)
    words = integers(2)
    half, out = np.zeros_like(x), np.zeros_like(words)
    device.run("half_then_all", 1, THREADS, x, words, half, out)
    source = np.where((LINEAR ^ 5) < THREADS, LINEAR ^ 5, LINEAR)
    np.testing.assert_array_equal(half, np.where(LANE < 16, x[source], 0))
    np.testing.assert_array_equal(out, words[np.where((LINEAR ^ 1) < THREADS, LINEAR ^ 1, LINEAR)])


def test_lanes_exchange_on_both_ways(device: CpuDevice) -> None:
    """In a branch, the lanes that take it vote, reduce and broadcast among themselves."""
    x = integers(3)
    votes, first, sums = np.zeros((3, THREADS), np.int32)
    device.run("both_ways", 1, THREADS, x, votes, first, sums)
    is_even = LANE % 2 == 0
    group = FIRST + LANE % 2
    np.testing.assert_array_equal(first, x[group])
    voters = per_group(LINEAR, group, lambda threads: bits(threads[x[threads] < 0]))
    np.testing.assert_array_equal(votes, voters)
    added = per_group(x, group, lambda values: values.sum(dtype=np.int32))
    np.testing.assert_array_equal(sums, np.where(is_even, added, per_group(x, group, np.min)))


@pytest.mark.parametrize("limit", [0, 1, 31, 32, 40, THREADS])
def test_ended_lanes_take_no_part(device: CpuDevice, limit: int) -> None:
    """Lanes that have ended have no vote, and no value in a reduction."""
    x = integers(4)
    votes, sums = np.zeros((2, THREADS), np.int32)
    device.run("some_end", 1, THREADS, x, votes, sums, np.int64(limit))
    there = limit > LINEAR
    voters = per_group(LINEAR, FIRST, lambda threads: bits(threads[threads < limit]))
    np.testing.assert_array_equal(votes, np.where(there, voters, 0))
    group = np.where(there, FIRST, -1)
    largest = per_group(x.view(np.uint32), group, np.max).view(np.int32)
    np.testing.assert_array_equal(sums, np.where(there, largest, 0))


def test_lanes_leave_a_loop_one_by_one(device: CpuDevice) -> None:
    """In turn i of the loop, the lanes from i on are left."""
    out = np.zeros(THREADS, np.int32)
    device.run("different_turns", 1, THREADS, out)
    lanes = np.where(FIRST + WARP <= THREADS, WARP, THREADS - FIRST)
    turns = (LANE + 1) * lanes - LANE * (LANE + 1) // 2
    np.testing.assert_array_equal(out, turns)


def test_masks_name_the_lanes_that_come(device: CpuDevice) -> None:
    """Operations with the mask of a branch's lanes, inside that branch."""
    x = integers(5, -2, 3)
    votes, same = np.zeros((2, THREADS), np.int32)
    device.run("masked", 1, THREADS, x, votes, same)
    is_named = (LANE >= 8) & (LANE < 24)
    group = np.where(is_named, FIRST, -1)
    voters = per_group(LINEAR, group, lambda threads: bits(threads[x[threads] < 0]))
    np.testing.assert_array_equal(votes, np.where(is_named, voters, 0))
    alike = per_group(LINEAR, np.where(is_named, FIRST * 8 + x + 2, -1), bits)
    np.testing.assert_array_equal(same, np.where(is_named, alike, 0))
