"""Exchanges on the CPU device of values whose types are no array's, and what has no CPU form.

What arrays hold is exchanged in tests/e2e.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, build, gpu_module
from unit.targets.cpu.exchange_kernels import (
    FIRST,
    LANE,
    LINEAR,
    THREADS,
    WARP,
    kernel,
    mapping,
    numbers,
    per_group,
)


def narrowed(name: str, type_: str, operation: str, back: str = "arith.extsi") -> str:
    """`operation` makes %s of %n, an i64 cut down to `type_`."""
    return mapping(
        name,
        "i64",
        "i64",
        f"""    %n = arith.trunci %x : i64 to {type_}
    {operation}
    %r = {back} %s : {type_} to i64""",
    )


XOR = "%s, %ok = gpu.shuffle xor %n, %c1, %c32"
REDUCE = "%s = gpu.subgroup_reduce"

NARROW = {
    "shuffle_i7": ("i7", f"{XOR} : i7"),
    "shuffle_i48": ("i48", f"{XOR} : i48"),
    "reduce_i7": ("i7", f"{REDUCE} minsi %n : (i7) -> i7"),
    "reduce_i48": ("i48", f"{REDUCE} add %n : (i48) -> i48"),
    "unsigned_i7": ("i7", f"{REDUCE} maxui %n : (i7) -> i7"),
    "clusters_i48": ("i48", f"{REDUCE} maxsi %n cluster(size = 4, stride = 2) : (i48) -> i48"),
    "block_i7": ("i7", "%s = gpu.all_reduce add %n {} : (i7) -> i7"),
    "block_i48": ("i48", "%s = gpu.all_reduce minsi %n {} : (i48) -> i48"),
}

# 84 bytes: more than a lane has room for at once.
VECTOR_LENGTH = 21
VECTOR = f"vector<{VECTOR_LENGTH}xf32>"


def vectors(name: str, operation: str) -> str:
    """`operation` makes %s of %v, a long vector."""
    memref = f"memref<?x{VECTOR_LENGTH}xf32>"
    return kernel(
        name,
        f"%in: {memref}, %out: {memref}",
        f"""    %c0 = arith.constant 0 : index
    %v = vector.load %in[%t, %c0] : {memref}, {VECTOR}
    {operation}
    vector.store %s, %out[%t, %c0] : {memref}, {VECTOR}""",
    )


BROADCAST = "%s = gpu.subgroup_broadcast %n, specific_lane %c5"

BROADCASTS = {
    "broadcast_index": f"""    %n = arith.index_cast %x : i64 to index
    {BROADCAST} : index
    %r = arith.index_cast %s : index to i64""",
    "broadcast_indices": f"""    %i = arith.index_cast %x : i64 to index
    %n = vector.broadcast %i : index to vector<5xindex>
    {BROADCAST} : vector<5xindex>
    %e = vector.extract %s[4] : index from vector<5xindex>
    %r = arith.index_cast %e : index to i64""",
    "broadcast_pointer": f"""    %n = llvm.inttoptr %x : i64 to !llvm.ptr
    {BROADCAST} : !llvm.ptr
    %r = llvm.ptrtoint %s : !llvm.ptr to i64""",
    "broadcast_complex": f"""    %re = arith.bitcast %x : i64 to f64
    %im = arith.negf %re : f64
    %n = complex.create %re, %im : complex<f64>
    {BROADCAST} : complex<f64>
    %im2 = complex.im %s : complex<f64>
    %re2 = arith.negf %im2 : f64
    %r = arith.bitcast %re2 : f64 to i64""",
    "broadcast_rows": f"""    %v = vector.broadcast %x : i64 to vector<2x3xi64>
    %n = arith.addi %v, %v : vector<2x3xi64>
    {BROADCAST} : vector<2x3xi64>
    %d = vector.extract %s[1, 2] : i64 from vector<2x3xi64>
    %two = arith.constant 2 : i64
    %r = arith.divsi %d, %two : i64""",
    "broadcast_f8": f"""    %b = arith.trunci %x : i64 to i8
    %n = arith.bitcast %b : i8 to f8E4M3FN
    {BROADCAST} : f8E4M3FN
    %c = arith.bitcast %s : f8E4M3FN to i8
    %r = arith.extui %c : i8 to i64""",
}

IN_FUNCTION = """
  func.func private @neighbour(%x: i64) -> i64 {
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %s, %ok = gpu.shuffle down %x, %c1, %c32 : i64
    return %s : i64
  }""" + mapping(
    "functions",
    "i64",
    "i64",
    """    %y = func.call @neighbour(%x) : (i64) -> i64
    %r = func.call @neighbour(%y) : (i64) -> i64""",
)


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    ends = {"unsigned_i7": "arith.extui"}
    return CpuDevice(
        gpu_module(
            *(
                narrowed(name, type_, operation, ends.get(name, "arith.extsi"))
                for name, (type_, operation) in NARROW.items()
            ),
            vectors("vector_shuffle", f"%s, %ok = gpu.shuffle xor %v, %c1, %c32 : {VECTOR}"),
            vectors("vector_reduce", f"%s = gpu.subgroup_reduce add %v : ({VECTOR}) -> {VECTOR}"),
            *(mapping(name, "i64", "i64", body) for name, body in BROADCASTS.items()),
            IN_FUNCTION,
        ),
        tmp_path_factory.mktemp("exchange"),
        request.param,
    )


def signed(values: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """The low bits of integers as numbers with a sign."""
    return values << (64 - bits) >> (64 - bits)


NEIGHBOUR = np.where((LINEAR ^ 1) < THREADS, LINEAR ^ 1, LINEAR)
NARROW_RESULTS = {
    "shuffle_i7": lambda x: signed(x, 7)[NEIGHBOUR],
    "shuffle_i48": lambda x: signed(x, 48)[NEIGHBOUR],
    "reduce_i7": lambda x: per_group(signed(x, 7), FIRST, np.min),
    "reduce_i48": lambda x: signed(per_group(x, FIRST, np.sum), 48),
    "unsigned_i7": lambda x: per_group(x & 127, FIRST, np.max),
    "clusters_i48": lambda x: per_group(signed(x, 48), LINEAR & ~6, np.max),
    "block_i7": lambda x: signed(np.full_like(x, np.sum(x)), 7),
    "block_i48": lambda x: np.full_like(x, np.min(signed(x, 48))),
}


@pytest.mark.parametrize("name", NARROW)
def test_integers_of_any_width(device: CpuDevice, name: str) -> None:
    """Integers that fill no byte, or no power of two of them, keep their bits and their sign."""
    x, out = numbers(1), np.zeros(THREADS, np.int64)
    device.run(name, 1, THREADS, x, out)
    np.testing.assert_array_equal(out, NARROW_RESULTS[name](x))


@pytest.mark.parametrize("name", BROADCASTS)
def test_broadcasts_of_any_type(device: CpuDevice, name: str) -> None:
    """Indices, pointers, complex numbers, vectors of rows and floats of 8 bits are sent, too."""
    x, out = numbers(2) >> 1, np.zeros(THREADS, np.int64)
    if name == "broadcast_f8":
        x &= 255
    device.run(name, 1, THREADS, x, out)
    np.testing.assert_array_equal(out, x[FIRST + 5])


def test_long_vectors_are_shuffled_in_pieces(device: CpuDevice) -> None:
    """A vector that has no room in a lane's slot arrives whole."""
    x = np.random.default_rng(3).standard_normal((THREADS, VECTOR_LENGTH), np.float32)
    out = np.zeros_like(x)
    device.run("vector_shuffle", 1, THREADS, x, out)
    np.testing.assert_array_equal(out, x[NEIGHBOUR])


