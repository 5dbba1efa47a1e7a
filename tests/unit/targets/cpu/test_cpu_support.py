"""Kernels without a CPU form: which ones, and what the user reads."""

from __future__ import annotations

import pytest
from unit.targets.cpu.cpu_device import build, gpu_module

SHARED = "workgroup (shared) memory is not allocated while a kernel runs"
TENSOR_CORES = "this operation of the tensor cores has no CPU form"
HARDWARE = "only a GPU has it"
POINTERS = "function pointers have no CPU form"

# The operation stands alone on line 6; its column is 5. What is before it is on lines 3 to 5.
IN_BODY = {
    "shared alloca": ("%r = memref.alloca() : memref<4xf32, 3>", "memref.alloca", SHARED),
    "wgmma": ("nvvm.wgmma.fence.aligned", "nvvm.wgmma.fence.aligned", TENSOR_CORES),
    "mbarrier": (
        "%r = nvgpu.mbarrier.create -> "
        "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>",
        "nvgpu.mbarrier.create",
        HARDWARE,
    ),
    "lane 0": (
        "gpu.warp_execute_on_lane_0(%lane)[32] { gpu.yield }",
        "gpu.warp_execute_on_lane_0",
        "aotc-decompose-aggregated-ops lowers it",
    ),
    "debugger": (
        "llvm.intr.debugtrap",
        "llvm.intr.debugtrap",
        "a kernel does not stop in a debugger on the CPU",
    ),
    "inline assembly": (
        'llvm.inline_asm "exit;", "" : () -> ()',
        "llvm.inline_asm",
        "it is assembly for the GPU",
    ),
    "intrinsic": (
        'llvm.call_intrinsic "llvm.nvvm.barrier0"() : () -> ()',
        "llvm.call_intrinsic",
        "llvm.nvvm.barrier0: only a GPU has it",
    ),
    "function pointer": (
        "%r = func.constant @declared : (f32) -> f32",
        "func.constant",
        POINTERS,
    ),
    "print": (
        "vector.print %f : f32",
        "vector.print",
        "aotc-decompose-aggregated-ops lowers it",
    ),
    "host operation": (
        "%r = gpu.alloc () : memref<4xf32>",
        "gpu.alloc",
        "it belongs to the host, not into a kernel",
    ),
    "other dialect": (
        "%r = tensor.empty() : tensor<4xf32>",
        "tensor.empty",
        "aotc does not lower the dialect 'tensor' in kernels for the CPU",
    ),
    "scalable vector": (
        "%r = vector.broadcast %f : f32 to vector<[4]xf32>",
        "vector.broadcast",
        "scalable vectors have no CPU form",
    ),
    "wide integer": (
        'gpu.printf "%d", %wide : i128',
        "gpu.printf",
        "printing an i128 has no CPU form",
    ),
}


@pytest.mark.parametrize("case", IN_BODY)
def test_operations_that_do_not_run(case: str) -> None:
    """The reason names the operation, where it is, and what it is."""
    text, operation, reason = IN_BODY[case]
    source = (
        "gpu.module @m { func.func private @declared(f32) -> f32\n"
        "  gpu.func @k() kernel {\n"
        "    %f = arith.constant 1.0 : f32 %true = arith.constant true\n"
        "    %i = arith.constant 1 : i32 %lane = arith.constant 0 : index\n"
        "    %wide = arith.extsi %i : i32 to i128\n"
        f"    {text}\n"
        "    gpu.return\n"
        "  }\n"
        "}"
    )
    column = 5 + text.index("= ") + 2 if text.startswith("%") else 5
    (kernel,) = build(source, "kernels.mlir").kernels
    assert kernel.symbol is None
    assert kernel.why_not == f"{operation} at kernels.mlir:6:{column}: {reason}"


