"""Tensor core operations without a CPU form, and the memory that the others need."""

from __future__ import annotations

import pytest
from unit.targets.cpu.cpu_device import build, gpu_module

from aotc.mlir import ir, make_context
from aotc.targets.cpu.expand.fragments import MMA_SHAPES, WMMA_SHAPES
from aotc.targets.cpu.expand.matmul import place_multiplicands
from aotc.targets.cpu.synchronize import WARP_SLOTS

WORKGROUP = "#gpu.address_space<workgroup>"


def matrix(shape: str, operand: str) -> str:
    return f'!gpu.mma_matrix<{shape}, "{operand}">'


def compute(a: str, b: str, c: str) -> str:
    """A matmul of these shapes and elements."""
    x, y, z = matrix(a, "AOp"), matrix(b, "BOp"), matrix(c, "COp")
    return f"""
    %a = ub.poison : {x}
    %b = ub.poison : {y}
    %c = ub.poison : {z}
    %d = gpu.subgroup_mma_compute %a, %b, %c : {x}, {y} -> {z}"""


def mma(a: str, b: str, c: str, shape: str) -> str:
    return f"""
    %a = ub.poison : vector<{a}>
    %b = ub.poison : vector<{b}>
    %c = ub.poison : vector<{c}>
    %d = nvgpu.mma.sync (%a, %b, %c) {{mmaShape = [{shape}]}}
      : (vector<{a}>, vector<{b}>, vector<{c}>) -> vector<{c}>"""


def load(memref: str, shape: str) -> str:
    return f"""
    %m = ub.poison : memref<{memref}>
    %i = arith.constant 0 : index
    %x = gpu.subgroup_mma_load_matrix %m[%i, %i] {{leadDimension = 64 : index}}
      : memref<{memref}> -> {matrix(shape, "COp")}"""


REFUSED = {
    "wmma_shape": (
        compute("16x16xf32", "16x16xf32", "16x16xf32"),
        "no tensor core has m16n16k16 of f32 and f32 into f32",
    ),
    "wmma_signs": (
        compute("16x16xsi8", "16x16xui8", "16x16xi32"),
        "no tensor core has m16n16k16 of si8 and ui8 into i32",
    ),
    "matrix": (load("64x64xf32", "64x8xf32"), "no tensor core has matrices of 64x8xf32"),
    "mma_shape": (
        mma("8x1xf64", "4x1xf64", "2x2xf64", "16, 8, 16"),
        "no tensor core has m16n8k16 of f64 and f64 into f64",
    ),
    "mma_bf16_sums": (
        mma("2x2xbf16", "1x2xbf16", "2x2xbf16", "16, 8, 8"),
        "no tensor core has m16n8k8 of bf16 and bf16 into bf16",
    ),
    "mma_f32": (
        mma("4x1xf32", "2x1xf32", "2x2xf32", "16, 8, 8"),
        "tensor cores take f32 as tf32 alone: say tf32Enabled",
    ),
    "thread_local": (
        f"""
    %a = ub.poison : {matrix("16x16xf32", "COp")}
    %i = arith.constant 0 : index
    %e = gpu.subgroup_mma_extract_thread_local %a[%i, %i]
      : {matrix("16x16xf32", "COp")} -> f32""",
        "one index says which of a lane's elements is meant, not 2",
    ),
    "ldmatrix_tiles": (
        f"""
    %m = ub.poison : memref<64x64xf16, {WORKGROUP}>
    %i = arith.constant 0 : index
    %x = nvgpu.ldmatrix %m[%i, %i] {{numTiles = 3 : i32, transpose = false}}
      : memref<64x64xf16, {WORKGROUP}> -> vector<3x2xf16>""",
        "ldmatrix loads 1, 2 or 4 tiles",
    ),
    "packed": (
        f"""
    %m = ub.poison : memref<64x64xi4>
    %s = ub.poison : memref<64x64xi4, {WORKGROUP}>
    %i = arith.constant 0 : index
    %x = nvgpu.device_async_copy %m[%i, %i], %s[%i, %i], 8
      : memref<64x64xi4> to memref<64x64xi4, {WORKGROUP}>""",
        "elements of i4 have no CPU form here",
    ),
    "sparse": (
        """
    %a = ub.poison : vector<4x4xi8>
    %c = ub.poison : vector<2x2xi32>
    %m = ub.poison : vector<2xi16>
    %d = nvgpu.mma.sp.sync(%a, %a, %c) metadata(%m) {mmaShape = [16, 8, 64]}
      : (vector<4x4xi8>, vector<4x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>""",
        "the CPU has no sparse m16n8k64 of i8 and i8 into i32",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """What no tensor core does, or has no meaning here, gives no CPU form, with the reason."""
    body, reason = REFUSED[name]
    source = gpu_module(f"gpu.func @k() kernel {{{body}\n    gpu.return\n  }}")
    (kernel,) = build(source).kernels
    assert (kernel.symbol, kernel.step) == (None, None)
    assert kernel.why_not is not None
    assert kernel.why_not.endswith(f": {reason}")


def test_every_shape_fits_into_the_slots() -> None:
    """A and B of every product have room in what a warp exchanges values through."""
    with make_context(), ir.Location.unknown():
        function = ir.Operation.parse("llvm.func @f(%slots: !llvm.ptr) { llvm.return }")
        body = function.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(body):
            for (element, _), shapes in (*MMA_SHAPES.items(), *WMMA_SHAPES.items()):
                for m, n, k in shapes:
                    type_ = ir.Type.parse(element.lstrip("su"))
                    slots = body.arguments[0]
                    a, b = place_multiplicands(slots, WARP_SLOTS, type_, m, n, k)
                    assert (a.rows, a.columns, b.rows, b.columns) == (m, k, k, n)
                    assert a.bytes + b.bytes <= WARP_SLOTS
                    # So that whatever is loaded from B is aligned.
                    assert a.bytes % 64 == 0
            with pytest.raises(ValueError, match="does not fit into 2048 bytes"):
                place_multiplicands(slots, WARP_SLOTS, ir.F64Type.get(), 16, 8, 16)
