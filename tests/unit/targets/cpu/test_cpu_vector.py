"""The vector dialect on the CPU device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module

Array = np.ndarray[Any, Any]

# In each: %a is memref<8x8xf32>, %v its first row's first four, %w its upper left 4 x 4,
# %i the thread's id; the result goes to %out, whose type follows.
CASES: dict[str, tuple[str, str, Callable[[Array, int], Array]]] = {
    "read_past_the_end": (
        "%r = vector.transfer_read %a[%i, %i], %zero : memref<8x8xf32>, vector<4x4xf32>",
        "4x4",
        lambda a, i: np.pad(a, ((0, 8), (0, 8)))[i : i + 4, i : i + 4],
    ),
    "read_transposed": (
        "%r = vector.transfer_read %a[%i, %c0], %zero "
        "{permutation_map = affine_map<(i, j) -> (j, i)>} : memref<8x8xf32>, vector<4x4xf32>",
        "4x4",
        lambda a, i: np.pad(a, ((0, 8), (0, 8)))[i : i + 4, :4].T,
    ),
    "contract": (
        "%r = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, "
        "affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], "
        'iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} '
        "%w, %w, %w : vector<4x4xf32>, vector<4x4xf32> into vector<4x4xf32>",
        "4x4",
        lambda a, i: a[:4, :4] @ a[:4, :4] + a[:4, :4],
    ),
    "outer_product": (
        "%r = vector.outerproduct %v, %v, %w {kind = #vector.kind<add>} "
        ": vector<4xf32>, vector<4xf32>",
        "4x4",
        lambda a, i: np.outer(a[0, :4], a[0, :4]) + a[:4, :4],
    ),
    "reduce_rows": (
        "%r = vector.multi_reduction <add>, %w, %v [0] : vector<4x4xf32> to vector<4xf32>",
        "4",
        lambda a, i: a[:4, :4].sum(0) + a[0, :4],
    ),
    "masked_reduce": (
        "%m = vector.create_mask %i, %c2 : vector<4x4xi1>\n"
        "%r = vector.mask %m { vector.multi_reduction <add>, %w, %v [1] "
        ": vector<4x4xf32> to vector<4xf32> } : vector<4x4xi1> -> vector<4xf32>",
        "4",
        lambda a, i: a[0, :4] + np.where(np.arange(4) < i, a[:4, :2].sum(1), 0),
    ),
    "reduce": (
        "%s = vector.reduction <maximumf>, %v : vector<4xf32> into f32\n"
        "%r = vector.broadcast %s : f32 to vector<4xf32>",
        "4",
        lambda a, i: np.full(4, a[0, :4].max()),
    ),
    "gather": (
        "%m = arith.constant dense<[true, true, false, true]> : vector<4xi1>\n"
        "%x = arith.constant dense<[9, 2, 0, 17]> : vector<4xi32>\n"
        "%r = vector.gather %a[%c0, %c0] [%x], %m, %v : memref<8x8xf32>, vector<4xi32>, "
        "vector<4xi1>, vector<4xf32> into vector<4xf32>",
        "4",
        lambda a, i: np.array([a.flat[9], a.flat[2], a[0, 2], a.flat[17]]),
    ),
    "masked_load": (
        "%m = vector.create_mask %i : vector<4xi1>\n"
        "%r = vector.maskedload %a[%c2, %c0], %m, %v : memref<8x8xf32>, vector<4xi1>, "
        "vector<4xf32> into vector<4xf32>",
        "4",
        lambda a, i: np.where(np.arange(4) < i, a[2, :4], a[0, :4]),
    ),
    "shapes": (
        "%t = vector.transpose %w, [1, 0] : vector<4x4xf32> to vector<4x4xf32>\n"
        "%s = vector.shape_cast %t : vector<4x4xf32> to vector<2x8xf32>\n"
        "%e = vector.extract %s[1] : vector<8xf32> from vector<2x8xf32>\n"
        "%x, %y = vector.deinterleave %e : vector<8xf32> -> vector<4xf32>\n"
        "%u = vector.shuffle %x, %y [0, 5, 2, 7] : vector<4xf32>, vector<4xf32>\n"
        "%f = vector.fma %x, %y, %u : vector<4xf32>\n"
        "%r = vector.insert_strided_slice %f, %w {offsets = [1, 0], strides = [1]} "
        ": vector<4xf32> into vector<4x4xf32>",
        "4x4",
        lambda a, i: _shapes(a),
    ),
    "elementwise": (
        "%s = arith.addf %w, %w : vector<4x4xf32>\n"
        "%e = math.exp %s : vector<4x4xf32>\n"
        "%g = arith.cmpf olt, %w, %e : vector<4x4xf32>\n"
        "%r = arith.select %g, %e, %w : vector<4x4xi1>, vector<4x4xf32>",
        "4x4",
        lambda a, i: np.where(a[:4, :4] < np.exp(2 * a[:4, :4]), np.exp(2 * a[:4, :4]), a[:4, :4]),
    ),
    "bits": (
        "%b = vector.bitcast %v : vector<4xf32> to vector<4xi32>\n"
        "%s = vector.step : vector<4xindex>\n"
        "%t = arith.index_cast %s : vector<4xindex> to vector<4xi32>\n"
        "%u = arith.xori %b, %t : vector<4xi32>\n"
        "%r = vector.bitcast %u : vector<4xi32> to vector<4xf32>",
        "4",
        lambda a, i: (a[0, :4].view(np.int32) ^ np.arange(4, dtype=np.int32)).view(np.float32),
    ),
    "dynamic_place": (
        "%s = vector.extract %v[%i] : f32 from vector<4xf32>\n"
        "%r = vector.insert %s, %v[%c2] : f32 into vector<4xf32>",
        "4",
        lambda a, i: np.array([a[0, 0], a[0, 1], a[0, i], a[0, 3]]),
    ),
}


def _shapes(a: Array) -> Array:
    row = a[:4, :4].T.reshape(2, 8)[1]
    x, y = row[0::2], row[1::2]
    result = a[:4, :4].copy()
    result[1] = x * y + np.array([x[0], y[1], x[2], y[3]])
    return result


def _kernel(name: str, body: str, shape: str) -> str:
    zeros = ", ".join(["%c0"] * (shape.count("x") + 1))
    in_bounds = ", ".join(["true"] * (shape.count("x") + 1))
    return f"""
  gpu.func @{name}(%a: memref<8x8xf32>, %out: memref<{shape}xf32>, %i: index) kernel {{
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %v = vector.load %a[%c0, %c0] : memref<8x8xf32>, vector<4xf32>
    %w = vector.transfer_read %a[%c0, %c0], %zero {{in_bounds = [true, true]}}
      : memref<8x8xf32>, vector<4x4xf32>
    {body}
    vector.transfer_write %r, %out[{zeros}] {{in_bounds = [{in_bounds}]}}
      : vector<{shape}xf32>, memref<{shape}xf32>
    gpu.return
  }}"""


STORES = """
  gpu.func @stores(%a: memref<8x8xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c6 = arith.constant 6 : index
    %v = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
    %m = vector.create_mask %n : vector<4xi1>
    vector.maskedstore %a[%c0, %c0], %m, %v : memref<8x8xf32>, vector<4xi1>, vector<4xf32>
    %odd = arith.constant dense<[false, true, false, true]> : vector<4xi1>
    vector.compressstore %a[%c1, %c0], %odd, %v : memref<8x8xf32>, vector<4xi1>, vector<4xf32>
    %e = vector.expandload %a[%c1, %c0], %odd, %v
      : memref<8x8xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    vector.store %e, %a[%c2, %c1] : memref<8x8xf32>, vector<4xf32>
    %x = arith.constant dense<[3, 2, 1, 0]> : vector<4xi32>
    vector.scatter %a[%c3, %c0] [%x], %odd, %v
      : memref<8x8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
    vector.transfer_write %v, %a[%c6, %c6] : vector<4xf32>, memref<8x8xf32>
    gpu.return
  }"""


ARGUMENT = """
  gpu.func @argument(%v: vector<4xf32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    vector.store %v, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }"""


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    kernels = [_kernel(name, body, shape) for name, (body, shape, _) in CASES.items()]
    folder = tmp_path_factory.mktemp("vector")
    return CpuDevice(gpu_module(*kernels, STORES, ARGUMENT), folder, request.param)


@pytest.mark.parametrize("i", [0, 3])
@pytest.mark.parametrize("name", CASES)
def test_vector_operations(device: CpuDevice, name: str, i: int) -> None:
    """A vector operation gives NumPy's elements, and reads nothing outside its memref."""
    _, shape, expected = CASES[name]
    a = np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32)
    out = np.zeros([int(size) for size in shape.split("x")], np.float32)
    device.run(name, 1, 1, a, out, np.int64(i))
    np.testing.assert_allclose(out, expected(a, i).astype(np.float32), rtol=1e-5, atol=1e-6)


