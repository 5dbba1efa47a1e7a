"""What is done with a convolution is computed in its kernel: norms, residuals, activations."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library
from helpers.shared import made_once, shared_folder
from matmul.contracted import DTYPES, Contraction, convolution
from matmul.scalar_products import entry

from aotc.analysis.aliasing import Roots
from aotc.analysis.functions import Functions
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.fusion.fuse import Fused, fuse
from aotc.kernels.matmul.implicit_gemm.cpu.family import IMPLICIT_CPU
from aotc.kernels.matmul.implicit_gemm.mma_sync import IMPLICIT_MMA_SYNC
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.implicit_gemm.recognition import recognise_implicit_gemm
from aotc.kernels.matmul.implicit_gemm.simt import IMPLICIT_SIMT
from aotc.mlir import ir


@dataclass(frozen=True)
class Layer:
    """A convolution, the norm of each channel, a residual added, a relu, rounded to `stored`.
    `in_place`: the result takes the residual's place."""

    convolution: Contraction
    stored: str
    in_place: bool = False

    @property
    def channels(self) -> list[int]:
        """The dimensions of the result along groups and filters."""
        return [number for number, loop in enumerate(self.convolution.c) if loop in "gf"]

    @property
    def module(self) -> str:
        made, stored = self.convolution, self.stored
        result = made.type("c").replace(f"x{made.result}>", f"x{stored}>")
        rank = len(made.c)
        names = ", ".join(f"d{number}" for number in range(rank))
        channels = ", ".join(f"d{number}" for number in self.channels)
        all_, one = (f"affine_map<({names}) -> ({places})>" for places in (names, channels))
        kinds = ", ".join(['"parallel"'] * rank)
        scales = f"memref<{'x'.join(str(made.sizes[made.c[i]]) for i in self.channels)}xf32>"
        widened = "" if stored == "f32" else f"%wide = arith.extf %r : {stored} to f32"
        narrowed = "" if stored == "f32" else f"%narrow = arith.truncf %big : f32 to {stored}"
        added = "%result" if self.in_place else "%residual"
        return f"""
func.func @layer(%a: {made.type("a")}, %b: {made.type("b")}, %scales: {scales}, %residual: {result},
                 %result: {result}) {{
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : {made.type("c")}
  linalg.generic {{indexing_maps = [{all_}], iterator_types = [{kinds}]}}
      outs(%c : {made.type("c")}) {{
  ^bb0(%old: f32):
    linalg.yield %zero : f32
  }}
  {made.operation}
  linalg.generic {{indexing_maps = [{all_}, {one}, {all_}, {all_}], iterator_types = [{kinds}]}}
      ins(%c, %scales, {added} : {made.type("c")}, {scales}, {result}) outs(%result : {result}) {{
  ^bb0(%sum: f32, %scale: f32, %r: {stored}, %unused: {stored}):
    {widened}
    %scaled = arith.mulf %sum, %scale : f32
    %both = arith.addf %scaled, {"%r" if stored == "f32" else "%wide"} : f32
    %big = arith.maximumf %both, %zero : f32
    {narrowed}
    linalg.yield {"%big" if stored == "f32" else "%narrow"} : {stored}
  }}
  memref.dealloc %c : {made.type("c")}
  return
}}
"""

    def fused(self, change: Any) -> Any:
        """What `change` makes of the product with all that is fused to it."""
        with ir.Context(), ir.Location.unknown():
            module = ir.Module.parse(self.module)
            roots = Roots(Functions(module))
            (function,) = module.body.operations
            operations = [op.operation for op in function.regions[0].blocks[0].operations]
            generic = [op for op in operations if op.name == "linalg.generic"][1]
            product = recognise_implicit_gemm(generic, roots, allow_tf32=False)
            assert product is not None
            return change(fuse(product, roots, [], []))


