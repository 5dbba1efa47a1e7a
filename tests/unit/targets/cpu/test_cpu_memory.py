"""Memory on the CPU device: globals, copies, views, allocation, memory spaces, atomics, printf."""

from __future__ import annotations

import ctypes
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module, llvm_ir

ATOMICS = {
    # Kind, type: what NumPy makes of the old value and all operands 1, 2, 3, ...
    ("addi", "i32"): lambda old, v: old + v.sum(),
    ("addi", "i64"): lambda old, v: old + v.sum(),
    ("addf", "f32"): lambda old, v: old + v.sum(),
    ("addf", "f64"): lambda old, v: old + v.sum(),
    ("addf", "f16"): lambda old, v: old + v.sum(),
    ("maxs", "i32"): lambda old, v: max(old, v.max()),
    ("minu", "i16"): lambda old, v: min(old, v.min()),
    ("ori", "i32"): lambda old, v: np.bitwise_or.reduce([old, *v]),
    ("andi", "i32"): lambda old, v: np.bitwise_and.reduce([old, *v]),
    ("xori", "i64"): lambda old, v: np.bitwise_xor.reduce([old, *v]),
    ("maximumf", "f32"): lambda old, v: max(old, v.max()),
    ("minnumf", "f64"): lambda old, v: min(old, v.min()),
    ("muli", "i64"): lambda old, v: old * np.prod(v),
    ("mulf", "f64"): lambda old, v: old * np.prod(v),
}
DTYPES = {
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


def _atomic(kind: str, type_: str) -> str:
    return f"""
  gpu.func @atomic_{kind}_{type_}(%values: memref<?x{type_}>, %cell: memref<?x{type_}>) kernel {{
    %x = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %v = memref.load %values[%x] : memref<?x{type_}>
    %old = memref.atomic_rmw {kind} %v, %cell[%c1] : ({type_}, memref<?x{type_}>) -> {type_}
    gpu.return
  }}"""


SOURCE = gpu_module(
    *(_atomic(*key) for key in ATOMICS),
    """
  memref.global "private" constant @primes : memref<4xi32> = dense<[2, 3, 5, 7]>
  memref.global @count : memref<2xi32> = dense<[10, 20]>
  memref.global "private" @scratch : memref<3xf32> = uninitialized
  llvm.mlir.global internal constant @table(dense<[1.5, 2.5]> : tensor<2xf32>)
    {addr_space = 4 : i32} : !llvm.array<2 x f32>
  gpu.func @globals(%out: memref<?xi32>, %floats: memref<?xf32>) kernel {
    %x = gpu.thread_id x
    %c2 = arith.constant 2 : index
    %primes = memref.get_global @primes : memref<4xi32>
    %v = memref.load %primes[%x] : memref<4xi32>
    memref.store %v, %out[%x] : memref<?xi32>
    %c = arith.cmpi slt, %x, %c2 : index
    scf.if %c {
      %count = memref.get_global @count : memref<2xi32>
      %old = memref.load %count[%x] : memref<2xi32>
      %new = arith.addi %old, %v : i32
      memref.store %new, %count[%x] : memref<2xi32>
      memref.store %new, %out[%x] : memref<?xi32>
      %scratch = memref.get_global @scratch : memref<3xf32>
      %table = llvm.mlir.addressof @table : !llvm.ptr<4>
      %at = arith.index_cast %x : index to i64
      %place = llvm.getelementptr %table[%at] : (!llvm.ptr<4>, i64) -> !llvm.ptr<4>, f32
      %generic = llvm.addrspacecast %place : !llvm.ptr<4> to !llvm.ptr
      %f = llvm.load %generic : !llvm.ptr -> f32
      memref.store %f, %scratch[%x] : memref<3xf32>
      %g = memref.load %scratch[%x] : memref<3xf32>
      memref.store %g, %floats[%x] : memref<?xf32>
    }
    gpu.return
  }
  gpu.func @copies(%a: memref<?x?xf32>, %b: memref<?x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %s = memref.subview %a[1, 2] [3, 2] [2, 1]
      : memref<?x?xf32> to memref<3x2xf32, strided<[?, 1], offset: ?>>
    %t = memref.transpose %s (i, j) -> (j, i)
      : memref<3x2xf32, strided<[?, 1], offset: ?>> to memref<2x3xf32, strided<[1, ?], offset: ?>>
    %d = memref.subview %b[0, 0] [2, 3] [1, 1]
      : memref<?x?xf32> to memref<2x3xf32, strided<[?, 1]>>
    memref.copy %t, %d
      : memref<2x3xf32, strided<[1, ?], offset: ?>> to memref<2x3xf32, strided<[?, 1]>>
    %own = memref.alloc(%c2) : memref<?x3xf32>
    memref.copy %d, %own : memref<2x3xf32, strided<[?, 1]>> to memref<?x3xf32>
    %v = memref.load %own[%c1, %c2] : memref<?x3xf32>
    memref.dealloc %own : memref<?x3xf32>
    %short = memref.alloc(%c1) : memref<?xf32>
    memref.store %v, %short[%c0] : memref<?xf32>
    %long = memref.realloc %short(%c2) : memref<?xf32> to memref<?xf32>
    %kept = memref.load %long[%c0] : memref<?xf32>
    memref.dealloc %long : memref<?xf32>
    %rows = memref.dim %b, %c0 : memref<?x?xf32>
    %last = arith.subi %rows, %c1 : index
    memref.store %kept, %b[%last, %c0] : memref<?x?xf32>
    %from = memref.subview %a[0, 0] [1, 1] [1, 1]
      : memref<?x?xf32> to memref<f32, strided<[]>>
    %to = memref.subview %b[%last, 1] [1, 1] [1, 1]
      : memref<?x?xf32> to memref<f32, strided<[], offset: ?>>
    memref.copy %from, %to : memref<f32, strided<[]>> to memref<f32, strided<[], offset: ?>>
    gpu.return
  }
  gpu.func @views(%a: memref<4x6xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %f = arith.constant 10.0 : f32
    %flat = memref.collapse_shape %a [[0, 1]] : memref<4x6xf32> into memref<24xf32>
    %cube = memref.expand_shape %flat [[0, 1, 2]] output_shape [2, 3, 4]
      : memref<24xf32> into memref<2x3x4xf32>
    memref.store %f, %cube[%c1, %c0, %c3] : memref<2x3x4xf32>
    %cast = memref.reinterpret_cast %a to offset: [1], sizes: [4], strides: [5]
      : memref<4x6xf32> to memref<4xf32, strided<[5], offset: 1>>
    memref.store %f, %cast[%c3] : memref<4xf32, strided<[5], offset: 1>>
    %unranked = memref.cast %a : memref<4x6xf32> to memref<*xf32>
    %rank = memref.rank %unranked : memref<*xf32>
    %back = memref.cast %unranked : memref<*xf32> to memref<4x6xf32>
    memref.store %f, %back[%rank, %rank] : memref<4x6xf32>
    %shape = memref.alloca() : memref<2xindex>
    memref.store %c3, %shape[%c0] : memref<2xindex>
    %c8 = arith.constant 8 : index
    memref.store %c8, %shape[%c1] : memref<2xindex>
    %reshaped = memref.reshape %a(%shape) : (memref<4x6xf32>, memref<2xindex>) -> memref<?x?xf32>
    memref.store %f, %reshaped[%rank, %c1] : memref<?x?xf32>
    %bytes = memref.alloca() : memref<32xi8>
    %view = memref.view %bytes[%c0][] : memref<32xi8> to memref<2x4xf32>
    memref.store %f, %view[%c1, %c3] : memref<2x4xf32>
    %v = memref.load %view[%c1, %c3] : memref<2x4xf32>
    memref.store %v, %a[%c0, %c0] : memref<4x6xf32>
    gpu.return
  }
  gpu.func @spaces(%a: memref<?xf32, #gpu.address_space<global>>, %b: memref<?xf32, 1>,
                   %p: !llvm.ptr<1>) kernel {
    %x = gpu.thread_id x
    %v = memref.load %a[%x] : memref<?xf32, #gpu.address_space<global>>
    %own = memref.alloca() : memref<1xf32, 5>
    %generic = memref.memory_space_cast %own : memref<1xf32, 5> to memref<1xf32>
    %c0 = arith.constant 0 : index
    memref.store %v, %generic[%c0] : memref<1xf32>
    %w = memref.load %own[%c0] : memref<1xf32, 5>
    memref.store %w, %b[%x] : memref<?xf32, 1>
    %i = arith.index_cast %x : index to i64
    %place = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %w, %place : f32, !llvm.ptr<1>
    gpu.return
  }
  gpu.func @strided(%a: memref<?x?xf32, strided<[?, ?], offset: ?>>, %n: index) kernel {
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %f = arith.constant 1.0 : f32
    %v = memref.load %a[%y, %x] : memref<?x?xf32, strided<[?, ?], offset: ?>>
    %w = arith.addf %v, %f : f32
    memref.store %w, %a[%y, %x] : memref<?x?xf32, strided<[?, ?], offset: ?>>
    gpu.return
  }
  gpu.func @generic_atomic(%cell: memref<?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %r = memref.generic_atomic_rmw %cell[%c1] : memref<?xf32> {
      ^bb0(%old: f32):
        %one = arith.constant 1.0 : f32
        %new = arith.addf %old, %one : f32
        memref.atomic_yield %new : f32
      }
    }
    gpu.return
  }
  gpu.func @atomic_count(%cell: memref<?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1.0 : f32
    scf.for %i = %c0 to %n step %c1 {
      %r = memref.atomic_rmw addf %one, %cell[%c1] : (f32, memref<?xf32>) -> f32
    }
    gpu.return
  }
  gpu.func @prints(%n: index, %b: i1, %c: i8, %d: i64, %e: f16, %f: f32, %g: f64) kernel {
    %x = gpu.thread_id x
    gpu.printf "%ld %ld %d %d %ld %g %g %g 100%%\\n", %x, %n, %b, %c, %d, %e, %f, %g
      : index, index, i1, i8, i64, f16, f32, f64
    gpu.printf "end\\n"
    gpu.return
  }
  gpu.func @small_types(%bits: memref<?xi1>, %bytes: memref<?xi8>, %n: i1) kernel {
    %x = gpu.thread_id x
    %v = memref.load %bits[%x] : memref<?xi1>
    %t = arith.xori %v, %n : i1
    memref.store %t, %bits[%x] : memref<?xi1>
    %w = arith.extui %t : i1 to i8
    memref.store %w, %bytes[%x] : memref<?xi8>
    gpu.return
  }""",
)


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    return CpuDevice(SOURCE, tmp_path_factory.mktemp("memory"), request.param)


def test_globals_of_the_gpu_module(device: CpuDevice) -> None:
    """Constants are there; a variable keeps what a launch wrote, for all blocks and launches."""
    out, floats = np.zeros(4, np.int32), np.zeros(2, np.float32)
    device.run("globals", 1, 4, out, floats)
    np.testing.assert_array_equal(out, [12, 23, 5, 7])
    np.testing.assert_array_equal(floats, np.float32([1.5, 2.5]))
    device.run("globals", 2, 4, out, floats)
    np.testing.assert_array_equal(out, [16, 29, 5, 7])


def test_copies_of_strided_memory(device: CpuDevice) -> None:
    """memref.copy between any two layouts, from and to memory of the kernel's own, of rank 0."""
    a = np.arange(48, dtype=np.float32).reshape(6, 8)
    b = np.zeros((4, 5), np.float32)
    device.run("copies", 1, 1, a, b)
    expected = np.zeros((4, 5), np.float32)
    expected[:2, :3] = a[1:6:2, 2:4].T
    expected[3, 0] = expected[1, 2]
    expected[3, 1] = a[0, 0]
    np.testing.assert_array_equal(b, expected)


def test_views_of_memory(device: CpuDevice) -> None:
    """Other shapes of the same memory reach the same elements."""
    a = np.zeros((4, 6), np.float32)
    device.run("views", 1, 1, a)
    expected = np.zeros((4, 6), np.float32)
    expected.reshape(2, 3, 4)[1, 0, 3] = 10
    expected.reshape(24)[1 + 3 * 5] = 10
    expected[2, 2] = 10
    expected.reshape(3, 8)[2, 1] = 10
    expected[0, 0] = 10
    np.testing.assert_array_equal(a, expected)


def test_memory_spaces_do_not_matter(device: CpuDevice) -> None:
    """Global, private and numbered spaces, of memrefs and of pointers, are the host's memory."""
    a = np.arange(8, dtype=np.float32)
    b, c = np.zeros(8, np.float32), np.zeros(8, np.float32)
    device.run("spaces", 1, 8, a, b, np.int64(c.ctypes.data))
    np.testing.assert_array_equal(b, a)
    np.testing.assert_array_equal(c, a)


def test_strides_of_arguments(device: CpuDevice) -> None:
    """Every part of a descriptor arrives: sizes, strides, and scalars behind it."""
    a = np.zeros((8, 10), np.float32)
    device.run("strided", 1, (4, 3), a[1:7:2, 8:0:-2], np.int64(0))
    expected = np.zeros((8, 10), np.float32)
    expected[1:7:2, 8:0:-2] = 1
    np.testing.assert_array_equal(a, expected)


def test_small_types(device: CpuDevice) -> None:
    """i1 takes a byte in memory, and as a scalar argument."""
    bits = np.array([True, False, True])
    bytes_ = np.zeros(3, np.int8)
    device.run("small_types", 1, 3, bits, bytes_, np.bool_(True))
    np.testing.assert_array_equal(bits, [False, True, False])
    np.testing.assert_array_equal(bytes_, [0, 1, 0])


@pytest.mark.parametrize(("kind", "type_"), ATOMICS)
def test_atomic_updates(device: CpuDevice, kind: str, type_: str) -> None:
    """Every kind of memref.atomic_rmw updates as its name says."""
    dtype = DTYPES[type_]
    values = np.arange(1, 9).astype(dtype)
    cell = np.array([0, 12, 0], dtype)
    device.run(f"atomic_{kind}_{type_}", 1, 8, values, cell)
    expected = np.array([0, ATOMICS[kind, type_](dtype(12), values), 0], dtype)
    np.testing.assert_array_equal(cell, expected)


@pytest.mark.parametrize("kernel", ["atomic_count", "generic_atomic"])
def test_atomics_of_concurrent_blocks(device: CpuDevice, kernel: str) -> None:
    """No update is lost when blocks run at once."""
    cell = np.zeros(2, np.float32)
    times, blocks = 50000, 8
    with ThreadPoolExecutor(4) as pool:
        work = [
            pool.submit(device.run_block, kernel, (b, 0, 0), blocks, 1, cell, np.int64(times))
            for b in range(blocks)
        ]
        for done in work:
            done.result()
    assert cell[1] == times * blocks


def test_atomics_are_instructions(device: CpuDevice) -> None:
    """Each atomic update is LLVM's, aligned so that no library is called for it."""
    text = llvm_ir(device.kernels)
    for kind, type_ in ATOMICS:
        found = re.search(
            rf"@aotc_cpu_m_atomic_{kind}_{type_}\(.*?^}}", text, re.DOTALL | re.MULTILINE
        )
        assert found is not None
        assert re.search(r"atomicrmw|cmpxchg", found[0]), (kind, type_)
        (alignment,) = re.findall(r"(?:atomicrmw|cmpxchg).*align (\d+)", found[0])
        assert int(alignment) == DTYPES[type_]().itemsize


def test_printf(device: CpuDevice, capfd: pytest.CaptureFixture[str]) -> None:
    """gpu.printf prints through libc: numbers of every width, and a percent sign."""
    device.run(
        "prints",
        1,
        2,
        np.int64(1 << 40),
        np.bool_(True),
        np.int8(-5),
        np.int64(-(1 << 40)),
        np.float16(0.5),
        np.float32(1.25),
        np.float64(-2.5),
    )
    ctypes.CDLL(None).fflush(None)
    line = "1099511627776 1 -5 -1099511627776 0.5 1.25 -2.5 100%\nend\n"
    assert capfd.readouterr().out == f"0 {line}1 {line}"
