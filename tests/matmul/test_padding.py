"""Loops that write an image with zeros around it, in front of convolutions that need none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

from aotc.analysis.aliasing import Roots
from aotc.analysis.functions import Functions
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.cpu.choice import choose_for_cpu
from aotc.kernels.matmul.implicit_gemm.padding import with_padding
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, Padding
from aotc.kernels.matmul.implicit_gemm.recognition import recognise_implicit_gemm
from aotc.mlir import ir
from aotc.ops import find
from aotc.request import Chip

Aotc = Callable[..., Outcome]

# The loop is as `expand_pads` makes it.
MODULE = """
#all = affine_map<(n, h, w, c) -> (n, h, w, c)>
#image = affine_map<(n, h, w, f, p, q, c) -> (n, h + p, w + q, c)>
#filter = affine_map<(n, h, w, f, p, q, c) -> (f, p, q, c)>
#result = affine_map<(n, h, w, f, p, q, c) -> (n, h, w, f)>
func.func @padded(%x: memref<8x28x28x128xf16>, %w: memref<128x3x3x128xf16>,
                  %y: memref<8x28x28x128xf32>) attributes {llvm.emit_c_interface} {
  %low = arith.constant 1 : index
  %size = arith.constant 28 : index
  %first = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0.0 : f32
  %source = memref.alloc() : memref<8x28x28x128xf16>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = FOUR}
      ins(%x : memref<8x28x28x128xf16>) outs(%source : memref<8x28x28x128xf16>) {
  ^bb0(%in: f16, %out: f16):
    %twice = arith.addf %in, %in : f16
    linalg.yield %twice : f16
  }
  %image = memref.alloc() : memref<8x30x30x128xf16>
  linalg.generic {indexing_maps = [#all], iterator_types = FOUR}
      outs(%image : memref<8x30x30x128xf16>) {
  ^bb0(%out: f16):
    %n = linalg.index 0 : index
    %h = linalg.index 1 : index
    %v = linalg.index 2 : index
    %c = linalg.index 3 : index
    %h1 = arith.subi %h, %low : index
    %v1 = arith.subi %v, %low : index
    %h2 = arith.cmpi ult, %h1, %size : index
    %v2 = arith.cmpi ult, %v1, %size : index
    %inside = arith.andi %h2, %v2 : i1
    %h3 = arith.select %inside, %h1, %first : index
    %v3 = arith.select %inside, %v1, %first : index
    %read = memref.load %source[%n, %h3, %v3, %c] : memref<8x28x28x128xf16>
    %chosen = arith.select %inside, %read, %zero : f16
    linalg.yield %chosen : f16
  }
  // BETWEEN
  linalg.generic {indexing_maps = [#all], iterator_types = FOUR}
      outs(%y : memref<8x28x28x128xf32>) {
  ^bb0(%out: f32):
    linalg.yield %none : f32
  }
  linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction",
                        "reduction"]}
      ins(%image, %w : memref<8x30x30x128xf16>, memref<128x3x3x128xf16>)
      outs(%y : memref<8x28x28x128xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %wide_a = arith.extf %a : f16 to f32
    %wide_b = arith.extf %b : f16 to f32
    %product = arith.mulf %wide_a, %wide_b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }
  // BEHIND
  return
}
""".replace("FOUR", '["parallel", "parallel", "parallel", "parallel"]')

WRITES = """linalg.generic {indexing_maps = [#all], iterator_types = FOUR}
      outs(%BUFFER : memref<8xSIZExSIZEx128xf16>) {
  ^bb0(%out: f16):
    linalg.yield %zero : f16
  }""".replace("FOUR", '["parallel", "parallel", "parallel", "parallel"]')


def problem_of(text: str) -> ImplicitGemm:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        roots = Roots(Functions(module))
        *_, generic = find(module.operation, "linalg.generic")
        matmul = recognise_implicit_gemm(generic, roots, allow_tf32=False)
        assert matmul is not None
        found = with_padding(matmul, roots).problem
        assert isinstance(found, ImplicitGemm)
        return found


def test_padding_is_found() -> None:
    strides = (28 * 28 * 128, 28 * 128, 128, 1)
    expected = Padding("a", "memref<8x28x28x128xf16>", (8, 28, 28, 128), strides, (0, 1, 1, 0))
    problem = problem_of(MODULE)
    assert problem.padding == expected
    on_hopper, *others = choose(problem, [Chip("sm_90a")])
    assert on_hopper.reads_without_padding
    assert not any(one.reads_without_padding for one in others)
    on_cpu = choose_for_cpu(problem)
    assert on_cpu is not None
    assert not on_cpu.reads_without_padding


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%zero = arith.constant 0.0 : f16", "%zero = arith.constant 1.0 : f16"),
        ("%size = arith.constant 28", "%size = arith.constant 27"),
        ("%h3 = arith.select %inside, %h1", "%h3 = arith.select %inside, %v1"),
        ("%h3 = arith.select %inside, %h1", "%odd = arith.cmpi ult, %h, %low : index\n"
         "%h3 = arith.select %odd, %h1"),
        ("cmpi ult, %h1", "cmpi ule, %h1"),
        ("%h2 = arith.cmpi ult, %h1", "%h2 = arith.cmpi ult, %h"),
        ("%inside = arith.andi %h2, %v2", "%inside = arith.ori %h2, %v2"),
        ("%source = memref.alloc() : memref<8x28x28x128xf16>", "%source = memref.cast %x : "
         "memref<8x28x28x128xf16> to memref<8x28x28x128xf16>"),
        ("// BETWEEN", WRITES.replace("BUFFER", "source").replace("SIZE", "28")),
        ("// BETWEEN", WRITES.replace("BUFFER", "image").replace("SIZE", "30")),
        ("// BEHIND", "%one = memref.load %image[%first, %first, %first, %first] : "
         "memref<8x30x30x128xf16>"),
    ],
)  # fmt: skip
def test_other_loops_stay(before: str, after: str) -> None:
    """Other values, places or conditions; an image that is written in between; a padded one that
    others write or read, too."""
    changed = MODULE.replace(before, after)
    assert changed != MODULE
    assert problem_of(changed).padding is None


def test_result_over_the_image() -> None:
    """The image is dead behind the loop, so what is added to may be the image itself. Kernels that
    read it would read what others of their blocks have written."""
    before, product = MODULE.split("  // BETWEEN\n")
    _, product = product.split("linalg.yield %none : f32\n  }\n")
    product = re.sub(r"    %wide_.*\n", "", product).replace("%wide_", "%").replace("f32", "f16")
    changed = f"{before}{product}"
    other = changed.replace("%y: memref<8x28x28x128xf32>", "%y: memref<8x28x28x128xf16>")
    assert problem_of(other).padding is not None
    assert problem_of(other.replace("outs(%y", "outs(%source")).padding is None


def test_loop_stands_in_front_of_other_kernels(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """Hopper's kernel is given the image, and zeros around it by TMA; on other GPUs and on the CPU
    the loop is executed first."""
    path, out = mlir_file(MODULE), tmp_path / "out.ll"
    build = ("build", path, "--chip", "sm_80,sm_90a", "--emit", "host-ll", "-o", out)
    said = aotc(*build, "--print-ir-after", "aotc-choose-matmul-kernels").succeeded().stderr
    module = said[said.index("func.func @padded") :]
    first, others = module.split("} else {", 1)
    assert "aotc.im2col = array<i64: -1, -1, -1, -1, 1, 1>" in first
    assert len(re.findall(r"memref\.load .*memref<8x28x28x128xf16>", first)) == 0
    assert len(re.findall(r"memref\.load .*memref<8x28x28x128xf16>", others)) == 2