HALF = {"element": "f16", "result": "f32"}
BLOCKS = CPU_BLOCKED.variant_type(6, 1, 24, 192, 32)
WHOLE = IMPLICIT_SIMT.variant_type(32, 32, 8, 32, 16, 4, 4, 3, 16)
PARTS = IMPLICIT_SIMT.variant_type(32, 32, 8, 32, 16, 4, 4, 3, 4, split_k=3)
ELEMENTS = IMPLICIT_MMA_SYNC.variant_type(32, 32, 32, 2, 2, 2, 1)
ELEMENT_PARTS = IMPLICIT_MMA_SYNC.variant_type(32, 32, 32, 2, 2, 2, 1, split_k=2)
EVEN = Layer(convolution("even", (2, 5, 6, 12), (35, 3, 3)), "f32")
ODD = Layer(convolution("odd", (3, 4, 7, 7), (33, 3, 3), strides=(2, 2)), "f32")
HALF_EVEN = Layer(convolution("half_even", (2, 5, 6, 12), (35, 3, 3), **HALF), "f16")
HALF_ODD = Layer(replace(ODD.convolution, name="half_odd", **HALF), "f16")
IN_PLACE = Layer(replace(EVEN.convolution, name="in_place"), "f32", in_place=True)
LAST = Layer(convolution("last", (2, 5, 6, 12), (36, 3, 3), layout="nhwc"), "f32")
# On the CPU, rows of images with gaps in B and without, and of a copy of B.
LINES = Layer(convolution("lines", (3, 5, 5, 30), (35, 3, 3)), "f32")
POINTS = Layer(convolution("points", (3, 5, 7, 9), (35, 1, 1)), "f32")
POINTS_IN_PLACE = Layer(replace(POINTS.convolution, name="points_in_place"), "f32", in_place=True)
COPIED = Layer(convolution("copied", (3, 5, 15, 19), (97, 3, 3), strides=(2, 2)), "f32")
# Convolutions of groups: as PyTorch has them, with channels last, and of lines on the CPU.
GROUPS = Contraction(
    *("groups", {"n": 2, "g": 3, "f": 7, "h": 6, "w": 12, "c": 5, "p": 3, "q": 3}),
    *(("n", "g", "c", "h + p", "w + q"), ("g", "f", "c", "p", "q"), ("n", "g", "f", "h", "w")),
)
OF_GROUPS = Layer(GROUPS, "f32")
HALF_GROUPS = Layer(replace(GROUPS, name="half_groups", **HALF), "f16")
GROUPS_LAST = Layer(
    Contraction(
        *("groups_last", {"n": 2, "g": 3, "f": 8, "h": 6, "w": 7, "c": 8, "p": 3, "q": 3}),
        *(("n", "h + p", "w + q", "g", "c"), ("g", "f", "p", "q", "c")),
        ("n", "h", "w", "g", "f"),
        **HALF,
    ),
    "f16",
)
WIDE_GROUPS = Layer(
    replace(GROUPS, name="wide_groups", sizes={**GROUPS.sizes, "f": 35, "w": 30}), "f32"
)
CASES: list[tuple[Layer, Any]] = [
    *((OF_GROUPS, variant) for variant in (WHOLE, PARTS, BLOCKS)),
    *((layer, one) for layer in (HALF_GROUPS, GROUPS_LAST) for one in (ELEMENTS, ELEMENT_PARTS)),
    *((layer, BLOCKS) for layer in (HALF_GROUPS, GROUPS_LAST, WIDE_GROUPS)),
    *((layer, variant) for layer in (EVEN, ODD, LAST, IN_PLACE) for variant in (WHOLE, PARTS)),
    *((layer, one) for layer in (HALF_EVEN, HALF_ODD) for one in (ELEMENTS, ELEMENT_PARTS)),
    *((layer, BLOCKS) for layer in (EVEN, ODD, LAST, HALF_EVEN, IN_PLACE)),
    *((layer, BLOCKS) for layer in (LINES, POINTS, POINTS_IN_PLACE, COPIED)),
]
NAMES = {id(variant): name for name, variant in list(globals().items()) if name.isupper()}


def name_of(layer: Layer, variant: Any) -> str:
    return f"{layer.convolution.name}_{NAMES[id(variant)].lower()}"


def text_of(layer: Layer, variant: Any) -> str:
    if isinstance(variant, CPU_BLOCKED.variant_type):
        family: Any = IMPLICIT_CPU
    else:
        family = (
            IMPLICIT_SIMT if isinstance(variant, IMPLICIT_SIMT.variant_type) else IMPLICIT_MMA_SYNC
        )

    def write(fused: Fused) -> str:
        problem = fused.problem
        assert isinstance(problem, ImplicitGemm)
        assert fused.epilogue is not None
        assert [operand.value.type for operand in fused.operands[3:]]
        finish = fused.epilogue
        return str(family.function(problem, variant, name_of(layer, variant), finish))

    return entry(layer.fused(write))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    def make(folder: Path) -> None:
        build_library("\n".join(text_of(*case) for case in CASES), folder, name="fused")

    folder = made_once(shared_folder(tmp_path_factory) / "fused", make)
    return Library(folder / "lib" / "libfused.so", folder / "fused.json")


@pytest.mark.parametrize(("layer", "variant"), CASES, ids=[name_of(*case) for case in CASES])
def test_result_is_numpys(library: Library, layer: Layer, variant: Any) -> None:
    os.environ["AOTC_DEVICE"] = "cpu"
    made = layer.convolution
    a, b, c = made.operands()
    total, size = made.expected(a, b, c)
    rng = np.random.default_rng(11)
    dtype = DTYPES[layer.stored]
    channels = [made.c[number] for number in layer.channels]
    scale = rng.uniform(-1, 1, [made.sizes[loop] for loop in channels]).astype(np.float32)
    residual = rng.uniform(-1, 1, c.shape).astype(dtype)
    spread = scale.reshape([made.sizes[one] if one in "gf" else 1 for one in made.c])
    expected = np.maximum(total * spread + residual, 0)
    given = {"scale": scale, "residual": residual}

    def arguments(fused: Fused) -> list[Any]:
        """As the kernel takes them: A and B may have changed places, shapes are collapsed."""
        shapes = [
            extra.type.split("<")[1].split("x")[:-1] for extra in fused.problem.epilogue_operands
        ]
        epilogue_operands = [
            given["scale" if len(one) == scale.ndim else "residual"] for one in shapes
        ]
        epilogue_operands = [
            array.reshape([int(size) for size in one])
            for array, one in zip(epilogue_operands, shapes, strict=True)
        ]
        turned = fused.problem.a.type == made.type("b")
        return [
            *((b, a) if turned else (a, b)),
            residual if layer.in_place else np.full(c.shape, np.nan, dtype),
            *epilogue_operands,
        ]

    called = layer.fused(arguments)
    library.call(name_of(layer, variant), *called)
    rounding = float(np.finfo(np.float32 if layer.stored == "f32" else np.float16).eps)
    allowed = (size + np.abs(residual)) * 1e-6 + np.abs(expected) * rounding
    assert np.all(np.abs(called[2].astype(np.float64) - expected) <= allowed)
