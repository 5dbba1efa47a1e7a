"""Control flow and a thread's own memory on the CPU device."""

from __future__ import annotations

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module

GUARD_SIZE = 70


def _guarded(name: str, condition: str, known: str = "") -> str:
    """Threads of which `condition` (of %g, %n) holds add one to their element."""
    return f"""
  gpu.func @{name}(%out: memref<?xi32>, %n: index, %m: index) kernel {known} {{
    %g = gpu.global_id x
    %x = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    {condition}
    scf.if %c {{
      %old = memref.load %out[%g] : memref<?xi32>
      %new = arith.addi %old, %one : i32
      memref.store %new, %out[%g] : memref<?xi32>
    }}
    gpu.return
  }}"""


# Name: the condition in MLIR, and in NumPy of global id g, thread id x, n, m.
GUARDS = {
    "slt": ("%c = arith.cmpi slt, %g, %n : index", lambda g, x, n, m: g < n),
    "sle": ("%c = arith.cmpi sle, %g, %n : index", lambda g, x, n, m: g <= n),
    "sgt": ("%c = arith.cmpi sgt, %n, %g : index", lambda g, x, n, m: n > g),
    "sge": ("%c = arith.cmpi sge, %n, %g : index", lambda g, x, n, m: n >= g),
    "ult": (
        "%c = arith.cmpi ult, %g, %n : index",
        lambda g, x, n, m: g.astype(np.uint64) < np.uint64(n % 2**64),
    ),
    "uge": (
        "%c = arith.cmpi uge, %n, %g : index",
        lambda g, x, n, m: np.uint64(n % 2**64) >= g.astype(np.uint64),
    ),
    "not_less": ("%c = arith.cmpi sge, %g, %n : index", lambda g, x, n, m: g >= n),
    "equal": ("%c = arith.cmpi eq, %g, %n : index", lambda g, x, n, m: g == n),
    "both": (
        "%a = arith.cmpi slt, %g, %n : index\n%b = arith.cmpi slt, %x, %m : index\n"
        "%c = arith.andi %a, %b : i1",
        lambda g, x, n, m: (g < n) & (x < m),
    ),
    "one_of_two": (
        "%a = arith.cmpi slt, %g, %n : index\n%b = arith.cmpi sgt, %x, %m : index\n"
        "%c = arith.andi %a, %b : i1",
        lambda g, x, n, m: (g < n) & (x > m),
    ),
    "either": (
        "%a = arith.cmpi slt, %g, %n : index\n%b = arith.cmpi slt, %x, %m : index\n"
        "%c = arith.ori %a, %b : i1",
        lambda g, x, n, m: (g < n) | (x < m),
    ),
    "own_size": (
        "%w = arith.addi %x, %x : index\n%c = arith.cmpi slt, %w, %n : index",
        lambda g, x, n, m: 2 * x < n,
    ),
    "shifted": (
        "%w = arith.addi %x, %m : index\n%c = arith.cmpi slt, %w, %n : index",
        lambda g, x, n, m: x + m < n,
    ),
    "shifted_back": (
        "%c3 = arith.constant 3 : index\n%w = arith.subi %x, %c3 : index\n"
        "%c = arith.cmpi slt, %w, %n : index",
        lambda g, x, n, m: x - 3 < n,
    ),
    "unsigned_shifted_back": (
        "%c3 = arith.constant -3 : index\n%w = arith.addi %x, %c3 : index\n"
        "%c = arith.cmpi ult, %w, %n : index",
        lambda g, x, n, m: (x - 3).astype(np.uint64) < np.uint64(n % 2**64),
    ),
    "unsigned_shifted": (
        "%w = arith.addi %x, %m : index\n%c = arith.cmpi ult, %w, %n : index",
        lambda g, x, n, m: (x + m).astype(np.uint64) < np.uint64(n % 2**64),
    ),
}
MAX = 2**63 - 1
LIMITS = ((33, 5), (0, 0), (-1, 3), (-(2**63), 0), (MAX, 20), (1000, -4), (MAX, -4), (64, MAX))


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    known = "attributes {known_block_size = array<i32: 32, 1, 1>}"
    return CpuDevice(
        gpu_module(
            *(_guarded(name, condition) for name, (condition, _) in GUARDS.items()),
            _guarded("known_slt", GUARDS["slt"][0], known),
            """
  gpu.func @early_return(%out: memref<?xi32>, %n: index) kernel {
    %x = gpu.thread_id x
    %c3 = arith.constant 3 : index
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %past = arith.cmpi sge, %x, %n : index
    cf.cond_br %past, ^end, ^work
  ^work:
    memref.store %one, %out[%x] : memref<?xi32>
    %low = arith.cmpi slt, %x, %c3 : index
    cf.cond_br %low, ^end, ^more
  ^more:
    memref.store %two, %out[%x] : memref<?xi32>
    gpu.return
  ^end:
    gpu.return
  }
  gpu.func @guarded_2d(%out: memref<?x?xi32>) kernel
      attributes {known_block_size = array<i32: 8, 4, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %h = memref.dim %out, %c0 : memref<?x?xi32>
    %w = memref.dim %out, %c1 : memref<?x?xi32>
    %x = gpu.global_id x
    %y = gpu.global_id y
    %inside_y = arith.cmpi slt, %y, %h : index
    scf.if %inside_y {
      %inside_x = arith.cmpi slt, %x, %w : index
      scf.if %inside_x {
        %old = memref.load %out[%y, %x] : memref<?x?xi32>
        %new = arith.addi %old, %one : i32
        memref.store %new, %out[%y, %x] : memref<?x?xi32>
      }
    }
    gpu.return
  }
  gpu.func @triangle(%out: memref<?x?xi32>) kernel {
    %one = arith.constant 1 : i32
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %c = arith.cmpi sle, %x, %y : index
    scf.if %c {
      memref.store %one, %out[%y, %x] : memref<?x?xi32>
    }
    gpu.return
  }
  // No bound of y can be known outside the loop over x, nor a lower bound of x.
  gpu.func @other_triangle(%out: memref<?x?xi32>) kernel {
    %one = arith.constant 1 : i32
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %c = arith.cmpi sle, %y, %x : index
    scf.if %c {
      memref.store %one, %out[%y, %x] : memref<?x?xi32>
    }
    gpu.return
  }
  gpu.func @guard_after_store(%out: memref<?xi32>, %n: index) kernel {
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %x = gpu.thread_id x
    memref.store %one, %out[%x] : memref<?xi32>
    %c = arith.cmpi slt, %x, %n : index
    scf.if %c {
      memref.store %two, %out[%x] : memref<?xi32>
    }
    gpu.return
  }
  gpu.func @guard_with_else(%out: memref<?xi32>, %n: index) kernel {
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %x = gpu.thread_id x
    %c = arith.cmpi slt, %x, %n : index
    scf.if %c {
      memref.store %two, %out[%x] : memref<?xi32>
    } else {
      memref.store %one, %out[%x] : memref<?xi32>
    }
    gpu.return
  }
  gpu.func @loop_with_guard(%out: memref<?xi32>, %n: index) kernel {
    %x = gpu.thread_id x
    %d = gpu.block_dim x
    %one = arith.constant 1 : i32
    scf.for %i = %x to %n step %d {
      memref.store %one, %out[%i] : memref<?xi32>
    }
    gpu.return
  }
  gpu.func @collatz(%out: memref<?xi64>) kernel {
    %x = gpu.thread_id x
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %three = arith.constant 3 : i64
    %i = arith.index_cast %x : index to i64
    %start = arith.addi %i, %one : i64
    %r:2 = scf.while (%v = %start, %steps = %zero) : (i64, i64) -> (i64, i64) {
      %more = arith.cmpi ne, %v, %one : i64
      scf.condition(%more) %v, %steps : i64, i64
    } do {
    ^bb0(%v: i64, %steps: i64):
      %odd = arith.andi %v, %one : i64
      %is_odd = arith.cmpi eq, %odd, %one : i64
      %next = scf.if %is_odd -> i64 {
        %t = arith.muli %v, %three : i64
        %u = arith.addi %t, %one : i64
        scf.yield %u : i64
      } else {
        %u = arith.divsi %v, %two : i64
        scf.yield %u : i64
      }
      %s = arith.addi %steps, %one : i64
      scf.yield %next, %s : i64, i64
    }
    memref.store %r#1, %out[%x] : memref<?xi64>
    gpu.return
  }
  gpu.func @other_loops(%out: memref<?xindex>) kernel {
    %x = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %cell = memref.alloca() : memref<index>
    memref.store %c0, %cell[] : memref<index>
    affine.for %i = 0 to 4 {
      affine.parallel (%j, %k) = (0, 0) to (2, 3) {
        %a = memref.load %cell[] : memref<index>
        %b = affine.apply affine_map<(i, j, k) -> (i floordiv 2 + j * 3 + k mod 2)>(%i, %j, %k)
        %c = arith.addi %a, %b : index
        memref.store %c, %cell[] : memref<index>
      }
    }
    scf.forall (%i) in (3) {
      %a = memref.load %cell[] : memref<index>
      %b = arith.addi %a, %i : index
      memref.store %b, %cell[] : memref<index>
    }
    %sum = scf.parallel (%i) = (%c0) to (%c7) step (%c1) init (%c0) -> index {
      scf.reduce(%i : index) {
      ^bb0(%l: index, %r: index):
        %s = arith.addi %l, %r : index
        scf.reduce.return %s : index
      }
    }
    %kind = scf.index_switch %x -> index
    case 0 { scf.yield %c7 : index }
    case 2 { scf.yield %c1 : index }
    default { scf.yield %c0 : index }
    %a = memref.load %cell[] : memref<index>
    %b = arith.addi %a, %sum : index
    %d = arith.addi %b, %kind : index
    memref.store %d, %out[%x] : memref<?xindex>
    gpu.return
  }
  // Every thread counts in its own memory; a thread that saw another's would count on.
  gpu.func @private(%out: memref<?xi32>, %n: index)
      private(%own: memref<4xi32>,
              %aligned: memref<2xf32, #gpu.address_space<private>> {llvm.align = 64 : i64})
      kernel {
    %x = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0 : i32
    %half = arith.constant 0.5 : f32
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %zero, %own[%i] : memref<4xi32>
    }
    memref.store %half, %aligned[%c1] : memref<2xf32, #gpu.address_space<private>>
    %times = arith.addi %x, %n : index
    scf.for %i = %c0 to %times step %c1 {
      %slot = arith.remui %i, %c4 : index
      %old = memref.load %own[%slot] : memref<4xi32>
      %k = arith.index_cast %i : index to i32
      %new = arith.addi %old, %k : i32
      memref.store %new, %own[%slot] : memref<4xi32>
    }
    %p = memref.extract_aligned_pointer_as_index %aligned
      : memref<2xf32, #gpu.address_space<private>> -> index
    %c64 = arith.constant 64 : index
    %rest = arith.remui %p, %c64 : index
    %r = arith.index_cast %rest : index to i32
    %slot = arith.remui %x, %c4 : index
    %v = memref.load %own[%slot] : memref<4xi32>
    %w = arith.addi %v, %r : i32
    memref.store %w, %out[%x] : memref<?xi32>
    gpu.return
  }
  // 64 KiB for each of 1024 threads: 64 MiB if they were not given back.
  gpu.func @large_alloca(%out: memref<?xi32>, %n: index) kernel {
    %x = gpu.thread_id x
    %i = arith.index_cast %x : index to i32
    %c0 = arith.constant 0 : index
    %own = memref.alloca(%n) : memref<?xi32>
    %last = arith.subi %n, %c0 : index
    %c1 = arith.constant 1 : index
    %at = arith.subi %last, %c1 : index
    memref.store %i, %own[%c0] : memref<?xi32>
    memref.store %i, %own[%at] : memref<?xi32>
    %a = memref.load %own[%c0] : memref<?xi32>
    %b = memref.load %own[%at] : memref<?xi32>
    %s = arith.addi %a, %b : i32
    memref.store %s, %out[%x] : memref<?xi32>
    gpu.return
  }""",
        ),
        tmp_path_factory.mktemp("control"),
        request.param,
    )


