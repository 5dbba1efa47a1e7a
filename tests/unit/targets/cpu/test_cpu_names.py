"""Symbols of CPU kernels: what they are called, and how they enter the host module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, build

from aotc.errors import InputError
from aotc.host.merge_kernels import merge_cpu_kernels
from aotc.mlir import PassManager, ir, llvm, make_context
from aotc.rewrites.math import replace_math
from aotc.targets.cpu.kernels import build_cpu_kernels

# Two gpu.modules whose functions, globals and format strings share their names.
TWINS = "\n".join(
    f"""
gpu.module @{module} {{
  memref.global "private" constant @value : memref<1xi32> = dense<[{value}]>
  func.func private @helper(%x: i32) -> i32 {{
    %c = arith.constant {value} : i32
    %r = arith.addi %x, %c : i32
    return %r : i32
  }}
  gpu.func @{kernel}(%out: memref<?xi32>) kernel {{
    %c0 = arith.constant 0 : index
    %m = memref.get_global @value : memref<1xi32>
    %v = memref.load %m[%c0] : memref<1xi32>
    %r = func.call @helper(%v) : (i32) -> i32
    %p = math.ipowi %r, %r : i32
    gpu.printf "{module}"
    memref.store %r, %out[%c0] : memref<?xi32>
    gpu.return
  }}
}}"""
    for module, kernel, value in (("a", "b_c", 1), ("a_b", "c", 2))
)


def _symbols(module: Any) -> list[str]:
    return [
        ir.StringAttr(operation.attributes["sym_name"]).value
        for operation in module.body.operations
    ]


def test_names_never_collide(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """@a::@b_c and @a_b::@c would both be aotc_cpu_a_b_c; their helpers are two, too."""
    device = CpuDevice(TWINS, tmp_path)
    assert [k.symbol for k in device.kernels.kernels] == ["aotc_cpu_a_b_c", "aotc_cpu_a_b_c_0"]
    out = np.zeros(1, np.int32)
    device.run("b_c", 1, 1, out)
    assert out[0] == 2
    device.run("c", 1, 1, out)
    assert out[0] == 4


def test_names_leave_the_hosts_alone() -> None:
    """A symbol that the input already has, anywhere, is not taken."""
    kernels = build(
        """
        func.func private @aotc_cpu_m_k()
        module @inner { func.func private @aotc_cpu_m_k_0() }
        gpu.module @m { gpu.func @k() kernel { gpu.return } }
        """
    )
    assert [k.symbol for k in kernels.kernels] == ["aotc_cpu_m_k_1"]


def test_everything_defined_is_internal_and_ours() -> None:
    """What the kernels' module defines has our prefix; the rest are declarations."""
    kernels = build(TWINS)
    for operation in kernels.module.body.operations:
        name = ir.StringAttr(operation.attributes["sym_name"]).value
        if name.startswith("aotc_cpu_"):
            assert "internal" in str(operation.attributes["linkage"]), name
        else:
            assert name == "printf"
            assert not list(operation.regions[0].blocks)


def test_what_concerns_the_device_is_dropped() -> None:
    """Nothing tells the host's compiler how to compile for a GPU, or offers a C interface."""
    kernels = build(
        """
        gpu.module @m {
          func.func @f() attributes {llvm.emit_c_interface, nvvm.maxreg = 8 : i32} { return }
          llvm.func @g() attributes {target_cpu = "sm_90", passthrough = ["convergent"]} {
            llvm.return
          }
          gpu.func @k() kernel attributes {nvvm.minctasm = 2 : i32} {
            func.call @f() : () -> ()
            llvm.call @g() : () -> ()
            gpu.return
          }
        }
        """
    )
    symbols = ["aotc_cpu_m_f", "aotc_cpu_m_g", "aotc_cpu_m_k"]
    assert sorted(_symbols(kernels.module)) == symbols
    text = str(kernels.module)
    assert "nvvm" not in text
    assert "sm_90" not in text
    assert "convergent" not in text


def test_the_input_stays_as_it_was() -> None:
    """build_cpu_kernels changes nothing in the module that it is given."""
    with make_context():
        module = ir.Module.parse(TWINS)
        before = str(module)
        build_cpu_kernels(module)
        assert str(module) == before


def test_no_kernels_make_an_empty_module() -> None:
    """Input without gpu.modules has no CPU kernels, which is no error."""
    kernels = build("func.func @f() { return }")
    assert kernels.kernels == ()
    assert not list(kernels.module.body.operations)