AROUND = {
    "cluster": (
        "  gpu.func @k() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} "
        "{ gpu.return }",
        "gpu.func at kernels.mlir:2:3: clusters of more than one block do not exist on the CPU",
    ),
    "global of another file": (
        "  gpu.func @k() kernel {\n"
        "    %g = memref.get_global @extern : memref<4xf32>\n"
        "    gpu.return }\n"
        '  memref.global "private" @extern : memref<4xf32>',
        "memref.global at kernels.mlir:5:3: "
        "@extern is only declared: its value is not in the module",
    ),
    "function of another file": (
        "  gpu.func @k() kernel {\n"
        "    %f = arith.constant 1.0 : f32\n"
        "    %g = func.call @__nv_expf(%f) : (f32) -> f32\n"
        "    gpu.return }\n"
        "  func.func private @__nv_expf(f32) -> f32",
        "func.func at kernels.mlir:6:3: @__nv_expf is only declared: its body is not in the module",
    ),
    "in a function that is called": (
        "  gpu.func @k() kernel {\n"
        "    func.call @first() : () -> ()\n"
        "    gpu.return }\n"
        "  func.func @first() { func.call @second() : () -> () return }\n"
        "  func.func @second() {\n"
        "    nvvm.wgmma.fence.aligned\n"
        "    return }",
        f"nvvm.wgmma.fence.aligned at kernels.mlir:7:5: {TENSOR_CORES}",
    ),
    "workgroup memory in an llvm.func": (
        "  gpu.func @k() kernel {\n"
        "    llvm.call @f() : () -> ()\n"
        "    gpu.return }\n"
        "  llvm.func @f() { %x = llvm.mlir.addressof @w : !llvm.ptr<3>\n llvm.return }\n"
        "  llvm.mlir.global internal @w() {addr_space = 3 : i32} : !llvm.array<4 x f32>",
        "llvm.func at kernels.mlir:5:3: "
        "llvm.mlir.addressof inside an llvm.func has no CPU form; use a func.func",
    ),
    "id in an llvm.func": (
        "  gpu.func @k() kernel {\n"
        "    llvm.call @f() : () -> ()\n"
        "    gpu.return }\n"
        "  llvm.func @f() { %x = gpu.thread_id x\n llvm.return }",
        "llvm.func at kernels.mlir:5:3: "
        "gpu.thread_id inside an llvm.func has no CPU form; use a func.func",
    ),
    "no lowering": (
        "  gpu.func @k(%w: vector<4x4xf32>, %i: index, %out: memref<f32>) kernel {\n"
        "    %r = vector.extract %w[%i, %i] : f32 from vector<4x4xf32>\n"
        "    memref.store %r, %out[] : memref<f32>\n"
        "    gpu.return }",
        "'vector.extract' has no lowering for the CPU at kernels.mlir:3:10",
    ),
    "illegal": (
        "  gpu.func @k(%z: complex<f32>, %out: memref<i64>) kernel {\n"
        "    %r = complex.bitcast %z : complex<f32> to i64\n"
        "    memref.store %r, %out[] : memref<i64>\n"
        "    gpu.return }",
        "'complex.bitcast' has no lowering for the CPU at kernels.mlir:3:10",
    ),
}


@pytest.mark.parametrize("case", AROUND)
def test_kernels_that_do_not_run(case: str) -> None:
    """So do reasons outside the kernel's body, and those that only a lowering finds."""
    text, reason = AROUND[case]
    (kernel,) = build(f"gpu.module @m {{\n{text}\n}}", "kernels.mlir").kernels
    assert (kernel.symbol, kernel.why_not) == (None, reason)


GOOD = "gpu.func @{0}(%a: memref<i32>) kernel {{ gpu.return }}"
FENCE = "gpu.func @{0}() kernel {{ nvvm.wgmma.fence.aligned gpu.return }}"
NO_LOWERING = """
  gpu.func @{0}(%z: complex<f32>, %out: memref<i64>) kernel {{
    %r = complex.bitcast %z : complex<f32> to i64
    memref.store %r, %out[] : memref<i64>
    gpu.return
  }}"""


def test_other_kernels_keep_their_form() -> None:
    """One kernel's obstacle is its own: those beside it run; all are listed in order."""
    kernels = build(
        gpu_module(
            GOOD.format("first"),
            FENCE.format("second"),
            GOOD.format("third"),
            NO_LOWERING.format("fourth"),
            GOOD.format("fifth"),
        )
    )
    assert [(k.module, k.kernel, k.symbol) for k in kernels.kernels] == [
        ("m", "first", "aotc_cpu_m_first"),
        ("m", "second", None),
        ("m", "third", "aotc_cpu_m_third"),
        ("m", "fourth", None),
        ("m", "fifth", "aotc_cpu_m_fifth"),
    ]
    assert [k.why_not is None for k in kernels.kernels] == [True, False, True, False, True]


def test_what_no_kernel_reaches_is_no_obstacle() -> None:
    """What a function that nothing calls does keeps no kernel away."""
    (kernel,) = build(
        gpu_module(GOOD.format("k"), "func.func @unused() { nvvm.wgmma.fence.aligned return }")
    ).kernels
    assert kernel.symbol == "aotc_cpu_m_k"