def test_a_vector_as_argument(device: CpuDevice) -> None:
    """A kernel takes a vector, wherever its caller holds it."""
    numbers = np.arange(16, dtype=np.float32)
    for start in range(4):
        out = np.zeros(4, np.float32)
        vector = np.ndarray((), "V16", numbers, offset=4 * start)
        device.run("argument", 1, 1, vector, out)
        np.testing.assert_array_equal(out, numbers[start : start + 4])


def test_stores_of_vectors(device: CpuDevice) -> None:
    """Masked, compressing, scattering and clipped stores write just their elements."""
    a = np.zeros((8, 8), np.float32)
    device.run("stores", 1, 1, a, np.int64(3))
    expected = np.zeros((8, 8), np.float32)
    expected[0, :3] = 1, 2, 3
    expected[1, :2] = 2, 4
    expected[2, 1:5] = 1, 2, 3, 4
    expected[3, 2], expected[3, 0] = 2, 4
    expected[6, 6:] = 1, 2
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(("n", "set_"), [(2**32 + 1, 4), (-(2**32) + 1, 0), (-1, 0), (1, 1)])
def test_sizes_of_masks(device: CpuDevice, n: int, set_: int) -> None:
    """A mask's size is a 64-bit number: 2^32 + 1 is not 1, and what is negative is nothing."""
    a = np.zeros((8, 8), np.float32)
    device.run("stores", 1, 1, a, np.int64(n))
    expected = np.where(np.arange(4) < set_, np.float32([1, 2, 3, 4]), 0)
    np.testing.assert_array_equal(a[0, :4], expected)