HOST = """
llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.func @erff(f32) -> f32
llvm.func @entry()
gpu.module @m {
  gpu.func @k(%out: memref<f32>, %x: f32) kernel {
    %e = math.erf %x : f32
    %f = math.cbrt %e : f32
    gpu.printf "%f", %f : f32
    memref.store %f, %out[] : memref<f32>
    gpu.return
  }
}
"""


def _merged(host_text: str) -> Any:
    host = ir.Module.parse(host_text)
    kernels = build_cpu_kernels(host)
    for operation in list(host.body.operations):
        if operation.operation.name == "gpu.module":
            operation.operation.erase()
    merge_cpu_kernels(kernels, host)
    assert not list(kernels.module.body.operations)
    host.operation.verify()
    return host


def test_merging_declares_the_c_library_once() -> None:
    """Functions of libc and libm that host and kernels both use are declared once."""
    with make_context():
        host = _merged(HOST)
        symbols = _symbols(host)
        assert sorted(symbols) == sorted(
            [
                "printf",
                "erff",
                "entry",
                "cbrtf",
                "aotc_cpu_m_k",
                "aotc_cpu_m_k_thread_format0",
            ]
        )
        assert "call float @cbrtf" in llvm.translate_module_to_llvmir(host.operation)


def test_math_of_the_host_uses_its_own_declarations() -> None:
    """A libm function that the module declares itself is not declared again."""
    with make_context(), ir.Location.unknown():
        host = ir.Module.parse(
            """
            func.func private @erff(f32) -> f32
            func.func @f(%x: f32) -> f32 {
              %y = func.call @erff(%x) : (f32) -> f32
              %z = math.erf %y : f32
              return %z : f32
            }
            """
        )
        replace_math(host)
        assert host.operation.verify()
        assert sorted(_symbols(host)) == ["erff", "f"]
        assert "math.erf" not in str(host)


def test_merging_refuses_another_meaning() -> None:
    """A host symbol with the name of a libm function and another type is the user's error."""
    with make_context(), pytest.raises(InputError, match="a symbol 'cbrtf' of its own"):
        _merged(HOST + "llvm.func @cbrtf(i32) -> i32")


def test_arguments_are_in_the_order_of_gpu_to_llvm() -> None:
    """The parameters that a kernel's function loads first are those that gpu-to-llvm passes."""
    source = """
    module attributes {gpu.container_module} {
      gpu.module @m {
        gpu.func @k(%a: memref<?x4xf32, strided<[?, 1], offset: ?>>, %b: index, %c: memref<f16>,
                    %d: complex<f64>, %e: vector<4xf32>, %f: i1, %g: memref<*xbf16>) kernel {
          gpu.return
        }
      }
      func.func @host(%a: memref<?x4xf32, strided<[?, 1], offset: ?>>, %b: index, %c: memref<f16>,
                      %d: complex<f64>, %e: vector<4xf32>, %f: i1, %g: memref<*xbf16>) {
        %one = arith.constant 1 : index
        gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one)
          args(%a : memref<?x4xf32, strided<[?, 1], offset: ?>>, %b : index, %c : memref<f16>,
               %d : complex<f64>, %e : vector<4xf32>, %f : i1, %g : memref<*xbf16>)
        return
      }
    }
    """
    with make_context():
        module = ir.Module.parse(source)
        kernels = build_cpu_kernels(module)
        passes = (
            "gpu.module(convert-gpu-to-nvvm),convert-func-to-llvm,convert-arith-to-llvm,"
            "gpu-to-llvm,reconcile-unrealized-casts"
        )
        PassManager.parse(f"builtin.module({passes})").run(module.operation)
        (launch,) = [
            operation.operation
            for function in module.body.operations
            if function.operation.name == "llvm.func"
            for block in function.operation.regions[0].blocks
            for operation in block.operations
            if operation.operation.name == "gpu.launch_func"
        ]
        sizes = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
        # async, grid x 3, block x 3, cluster x 3, dynamic shared memory, kernel operands, ...
        start = sum(sizes[:11])
        launched = [str(value.type) for value in list(launch.operands)[start : start + sizes[11]]]
        (function,) = [
            function
            for function in kernels.module.body.operations
            if ir.StringAttr(function.attributes["sym_name"]).value == "aotc_cpu_m_k"
        ]
        loaded = [
            str(operation.results[0].type)
            for operation in function.regions[0].blocks[0].operations
            if operation.operation.name == "llvm.load"
        ]
    # Each is a load of the value's address, then of the value.
    assert loaded[: 2 * len(launched) : 2] == ["!llvm.ptr"] * len(launched)
    assert loaded[1 : 2 * len(launched) : 2] == launched
