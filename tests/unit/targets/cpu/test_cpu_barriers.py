"""Threads that wait for each other: each kernel's answer, and which kind of function it became."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, DeadlockError, build, gpu_module

SHARED = "memref<64xi32, #gpu.address_space<workgroup>>"
# Each takes x and y of 64 i32, and a number, for blocks of 64 threads.
HEAD = (
    "gpu.func @{name}(%x: memref<64xi32>, %y: memref<64xi32>, %n: index) "
    f"workgroup(%w: {SHARED}) kernel {{attributes}} {{{{"
    """
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %c64 = arith.constant 64 : index
      %other = arith.subi %c63, %t : index
      %v = memref.load %x[%t] : memref<64xi32>
    """
)

# name → (body, is it a function of whole blocks)
BODIES: dict[str, tuple[str, bool]] = {
    "reverse": (
        f"""
        memref.store %v, %w[%t] : {SHARED}
        gpu.barrier
        %r = memref.load %w[%other] : {SHARED}
        memref.store %r, %y[%t] : memref<64xi32>
        """,
        True,
    ),
    "in_a_loop": (
        f"""
        %last = scf.for %i = %c0 to %n step %c1 iter_args(%mine = %v) -> i32 {{
          memref.store %mine, %w[%t] : {SHARED}
          gpu.barrier
          %theirs = memref.load %w[%other] : {SHARED}
          gpu.barrier
          %sum = arith.addi %mine, %theirs : i32
          scf.yield %sum : i32
        }}
        memref.store %last, %y[%t] : memref<64xi32>
        """,
        True,
    ),
    "in_a_loop_over_own_indices": (
        # The same number of turns for all threads, which nobody can tell beforehand.
        f"""
        %end = arith.muli %n, %c64 : index
        scf.for %i = %t to %end step %c64 {{
          %place = arith.remui %i, %c64 : index
          memref.store %v, %w[%place] : {SHARED}
          gpu.barrier
          %r = memref.load %w[%other] : {SHARED}
          memref.store %r, %y[%t] : memref<64xi32>
          gpu.barrier
        }}
        """,
        False,
    ),
    "in_a_branch_for_all": (
        f"""
        memref.store %v, %w[%t] : {SHARED}
        %go = arith.cmpi sgt, %n, %c1 : index
        %r = scf.if %go -> i32 {{
          gpu.barrier
          %theirs = memref.load %w[%other] : {SHARED}
          scf.yield %theirs : i32
        }} else {{
          scf.yield %v : i32
        }}
        memref.store %r, %y[%t] : memref<64xi32>
        """,
        True,
    ),
    "on_what_is_loaded": (
        # Thread 0 decides for all, in shared memory.
        f"""
        %is_first = arith.cmpi eq, %t, %c0 : index
        %count = arith.index_cast %n : index to i32
        scf.if %is_first {{
          memref.store %count, %w[%c0] : {SHARED}
        }}
        gpu.barrier
        %loaded = memref.load %w[%c0] : {SHARED}
        %turns = arith.index_cast %loaded : i32 to index
        gpu.barrier
        %last = scf.for %i = %c0 to %turns step %c1 iter_args(%mine = %v) -> i32 {{
          memref.store %mine, %w[%t] : {SHARED}
          gpu.barrier
          %theirs = memref.load %w[%other] : {SHARED}
          gpu.barrier
          %sum = arith.addi %mine, %theirs : i32
          scf.yield %sum : i32
        }}
        memref.store %last, %y[%t] : memref<64xi32>
        """,
        True,
    ),
    "behind_branches": (
        f"""
        %low = arith.cmpi ult, %t, %n : index
        %mine = scf.if %low -> i32 {{
          %doubled = arith.addi %v, %v : i32
          scf.yield %doubled : i32
        }} else {{
          scf.yield %v : i32
        }}
        memref.store %mine, %w[%t] : {SHARED}
        gpu.barrier
        scf.if %low {{
          %r = memref.load %w[%other] : {SHARED}
          %s = arith.addi %r, %mine : i32
          memref.store %s, %y[%t] : memref<64xi32>
        }} else {{
          memref.store %mine, %y[%t] : memref<64xi32>
        }}
        """,
        True,
    ),
    "private_memory": (
        # Lives across the barrier, and is indexed: no register. Two loops use it.
        f"""
        %own = memref.alloca() : memref<8xi32>
        %c8 = arith.constant 8 : index
        scf.for %i = %c0 to %c8 step %c1 {{
          %k = arith.index_cast %i : index to i32
          %s = arith.addi %v, %k : i32
          memref.store %s, %own[%i] : memref<8xi32>
        }}
        scf.for %i = %c0 to %c8 step %c1 {{
          %k = memref.load %own[%i] : memref<8xi32>
          %s = arith.addi %k, %v : i32
          memref.store %s, %own[%i] : memref<8xi32>
        }}
        memref.store %v, %w[%t] : {SHARED}
        gpu.barrier
        %theirs = memref.load %w[%other] : {SHARED}
        %where = arith.remui %t, %c8 : index
        %a = memref.load %own[%where] : memref<8xi32>
        %r = arith.addi %a, %theirs : i32
        memref.store %r, %y[%t] : memref<64xi32>
        """,
        True,
    ),
}


def expected(name: str, x: np.ndarray, n: int) -> np.ndarray:
    t = np.arange(64)
    back = x[::-1]
    if name in ("reverse", "in_a_loop_over_own_indices"):
        return back
    if name in ("in_a_loop", "on_what_is_loaded"):
        mine = x
        for _ in range(n):
            mine = mine + mine[::-1]
        return mine
    if name == "in_a_branch_for_all":
        return back if n > 1 else x
    if name == "behind_branches":
        mine = np.where(t < n, 2 * x, x)
        return np.where(t < n, mine[::-1] + mine, mine)
    assert name == "private_memory"
    return 2 * x + t % 8 + back


def kernel(name: str, body: str, attributes: str = "") -> str:
    return HEAD.format(name=name, attributes=attributes) + body + "gpu.return }"


KNOWN = "attributes {known_block_size = array<i32: 64, 1, 1>}"


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    kernels = [kernel(name, body) for name, (body, _) in BODIES.items()]
    kernels += [kernel(f"{name}_known", body, KNOWN) for name, (body, _) in BODIES.items()]
    return CpuDevice(gpu_module(*kernels), tmp_path_factory.mktemp("barriers"), request.param)


@pytest.mark.parametrize("suffix", ["", "_known"])
@pytest.mark.parametrize("name", BODIES)
def test_barriers(device: CpuDevice, name: str, suffix: str) -> None:
    """What threads write before a barrier, all of them read behind it."""
    rng = np.random.default_rng(7)
    for n in (1, 2, 5):
        x = rng.integers(-1000, 1000, 64, np.int32)
        y = np.full_like(x, 77)
        device.run(name + suffix, 1, 64, x, y, np.int64(n))
        np.testing.assert_array_equal(y, expected(name, x, n))


def test_the_block_decides_together_where_that_is_certain() -> None:
    """Whole blocks run where control flow is uniform; threads take turns elsewhere."""
    kernels = build(gpu_module(*[kernel(name, body) for name, (body, _) in BODIES.items()]))
    found = {one.kernel: one.symbol is not None for one in kernels.kernels}
    assert found == {name: is_block for name, (_, is_block) in BODIES.items()}


def test_a_barrier_that_some_never_reach_is_found(tmp_path: Path) -> None:
    """The step function tells who waits where; the runtime's message is tested with the runtime."""
    body = """
      %low = arith.cmpi ult, %t, %n : index
      scf.if %low {
        gpu.barrier
      }
    """
    device = CpuDevice(gpu_module(kernel("k", body)), tmp_path)
    x = np.zeros(64, np.int32)
    device.run("k", 1, 64, x, x, np.int64(64))  # all of them
    device.run("k", 1, 64, x, x, np.int64(0))  # none
    with pytest.raises(DeadlockError):
        device.run("k", 1, 64, x, x, np.int64(16))
    (one,) = device.kernels.kernels
    assert [point.place for point in one.sync_points] == ["gpu.barrier at test.mlir:14:9"]