def test_long_vectors_are_reduced_in_pieces(device: CpuDevice) -> None:
    """Each element of a long vector is reduced by itself."""
    x = np.random.default_rng(4).integers(-9, 9, (THREADS, VECTOR_LENGTH)).astype(np.float32)
    out = np.zeros_like(x)
    device.run("vector_reduce", 1, THREADS, x, out)
    for column in range(VECTOR_LENGTH):
        np.testing.assert_array_equal(out[:, column], per_group(x[:, column], FIRST, np.sum))


def test_functions_exchange_for_their_callers(device: CpuDevice) -> None:
    """A function that exchanges values can be called several times."""
    x, out = numbers(8), np.zeros(THREADS, np.int64)
    device.run("functions", 1, THREADS, x, out)
    after = np.where((LANE < WARP - 1) & (LINEAR + 1 < THREADS), LINEAR + 1, LINEAR)
    np.testing.assert_array_equal(out, x[after][after])


REFUSED = {
    "wide": (
        "%v = arith.extui %c1 : i32 to i300\n    %s, %ok = gpu.shuffle xor %v, %c1, %c32 : i300",
        "gpu.shuffle at test.mlir:9:15: threads cannot exchange values of type i300 on the CPU",
    ),
    "memref": (
        "%v = memref.alloca() : memref<4xf32>\n"
        "    %s = gpu.subgroup_broadcast %v, first_active_lane : memref<4xf32>",
        "gpu.subgroup_broadcast at test.mlir:9:10: "
        "threads cannot exchange values of type memref<4xf32> on the CPU",
    ),
    "clusters": (
        "%s = gpu.subgroup_reduce add %c1 cluster(size = 16, stride = 4) : (i32) -> i32",
        "gpu.subgroup_reduce at test.mlir:8:10: clusters of 16 lanes with a stride of 4 "
        "do not fit into a warp of 32",
    ),
    "barrier": (
        "%n = gpu.initialize_named_barrier %c1 : i32 -> !gpu.named_barrier\n"
        "    cf.br ^next(%n : !gpu.named_barrier)\n"
        "  ^next(%b: !gpu.named_barrier):\n"
        "    gpu.barrier named(%b : !gpu.named_barrier)",
        "gpu.barrier at test.mlir:11:5: it does not say by itself which barrier it is",
    ),
    "mask": (
        "%s = nvvm.redux.sync add %c1, %c5 : i32 -> i32",
        "nvvm.redux.sync at test.mlir:8:10: a mask other than the constant -1 has no CPU form here",
    ),
    "floats": (
        "%f = arith.uitofp %c1 : i32 to f32\n    %s = nvvm.redux.sync fmin %f, %all : f32 -> f32",
        "nvvm.redux.sync at test.mlir:9:10: "
        "reductions of floats by redux have no CPU form; use gpu.subgroup_reduce",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_exchanges_without_a_cpu_form(case: str) -> None:
    """What cannot be exchanged is said by name, with its place."""
    body, reason = REFUSED[case]
    (found,) = build(gpu_module(kernel("k", "", f"    {body}"))).kernels
    assert found.why_not == reason


def test_warps_have_their_own_slots(tmp_path: Path) -> None:
    """As large a block as there is: warps do not disturb each other."""
    device = CpuDevice(
        gpu_module(
            mapping("k", "i64", "i64", "    %r = gpu.subgroup_reduce add %x : (i64) -> i64")
        ),
        tmp_path,
    )
    x = np.random.default_rng(9).integers(-(2**60), 2**60, 1024)
    out = np.zeros_like(x)
    device.run("k", 1, 1024, x, out)
    np.testing.assert_array_equal(out, np.repeat(x.reshape(32, 32).sum(1), 32))
