"""Kernels of few rows for GPUs whose columns are gates: run on the CPU device, against NumPy."""

from __future__ import annotations

import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from helpers.shared import made_once, shared_folder
from matmul.scalar_products import DTYPES, Product, entry
from matmul.test_gates import CELLS, lowered, lstm, unit

import aotc
from aotc.builder import Builder, function_text
from aotc.builder.numbers import Value
from aotc.kernels.matmul.epilogue import Epilogue, Step
from aotc.kernels.matmul.gates import Gates
from aotc.kernels.matmul.gemv.gated import GATED_GEMV, gated_variants
from aotc.kernels.matmul.problem import Arguments, Axis, EpilogueOperand

# Rows, K, columns of a gate, gates: a lane's access has one gate, or B is K-major.
CASES = [
    Product("four", 8, 4 * 256, 256, dynamic="", element="f16", result="f16"),
    Product("three", 3, 3 * 64, 96, dynamic=""),
    Product("two_of_one_row", 1, 2 * 40, 33, dynamic=""),
    Product("four_turned", 8, 4 * 256, 256, dynamic="", transposed_b=True, element="f16"),
    Product("three_turned", 5, 3 * 50, 100, dynamic="", transposed_b=True),
    Product("long", 2, 4 * 512, 1100, dynamic="", transposed_b=True),
    Product("many_columns", 2, 3 * 640, 70, dynamic=""),
    Product("of_f64", 4, 4 * 24, 30, "f64", "f64", "f64", dynamic=""),
]
COUNTS = {"four": 4, "three": 3, "two": 2, "long": 4, "many": 3, "of": 4}


def gates_of(product: Product) -> Gates:
    """The first output is gate 0 times gate 1 plus the operand; the second one is that minus the
    last gate."""
    element = product.result
    count = COUNTS[product.name.split("_")[0]]
    columns = product.n // count
    types = f"({element}, {element}) -> {element}"
    steps = (
        Step("p", "arith.mulf", ("gate0", "gate1"), "{}", types),
        Step("r0", "arith.addf", ("p", "e0"), "{}", types),
        Step("r1", "arith.subf", ("r0", f"gate{count - 1}"), "{}", types),
    )
    operand = EpilogueOperand(
        f"memref<{product.m}x{columns}x{element}>", element, (Axis("row"), Axis("column")), 4
    )
    return Gates(count, columns, Epilogue(steps, "r1"), (operand,), ("r0", "r1"))


def text_of(product: Product) -> str:
    gates = gates_of(product)
    [variant] = gated_variants(product.problem, gates)
    [operand] = gates.epilogue_operands

    def body(b: Builder, given: list[Value]) -> None:
        a, b_, c, *others = given
        arguments = Arguments(a, b_, c, gates=(gates, gates.arguments_of(others)))
        with b.kernel_name(f"{product.name}_kernel"):
            GATED_GEMV.insert(b, product.problem, variant, arguments)

    own = dict.fromkeys(("state", "first", "second"), operand.type)
    return entry(function_text(product.name, product.problem.arguments | own, body))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        text = "\n".join(map(text_of, CASES))
        aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_80",))

    return made_once(shared_folder(tmp_path_factory) / "gemv_gates", build)


@pytest.mark.parametrize("product", CASES, ids=lambda p: p.name)
def test_gates_are_right(built: Path, product: Product, tmp_path: Path) -> None:
    library = aotc.load(shutil.copytree(built, tmp_path / "own"))
    random = np.random.default_rng(zlib.crc32(product.name.encode()))
    element, result = DTYPES[product.element], DTYPES[product.result]
    gates = gates_of(product)
    shape = product.m, gates.columns
    a, b = (
        random.uniform(-1, 1, one).astype(element)
        for one in ((product.m, product.k), (product.k, product.n))
    )
    state = random.uniform(-1, 1, shape).astype(result)
    c = np.full((product.m, product.n), np.nan, result)
    outputs = [np.full(shape, np.nan, result) for _ in range(2)]
    stored = np.ascontiguousarray(b.T) if product.transposed_b else b
    getattr(library, product.name)(a, stored, c, state, *outputs)
    parts = np.split(a.astype(np.float64) @ b.astype(np.float64), gates.count, axis=1)
    first = parts[0] * parts[1] + state
    size = 1 + np.abs(parts[0]) + np.abs(parts[1]) + np.abs(first)
    rounding = 1e-2 if product.result == "f16" else 1e-4
    for got, expected in zip(outputs, (first, first - parts[-1]), strict=True):
        assert (np.abs(got - expected) <= rounding * size).all()
    assert np.isnan(c).all()


def test_a_step_is_one_kernel_on_gpus(tmp_path: Path) -> None:
    """If the rows of h are aligned: others have a kernel that copies narrowly, and one behind."""
    launched = re.findall(r"gpu\.launch_func +@(\w+)::", lowered(lstm(*CELLS[0]), tmp_path))
    gated = [name.rsplit("_", 1)[-1] for name in launched if "_gates" in name]
    assert sorted(gated) == ["90a", "cpu"]


def test_many_rows_have_separate_kernels(tmp_path: Path) -> None:
    """Also where the number of rows is not known."""
    for text in (lstm(*CELLS[1]), unit("unit", 40, 96)):
        launched = re.findall(r"gpu\.launch_func +@(\w+)::", lowered(text, tmp_path))
        assert all(name.endswith("_cpu") for name in launched if "_gates" in name)