@pytest.mark.parametrize("size", [(64, 1, 1), (8, 4, 2), (1, 1, 64)])
def test_shapes_of_blocks(tmp_path: Path, size: tuple[int, int, int]) -> None:
    """Threads of two and three dimensions wait for each other alike."""
    text = f"""
    gpu.func @k(%x: memref<64xi32>, %y: memref<64xi32>) workgroup(%w: {SHARED}) kernel {{
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %tz = gpu.thread_id z
      %nx = gpu.block_dim x
      %ny = gpu.block_dim y
      %c63 = arith.constant 63 : index
      %a = arith.muli %tz, %ny : index
      %b = arith.addi %a, %ty : index
      %c = arith.muli %b, %nx : index
      %t = arith.addi %c, %tx : index
      %v = memref.load %x[%t] : memref<64xi32>
      memref.store %v, %w[%t] : {SHARED}
      gpu.barrier
      %other = arith.subi %c63, %t : index
      %r = memref.load %w[%other] : {SHARED}
      memref.store %r, %y[%t] : memref<64xi32>
      gpu.return
    }}"""
    device = CpuDevice(gpu_module(text), tmp_path)
    x = np.arange(64, dtype=np.int32)
    y = np.zeros_like(x)
    device.run("k", 1, size, x, y)
    np.testing.assert_array_equal(y, x[::-1])