@pytest.mark.parametrize("name", [*GUARDS, "known_slt"])
@pytest.mark.parametrize(("n", "m"), LIMITS)
def test_guards_let_the_same_threads_through(device: CpuDevice, name: str, n: int, m: int) -> None:
    """A guard, whether it becomes a loop's bound or stays, holds at every limit."""
    _, holds = GUARDS[name.removeprefix("known_")]
    g, x = np.arange(96), np.arange(96) % 32
    out = np.zeros(96, np.int32)
    with np.errstate(over="ignore"):
        expected = holds(g, x, n, m)
    device.run(name, 3, 32, out, np.int64(n), np.int64(m))
    np.testing.assert_array_equal(out, expected.astype(np.int32))


def test_early_return(device: CpuDevice) -> None:
    """A thread that returns early leaves the others alone."""
    out = np.zeros(10, np.int32)
    device.run("early_return", 1, 10, out, np.int64(7))
    np.testing.assert_array_equal(out, [1, 1, 1, 2, 2, 2, 2, 0, 0, 0])


@pytest.mark.parametrize("shape", [(9, 17), (8, 16), (1, 1), (3, 25)])
def test_guards_in_two_dimensions(device: CpuDevice, shape: tuple[int, int]) -> None:
    """Every element of a shape that does not divide is visited once."""
    out = np.zeros(shape, np.int32)
    device.run("guarded_2d", (-(-shape[1] // 8), -(-shape[0] // 4)), (8, 4), out)
    np.testing.assert_array_equal(out, np.ones(shape, np.int32))


def test_a_guard_between_thread_ids(device: CpuDevice) -> None:
    """x <= y bounds the loop over x by the y of the loop around it; y <= x stays a guard."""
    out = np.zeros((9, 9), np.int32)
    device.run("triangle", 1, (9, 9), out)
    np.testing.assert_array_equal(out, np.tri(9, dtype=np.int32))
    out = np.zeros((9, 9), np.int32)
    device.run("other_triangle", 1, (9, 9), out)
    np.testing.assert_array_equal(out, np.tri(9, dtype=np.int32).T)


@pytest.mark.parametrize("name", ["guard_after_store", "guard_with_else"])
def test_a_guard_with_work_outside_stays(device: CpuDevice, name: str) -> None:
    """Threads that fail a guard still do what stands before it or beside it."""
    out = np.zeros(8, np.int32)
    device.run(name, 1, 8, out, np.int64(3))
    np.testing.assert_array_equal(out, [2, 2, 2, 1, 1, 1, 1, 1])


def test_a_loop_that_starts_at_the_id(device: CpuDevice) -> None:
    """The test of a loop's head is not taken for a guard."""
    out = np.zeros(40, np.int32)
    device.run("loop_with_guard", 1, 8, out, np.int64(37))
    np.testing.assert_array_equal(out, np.arange(40) < 37)


def test_loops_of_different_length(device: CpuDevice) -> None:
    """Each thread leaves its own loop when it is done."""

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    out = np.zeros(30, np.int64)
    device.run("collatz", 1, 30, out)
    np.testing.assert_array_equal(out, [steps(n + 1) for n in range(30)])


def test_every_kind_of_loop(device: CpuDevice) -> None:
    """affine.for, affine.parallel, scf.forall, scf.parallel with a reduction, scf.index_switch."""
    total = sum(i // 2 + j * 3 + k % 2 for i in range(4) for j in range(2) for k in range(3))
    out = np.zeros(4, np.int64)
    device.run("other_loops", 1, 4, out)
    np.testing.assert_array_equal(out, total + 3 + 21 + np.array([7, 0, 1, 0]))


def test_private_memory_is_the_threads_own(device: CpuDevice) -> None:
    """Private attributions belong to one thread, and are aligned as they ask."""
    out = np.zeros(40, np.int32)
    device.run("private", 1, 40, out, np.int64(6))
    expected = [sum(i for i in range(x + 6) if i % 4 == x % 4) for x in range(40)]
    np.testing.assert_array_equal(out, expected)


def test_a_threads_stack_is_given_back(device: CpuDevice) -> None:
    """1024 threads that each take 64 KiB of stack do not need 64 MiB of it."""
    out = np.zeros(1024, np.int32)
    device.run("large_alloca", 1, 1024, out, np.int64(16384))
    np.testing.assert_array_equal(out, 2 * np.arange(1024))
