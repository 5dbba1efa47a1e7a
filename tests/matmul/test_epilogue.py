"""An epilogue in kernels of each family, on the CPU device: f64 of NumPy says what is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matmul.scalar_products import entry
from numpy.typing import NDArray

import aotc
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.epilogue import Epilogue, Step
from aotc.kernels.matmul.gemv.family import GEMV
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, EpilogueOperand, Matrix, Problem
from aotc.kernels.matmul.simt.family import SIMT
from aotc.kernels.matmul.wgmma.family import WGMMA

Array = NDArray[Any]

BATCHES, SEQUENCES = 3, 4
FLOATS = "(f32, f32) -> f32"


def steps(element: str, result: str) -> Epilogue:
    """tanh((sum + row's vector) · column's vector + matrix), plus a number of each sequence (rows
    are counted over sequences) or batch, plus a scalar."""
    made = []

    def step(name: str, operation: str, operands: str, types: str) -> None:
        made.append(Step(name, operation, tuple(operands.split()), "{}", types))

    for i in range(4):
        if element != "f32":
            step(f"w{i}", "arith.extf", f"e{i}", f"({element}) -> f32")
    e = ["e0", "e1", "e2", "e3"] if element == "f32" else ["w0", "w1", "w2", "w3"]
    step("a", "arith.addf", f"sum {e[0]}", FLOATS)
    step("b", "arith.mulf", f"a {e[1]}", FLOATS)
    step("c", "arith.addf", f"b {e[2]}", FLOATS)
    step("d", "math.tanh", "c", "(f32) -> f32")
    step("f", "arith.addf", f"d {e[3]}", FLOATS)
    step("g", "arith.addf", "f e4", FLOATS)
    if result != "f32":
        step("h", "arith.truncf", "g", f"(f32) -> {result}")
    return Epilogue(tuple(made), made[-1].result)


def matrix(rows: int, columns: int, element: str, *, batched: bool, dynamic: bool) -> Matrix:
    shape = "x".join(
        [*([str(BATCHES)] * batched), *("?" if dynamic else str(s) for s in (rows, columns))]
    )
    row = columns * ELEMENT_BYTES[element]
    alignment = (
        ELEMENT_BYTES[element] if dynamic else max(b for b in (1, 2, 4, 8, 16) if row % b == 0)
    )
    sizes = (None, None) if dynamic else (rows, columns)
    return Matrix(
        f"memref<{shape}x{element}>", element, sizes, None if dynamic else columns, alignment
    )


def problem(
    m: int,
    n: int,
    k: int,
    element: str,
    result: str,
    *,
    batched: bool = False,
    dynamic: bool = False,
) -> Problem:
    options = {"batched": batched, "dynamic": dynamic}
    c = matrix(m, n, result, **options)
    size = ELEMENT_BYTES[element]
    whole = matrix(m, n, element, **options)
    row, column = Axis("row"), Axis("column")
    front = (Axis("batch"),) if batched else ()
    rows, columns = ("?", "?") if dynamic else (str(m), str(n))
    numbers = (
        EpilogueOperand(f"memref<{BATCHES}x{element}>", element, front, size)
        if batched
        else EpilogueOperand(f"memref<?x{element}>", element, (Axis("row", SEQUENCES),), size)
    )
    epilogue_operands = (
        EpilogueOperand(
            f"memref<{columns}x{element}>", element, (column,), 16 if not dynamic else size
        ),
        EpilogueOperand(f"memref<{rows}x{element}>", element, (row,), size),
        EpilogueOperand(whole.type, element, (*front, row, column), whole.alignment),
        numbers,
        EpilogueOperand("f32", None, (), 1),
    )
    a, b = matrix(m, k, element, **options), matrix(k, n, element, **options)
    return Problem(a, b, c, "f32", batched=batched, epilogue_operands=epilogue_operands)


FAMILIES = {
    "tensor_cores": (MMA_SYNC, MMA_SYNC.variant_type(32, 32, 32, 2, 2, 3)),
    "tensor_cores in parts of K": (
        MMA_SYNC,
        MMA_SYNC.variant_type(32, 32, 32, 2, 2, 3, split_k=2),
    ),
    "simt": (SIMT, None),
    "skinny": (GEMV, None),
    "blocked": (CPU_BLOCKED, None),
}
CASES = [
    *((name, (40, 48, 130), "f16", "f32") for name in FAMILIES if "cores" in name),
    *((name, (37, 21, 70), "f16", "f16") for name in FAMILIES if "cores" in name),
    ("simt", (40, 48, 30), "f32", "f32"),
    ("simt", (37, 21, 30), "f32", "f16"),
    ("skinny", (3, 80, 130), "f16", "f16"),
    ("skinny", (80, 2, 130), "f32", "f32"),
    ("blocked", (40, 48, 30), "f32", "f32"),
    ("blocked", (37, 21, 300), "f16", "f16"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("batched", [False, True], ids=["", "batched"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["", "dynamic"])
@pytest.mark.parametrize(("name", "sizes", "element", "result"), CASES)
def test_every_family_takes_it(
    name: str,
    sizes: tuple[int, int, int],
    element: str,
    result: str,
    dynamic: bool,
    batched: bool,
    tmp_path: Path,
) -> None:
    m, n, k = sizes
    family, variant = FAMILIES[name]
    given = problem(m, n, k, element, result, batched=batched, dynamic=dynamic)
    if variant is None:
        if not (variants := family.variants(given)):
            pytest.skip("is not for sizes that are not known")
        variant = variants[0]
    elif given.a.alignment < variant.copy_bytes or given.b.alignment < variant.copy_bytes:
        variant = MMA_SYNC.variant_type(32, 32, 32, 2, 2, 3, copy_bytes=1, split_k=variant.split_k)
    assert family.can_implement(given, variant)
    finish = steps(element, result)
    text = entry(family.function(given, variant, "product", finish))
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",))
    random = np.random.default_rng(9)
    front = (BATCHES,) if batched else ()
    dtype = {"f32": np.float32, "f16": np.float16}
    shapes = [(*front, m, k), (*front, k, n), (n,), (m,), (*front, m, n)]
    shapes.append(front or (-(-m // SEQUENCES),))
    a, b, row, column, whole, numbers = (
        random.uniform(-1, 1, shape).astype(dtype[element]) for shape in shapes
    )
    c = np.full((*front, m, n), np.nan, dtype[result])
    aotc.load(artifact.path).product(a, b, c, row, column, whole, numbers, 0.25)
    wide = [array.astype(np.float64) for array in (a, b, row, column, whole, numbers)]
    exact = np.tanh((wide[0] @ wide[1] + wide[2]) * wide[3][:, None] + wide[4]) + 0.25
    exact += wide[5][:, None, None] if batched else np.repeat(wide[5], SEQUENCES)[:m, None]
    tolerance = {"f32": 2e-5, "f16": 2e-3}[result]
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.exhaustive
@pytest.mark.parametrize("batched", [False, True], ids=["", "batched"])
@pytest.mark.parametrize("sizes", [(200, 104, 72), (64, 72, 128)])
@pytest.mark.parametrize("result", ["f16", "f32"])
def test_hopper_builds(
    result: str, sizes: tuple[int, int, int], batched: bool, tmp_path: Path
) -> None:
    """What it computes, only a GPU knows: tests/gpu."""
    given = problem(*sizes, "f16", result, batched=batched)
    texts = []
    for number, variant in enumerate(WGMMA.variants(given)[::6]):
        finish = steps("f16", result)
        texts.append(entry(WGMMA.function(given, variant, f"product{number}", finish)))
    artifact = aotc.build(
        "\n".join(texts),
        emit="shared",
        out=f"{tmp_path}/",
        name="built",
        chips=("sm_90a",),
        cpu_kernels=False,
    )
    kernels = artifact.manifest.kernels
    assert len(kernels) == len(texts) > 1
    for kernel in kernels:
        # Where sums leave few registers (tiles of 256x160, or three warpgroups), some words.
        assert all(one.spill_stores <= 32 for one in kernel.resources)
