"""What the nvvm dialect has for the lanes of a warp, on the CPU device: as the PTX manual says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module
from unit.targets.cpu.exchange_kernels import (
    FIRST,
    LANE,
    LINEAR,
    THREADS,
    WARP,
    kernel,
    linear_id,
    mapping,
    numbers,
    per_group,
)

SHUFFLES = ("idx", "up", "down", "bfly")
# (offset, clamp and segment mask): the whole warp, segments of 8 lanes, the first 16 lanes.
PACKED = [(3, 31), (9, 31), (3, 31 | 24 << 8), (5, 15), (35, 31), (1, 0), (2, 24 << 8)]


def nvvm_shuffle(mode: str) -> str:
    type_ = "!llvm.struct<(f32, i1)>"
    arguments = "%in: memref<?xf32>, %out: memref<?xf32>, %valid: memref<?xi1>, %o: i32, %p: i32"
    return kernel(
        f"shfl_{mode}",
        arguments,
        f"""    %x = memref.load %in[%t] : memref<?xf32>
    %s = nvvm.shfl.sync {mode} %all, %x, %o, %p {{return_value_and_is_valid}} : f32 -> {type_}
    %v = llvm.extractvalue %s[0] : {type_}
    %ok = llvm.extractvalue %s[1] : {type_}
    %w = nvvm.shfl.sync {mode} %all, %x, %o, %p : f32 -> f32
    %same = arith.cmpf oeq, %v, %w : f32
    %r = arith.andi %ok, %same : i1
    memref.store %v, %out[%t] : memref<?xf32>
    memref.store %r, %valid[%t] : memref<?xi1>""",
    )


REDUX = ("add", "and", "or", "xor", "min", "max", "umin", "umax")
VOTES = ("any", "all", "uni")
REGISTERS = {
    "tid.x": LINEAR % 5,
    "tid.y": LINEAR // 5 % 3,
    "tid.z": LINEAR // 15,
    "ntid.x": LINEAR * 0 + 5,
    "ntid.y": LINEAR * 0 + 3,
    "ntid.z": LINEAR * 0 + 5,
    "ctaid.x": LINEAR * 0 + 1,
    "ctaid.y": LINEAR * 0 + 2,
    "ctaid.z": LINEAR * 0 + 3,
    "nctaid.x": LINEAR * 0 + 4,
    "nctaid.y": LINEAR * 0 + 5,
    "nctaid.z": LINEAR * 0 + 6,
    "laneid": LANE,
    "warpsize": LINEAR * 0 + WARP,
    "lanemask.eq": 1 << LANE,
    "lanemask.lt": (1 << LANE) - 1,
    "lanemask.le": (2 << LANE) - 1,
    "lanemask.gt": ~((2 << LANE) - 1),
    "lanemask.ge": ~((1 << LANE) - 1),
}


def register(name: str) -> str:
    return f"""  gpu.func @{name.replace(".", "_")}(%out: memref<?xi32>) kernel {{
{linear_id("%t")}
    %r = nvvm.read.ptx.sreg.{name} : i32
    memref.store %r, %out[%t] : memref<?xi32>
    gpu.return
  }}"""


def vote(kind: str) -> str:
    result = "i32" if kind == "ballot" else "i1"
    return kernel(
        f"vote_{kind}",
        f"%in: memref<?xi1>, %out: memref<?x{result}>, %mask: i32",
        f"""    %x = memref.load %in[%t] : memref<?xi1>
    %r = nvvm.vote.sync {kind} %mask, %x -> {result}
    memref.store %r, %out[%t] : memref<?x{result}>""",
    )


MATCH = kernel(
    "match",
    "%in: memref<?xi64>, %out: memref<?xi32>, %same: memref<?xi32>, %is_same: memref<?xi1>",
    """    %x = memref.load %in[%t] : memref<?xi64>
    %r = nvvm.match.sync any %all, %x : i64 -> i32
    memref.store %r, %out[%t] : memref<?xi32>
    %p = nvvm.match.sync all %all, %x : i64 -> !llvm.struct<(i32, i1)>
    %bits = llvm.extractvalue %p[0] : !llvm.struct<(i32, i1)>
    %ok = llvm.extractvalue %p[1] : !llvm.struct<(i32, i1)>
    memref.store %bits, %same[%t] : memref<?xi32>
    memref.store %ok, %is_same[%t] : memref<?xi1>""",
)

BARRIERS = """
  memref.global "private" @w : memref<75xi32, #gpu.address_space<workgroup>>
  gpu.func @barriers(%in: memref<?xi32>, %out: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %last = arith.constant 74 : index
    %all = arith.constant -1 : i32
    %id = arith.constant 3 : i32
    %w = memref.get_global @w : memref<75xi32, #gpu.address_space<workgroup>>
    %x = memref.load %in[%t] : memref<?xi32>
    memref.store %x, %w[%t] : memref<75xi32, #gpu.address_space<workgroup>>
    nvvm.bar.warp.sync %all : i32
    nvvm.barrier
    %from = arith.subi %last, %t : index
    %y = memref.load %w[%from] : memref<75xi32, #gpu.address_space<workgroup>>
    nvvm.barrier id = %id
    memref.store %y, %w[%t] : memref<75xi32, #gpu.address_space<workgroup>>
    nvvm.barrier
    %z = memref.load %w[%from] : memref<75xi32, #gpu.address_space<workgroup>>
    %r = arith.addi %y, %z : i32
    memref.store %r, %out[%t] : memref<?xi32>
    gpu.return
  }"""


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    return CpuDevice(
        gpu_module(
            *map(nvvm_shuffle, SHUFFLES),
            *map(register, REGISTERS),
            *map(vote, (*VOTES, "ballot")),
            *(
                mapping(
                    f"redux_{kind}",
                    "i32",
                    "i32",
                    f"    %r = nvvm.redux.sync {kind} %x, %all : i32 -> i32",
                )
                for kind in REDUX
            ),
            MATCH,
            BARRIERS,
        ),
        tmp_path_factory.mktemp("nvvm"),
        request.param,
    )


def shfl_source(mode: str, lane: int, offset: int, packed: int) -> tuple[int, bool]:
    """The PTX manual's formulas for the source lane, and whether it is in range."""
    offset, clamp, segment = offset & 31, packed & 31, packed >> 8 & 31
    last = lane & segment | clamp & ~segment
    source = {
        "up": lane - offset,
        "down": lane + offset,
        "bfly": lane ^ offset,
        "idx": lane & segment | offset & ~segment,
    }[mode]
    is_valid = source >= last if mode == "up" else source <= last
    return (source if is_valid else lane), is_valid