def test_dynamic_and_static_shared_memory_are_apart(tmp_path: Path) -> None:
    """Attributions, a global in workgroup memory and dynamic memory do not overlap."""
    text = f"""
    memref.global "private" @g : {SHARED}
    gpu.func @k(%y: memref<3x64xi32>) workgroup(%w: {SHARED}) kernel {{
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %one = arith.constant 1000 : i32
      %g = memref.get_global @g : {SHARED}
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %d = memref.view %bytes[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
           to {SHARED}
      %v = arith.index_cast %t : index to i32
      %v1 = arith.addi %v, %one : i32
      %v2 = arith.addi %v1, %one : i32
      memref.store %v, %w[%t] : {SHARED}
      memref.store %v1, %g[%t] : {SHARED}
      memref.store %v2, %d[%t] : {SHARED}
      gpu.barrier
      %other = arith.subi %c63, %t : index
      %r = memref.load %w[%other] : {SHARED}
      %r1 = memref.load %g[%other] : {SHARED}
      %r2 = memref.load %d[%other] : {SHARED}
      memref.store %r, %y[%c0, %t] : memref<3x64xi32>
      memref.store %r1, %y[%c1, %t] : memref<3x64xi32>
      memref.store %r2, %y[%c2, %t] : memref<3x64xi32>
      gpu.return
    }}"""
    device = CpuDevice(gpu_module(text), tmp_path)
    assert device.kernels.kernels[0].shared_bytes == 2 * 64 * 4
    y = np.zeros((3, 64), np.int32)
    device.run("k", 1, 64, y, dynamic_shared_bytes=256)
    back = np.arange(64)[::-1]
    np.testing.assert_array_equal(y, [back, back + 1000, back + 2000])


def test_functions_that_wait(tmp_path: Path) -> None:
    """A barrier in a function that a kernel calls; one that calls itself has no CPU form."""
    helper = f"""
    func.func @swap(%w: {SHARED}, %t: index, %v: i32) -> i32 {{
      %c63 = arith.constant 63 : index
      memref.store %v, %w[%t] : {SHARED}
      gpu.barrier
      %other = arith.subi %c63, %t : index
      %r = memref.load %w[%other] : {SHARED}
      gpu.barrier
      return %r : i32
    }}"""
    body = f"""
      %a = func.call @swap(%w, %t, %v) : ({SHARED}, index, i32) -> i32
      %b = arith.addi %a, %v : i32
      %c = func.call @swap(%w, %t, %b) : ({SHARED}, index, i32) -> i32
      memref.store %c, %y[%t] : memref<64xi32>
    """
    device = CpuDevice(gpu_module(helper, kernel("k", body)), tmp_path)
    x = np.arange(64, dtype=np.int32) ** 2
    y = np.zeros_like(x)
    device.run("k", 1, 64, x, y, np.int64(0))
    np.testing.assert_array_equal(y, x + x[::-1])

    recursive = """
    func.func @again(%n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %go = arith.cmpi sgt, %n, %c0 : index
      scf.if %go {
        gpu.barrier
        %m = arith.subi %n, %c1 : index
        func.call @again(%m) : (index) -> ()
      }
      return
    }"""
    call = "func.call @again(%n) : (index) -> ()"
    (refused,) = build(gpu_module(recursive, kernel("k", call))).kernels
    assert refused.why_not is not None
    assert "synchronizes threads and calls itself" in refused.why_not