@pytest.mark.parametrize("mode", SHUFFLES)
@pytest.mark.parametrize(("offset", "packed"), PACKED)
def test_nvvm_shuffles(device: CpuDevice, mode: str, offset: int, packed: int) -> None:
    """shfl.sync with clamp and segment mask; who asks a lane that does not exist gets its own."""
    x = np.random.default_rng(5).standard_normal(THREADS, np.float32)
    out, valid = np.zeros_like(x), np.zeros(THREADS, np.bool_)
    device.run(f"shfl_{mode}", 1, THREADS, x, out, valid, np.int32(offset), np.int32(packed))
    found = [shfl_source(mode, int(lane), offset, packed) for lane in LANE]
    sources = FIRST + [source for source, _ in found]
    np.testing.assert_array_equal(out, x[np.where(sources < THREADS, sources, LINEAR)])
    np.testing.assert_array_equal(valid, [is_valid for _, is_valid in found])


VOTERS = {
    "some": LINEAR % 3 == 0,
    "none": LINEAR < 0,
    "every": LINEAR >= 0,
    "by warp": LINEAR >= WARP,
}


@pytest.mark.parametrize("voters", VOTERS)
@pytest.mark.parametrize("mask", [-1, 0x0000FFF0])
def test_nvvm_votes(device: CpuDevice, voters: str, mask: int) -> None:
    """Votes count the lanes that the mask names, and no lane that does not exist."""
    x = VOTERS[voters]
    counted = (mask >> LANE & 1).astype(np.bool_)
    bits = np.array([sum(1 << int(b) for b in LANE[(f == FIRST) & x & counted]) for f in FIRST])
    everybody = np.array([sum(1 << int(b) for b in LANE[(f == FIRST) & counted]) for f in FIRST])
    expected = {
        "any": bits != 0,
        "all": bits == everybody,
        "uni": (bits == 0) | (bits == everybody),
        "ballot": bits.astype(np.uint32).view(np.int32),
    }
    for kind, result in expected.items():
        out = np.zeros_like(result)
        device.run(f"vote_{kind}", 1, THREADS, x, out, np.int32(mask))
        np.testing.assert_array_equal(out, result, kind)


def test_nvvm_match(device: CpuDevice) -> None:
    """Which lanes have the same value, and whether all have."""
    x = np.where(LINEAR < WARP, 2**40 + LINEAR % 3, 7)
    out, same = np.zeros((2, THREADS), np.int32)
    is_same = np.zeros(THREADS, np.bool_)
    device.run("match", 1, THREADS, x, out, same, is_same)
    bits = [
        sum(1 << int(b) for b in LANE[(f == FIRST) & (x == v)])
        for f, v in zip(FIRST, x, strict=True)
    ]
    np.testing.assert_array_equal(out.view(np.uint32), bits)
    np.testing.assert_array_equal(is_same, LINEAR >= WARP)
    np.testing.assert_array_equal(same.view(np.uint32), np.where(LINEAR >= WARP, bits, 0))


@pytest.mark.parametrize("kind", REDUX)
def test_nvvm_redux(device: CpuDevice, kind: str) -> None:
    """Reductions of i32, with sign and without."""
    x = numbers(6, 32).astype(np.int32)
    out = np.zeros_like(x)
    device.run(f"redux_{kind}", 1, THREADS, x, out)
    reduce: Any = {
        "add": lambda v: v.sum(dtype=np.int32),
        "and": np.bitwise_and.reduce,
        "or": np.bitwise_or.reduce,
        "xor": np.bitwise_xor.reduce,
        "min": np.min,
        "max": np.max,
        "umin": lambda v: v.view(np.uint32).min().view(np.int32),
        "umax": lambda v: v.view(np.uint32).max().view(np.int32),
    }[kind]
    np.testing.assert_array_equal(out, per_group(x, FIRST, reduce))


@pytest.mark.parametrize("name", REGISTERS)
def test_nvvm_registers(device: CpuDevice, name: str) -> None:
    """Special registers of a thread in a block of three dimensions."""
    out = np.zeros(THREADS, np.int32)
    device.run_block(name.replace(".", "_"), (1, 2, 3), (4, 5, 6), (5, 3, 5), out)
    np.testing.assert_array_equal(out, REGISTERS[name].astype(np.int64).astype(np.int32))


def test_nvvm_barriers(device: CpuDevice) -> None:
    """nvvm.barrier, with a number and without, is the block's."""
    x, out = numbers(7, 20).astype(np.int32), np.zeros(THREADS, np.int32)
    device.run("barriers", 1, THREADS, x, out)
    np.testing.assert_array_equal(out, x[::-1] + x)
