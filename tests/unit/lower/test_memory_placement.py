"""Memory placement: every buffer that a kernel is given is one that the GPU can reach."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import build_library
from unit.lower.memory_text import ALLOC, COPY_OUT, DEALLOC, END, entry, fill

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

# name: (module, managed allocations, host allocations, frees of managed, frees of host memory)
PLACEMENTS: dict[str, tuple[str, int, int, int, int]] = {
    "alloc": (
        entry(f"{ALLOC}{fill('%t')}{END}"),
        *(1, 0, 1, 0),
    ),
    "alloca": (
        entry(f"%t = memref.alloca() : memref<32xf32>{fill('%t')}{COPY_OUT}\nreturn"),
        *(1, 0, 1, 0),
    ),
    "alloc_of_the_host_alone": (
        entry(
            f"""{ALLOC}
  memref.store %one, %t[%c5] : memref<32xf32>
  {COPY_OUT}
  {DEALLOC}
  {fill("%a")}
  return"""
        ),
        *(0, 1, 0, 1),
    ),
    "through_a_view": (
        entry(
            f"""{ALLOC}
  %v = memref.subview %t[0][32][1] : memref<32xf32> to memref<32xf32, strided<[1]>>
  {fill("%v", type_="memref<32xf32, strided<[1]>>")}
  {END}"""
        ),
        *(1, 0, 1, 0),
    ),
    "through_a_loop": (
        entry(
            f"""{ALLOC}
  %u = memref.alloc() : memref<32xf32>
  %r:2 = scf.for %n = %c0 to %c5 step %c1 iter_args(%p = %t, %q = %u)
      -> (memref<32xf32>, memref<32xf32>) {{
    {fill("%p")}
    scf.yield %q, %p : memref<32xf32>, memref<32xf32>
  }}
  {COPY_OUT}
  {DEALLOC}
  memref.dealloc %u : memref<32xf32>
  return"""
        ),
        *(2, 0, 2, 0),
    ),
    # One free for whichever it was: neither may stay host memory.
    "sharing_a_dealloc": (
        entry(
            f"""%t = scf.if %go -> memref<32xf32> {{
    %p = memref.alloc() : memref<32xf32>
    {fill("%p")}
    scf.yield %p : memref<32xf32>
  }} else {{
    %q = memref.alloc() : memref<32xf32>
    memref.store %one, %q[%c5] : memref<32xf32>
    scf.yield %q : memref<32xf32>
  }}
  {END}""",
            arguments="%a: memref<32xf32>, %go: i1",
        ),
        *(2, 0, 1, 0),
    ),
    "from_a_called_function": (
        entry(
            f"""%t = func.call @make() : () -> memref<32xf32>
  {fill("%t")}
  {END}""",
            before="""func.func private @make() -> memref<32xf32> {
  %t = memref.alloc() : memref<32xf32>
  return %t : memref<32xf32>
}""",
        ),
        *(1, 0, 1, 0),
    ),
    "into_a_called_function": (
        entry(
            f"""{ALLOC}
  func.call @use(%t) : (memref<32xf32>) -> ()
  {END}""",
            before=entry(fill("%a") + "return")
            .replace("@f(", "private @use(")
            .replace("attributes {llvm.emit_c_interface}", ""),
        ),
        *(1, 0, 1, 0),
    ),
    "in_a_branch_that_does_not_dominate_the_end": (
        entry(
            f"""cf.cond_br %go, ^some, ^none
^some:
  %t = memref.alloca() : memref<32xf32>
  {fill("%t")}
  {COPY_OUT}
  cf.br ^none
^none:
  return""",
            arguments="%a: memref<32xf32>, %go: i1",
        ),
        *(1, 0, 1, 0),
    ),
    "through_branches": (
        entry(
            f"""{ALLOC}
  cf.br ^next(%t : memref<32xf32>)
^next(%p: memref<32xf32>):
  {fill("%p")}
  {END}"""
        ),
        *(1, 0, 1, 0),
    ),
    "through_a_switch": (
        entry(
            f"""{ALLOC}
  %u = memref.alloc() : memref<32xf32>
  %r = scf.index_switch %n -> memref<32xf32>
  case 1 {{
    scf.yield %t : memref<32xf32>
  }}
  default {{
    scf.yield %u : memref<32xf32>
  }}
  {fill("%r")}
  {COPY_OUT}
  {DEALLOC}
  memref.dealloc %u : memref<32xf32>
  return""",
            arguments="%a: memref<32xf32>, %n: index",
        ),
        *(2, 0, 2, 0),
    ),
    "through_a_switch_of_blocks": (
        entry(
            f"""{ALLOC}
  cf.switch %n : i32, [
    default: ^end,
    1: ^some(%t : memref<32xf32>),
    2: ^other
  ]
^some(%p: memref<32xf32>):
  {fill("%p")}
  cf.br ^end
^other:
  memref.store %one, %a[%c5] : memref<32xf32>
  cf.br ^end
^end:
  {END}""",
            arguments="%a: memref<32xf32>, %n: i32",
        ),
        *(1, 0, 1, 0),
    ),
    "out_of_a_scope": (
        entry(
            f"""%r = memref.alloca_scope -> (memref<32xf32>) {{
    {ALLOC}
    memref.alloca_scope.return %t : memref<32xf32>
  }}
  {fill("%r")}
  memref.copy %r, %a : memref<32xf32> to memref<32xf32>
  memref.dealloc %r : memref<32xf32>
  return"""
        ),
        *(1, 0, 1, 0),
    ),
    "dynamic": (
        entry(
            f"""%n = memref.dim %a, %c0 : memref<?xf32>
  %t = memref.alloc(%n) : memref<?xf32>
  {fill("%t", type_="memref<?xf32>")}
  memref.copy %t, %a : memref<?xf32> to memref<?xf32>
  memref.dealloc %t : memref<?xf32>
  return""",
            arguments="%a: memref<?xf32>",
        ),
        *(1, 0, 1, 0),
    ),
    "in_a_loop": (
        entry(
            f"""scf.for %n = %c0 to %c5 step %c1 {{
    %t = memref.alloca(%c32) : memref<?xf32>
    {fill("%t", type_="memref<?xf32>")}
    %v = memref.load %t[%n] : memref<?xf32>
    memref.store %v, %a[%n] : memref<32xf32>
  }}
  return"""
        ),
        *(1, 0, 1, 0),
    ),
}


@pytest.mark.parametrize("name", PLACEMENTS)
def test_managed_placement(name: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    """What reaches a launch is managed, and freed as such; what does not is left alone."""
    text, managed, host, managed_frees, host_frees = PLACEMENTS[name]
    options = ("--memory", "managed", "--emit", "mlir", "-o", "-")
    outlined = aotc("build", mlir_file(text), *options).succeeded().stdout
    assert (
        len(re.findall(r"= gpu\.alloc +host_shared", outlined)),
        len(re.findall(r"= memref\.alloca? ?\(", outlined)),
        len(re.findall(r"= gpu\.dealloc async", outlined)),
        outlined.count("memref.dealloc"),
    ) == (managed, host, managed_frees, host_frees)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_explicit_placement(name: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    """Buffers stay where the input has them."""
    options = ("--memory", "explicit", "-Wno-host-pointer", "--emit", "mlir", "-o", "-")
    outlined = aotc("build", mlir_file(PLACEMENTS[name][0]), *options).succeeded().stdout
    assert "gpu.alloc" not in outlined
    assert "gpu.memcpy" not in outlined


# name: a module whose temporaries aotc's passes make.
TEMPORARIES = {
    # The sums are accumulated in f32, and in parts.
    "column_sums_of_f16": """
func.func @f(%x: memref<20000x48xf16>, %y: memref<48xf16>) attributes {llvm.emit_c_interface} {
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<20000x48xf16>) outs(%y : memref<48xf16>) {
    ^bb0(%a: f16, %b: f16):
      %s = arith.addf %a, %b : f16
      linalg.yield %s : f16
  }
  return
}""",
    "a_tensor_of_a_loop": """
func.func @f(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<?xf32> {
    %e = math.exp %t : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}""",
}


@pytest.mark.parametrize("name", TEMPORARIES)
def test_temporaries_under_explicit_placement(name: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    """Buffers that the author did not allocate are where kernels can use them."""
    options = ("--memory", "explicit", "--emit", "mlir", "-o", "-")
    outlined = aotc("build", mlir_file(TEMPORARIES[name]), *options).succeeded().stdout
    assert "gpu.alloc" in outlined


# name: (buffers of the device, of which have a mirror of the host's, copies, waits)
AUTOMATIC: dict[str, tuple[int, int, int, int]] = {
    "alloc": (1, 0, 1, 0),
    "alloca": (1, 0, 1, 0),
    # The device copies from it, so it is freed when that is done.
    "alloc_of_the_host_alone": (0, 0, 1, 1),
    "through_a_view": (1, 0, 1, 0),
    # Two buffers are parts of one.
    "through_a_loop": (1, 0, 1, 0),
    # Only the run tells which of the two it is. Host memory is freed behind it: a wait.
    "sharing_a_dealloc": (2, 2, 2, 1),
    "from_a_called_function": (1, 0, 1, 0),
    "into_a_called_function": (1, 0, 1, 0),
    "in_a_branch_that_does_not_dominate_the_end": (1, 0, 1, 0),
    "through_branches": (1, 0, 1, 0),
    "through_a_switch": (1, 0, 1, 0),
    "through_a_switch_of_blocks": (1, 0, 1, 0),
    "out_of_a_scope": (1, 0, 1, 0),
    "dynamic": (1, 0, 1, 0),
    "in_a_loop": (1, 1, 2, 1),
}


@pytest.mark.parametrize("name", AUTOMATIC)
def test_automatic_placement(name: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    """Kernels get device memory; what the host touches, too, is there twice."""
    options = ("--emit", "mlir", "-o", "-")
    outlined = aotc("build", mlir_file(PLACEMENTS[name][0]), *options).succeeded().stdout
    assert "host_shared" not in outlined
    buffers = re.findall(r"= memref\.alloca? ?\(.*: memref<(?:32|\?)xf32>", outlined)
    mirrors = 0 if name == "alloc_of_the_host_alone" else len(buffers)
    assert (
        len(re.findall(r"= gpu\.alloc", outlined)),
        mirrors,
        outlined.count("gpu.memcpy"),
        outlined.count("call @aotc_wait"),
    ) == AUTOMATIC[name]


@pytest.mark.parametrize("name", ["alloc", "alloca", "through_a_loop", "from_a_called_function"])
def test_placed_buffers_work(name: str, tmp_path: Path) -> None:
    """The host reads in them what the kernel wrote, and freeing them is right."""
    library = build_library(PLACEMENTS[name][0], tmp_path)
    a = np.zeros(32, np.float32)
    for _ in range(3):
        a[:] = 0
        library.call("f", a)
        assert (a == 1).all()


@pytest.mark.parametrize(("size", "whole"), [("100", "memref<912xi8>"), ("?", "memref<?xi8>")])
def test_buffers_of_a_function_are_one(
    size: str, whole: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """A part is used again behind its last use, also one of unknown size; what the module allocates
    on the device by itself stays. An entry says what all of it is."""
    type_, sizes = f"memref<{size}xf32>", "%n" if size == "?" else ""
    steps = "\n".join(
        f"""scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %end = arith.subi %n, %c1 : index
    %last = arith.subi %end, %i : index
    %v = memref.load %{source}[%last] : {type_}
    %s = arith.addf %v, %one : f32
    memref.store %s, %{target}[%i] : {type_}
  }}"""
        for source, target in ["xa", "ab", "bc", "cd", "de", "ex"]
    )
    text = f"""
func.func @chain(%x: {type_}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %x, %c0 : {type_}
  {" ".join(f"%{name} = memref.alloc({sizes}) : {type_}" for name in "abcd")}
  %e = gpu.alloc({sizes}) : {type_}
  {steps}
  {" ".join(f"memref.dealloc %{name} : {type_}" for name in "abcd")}
  gpu.dealloc %e : {type_}
  return
}}"""
    options = ("--emit", "mlir", "-o", "-")
    outlined = aotc("build", mlir_file(text), *options).succeeded().stdout
    assert sorted(re.findall(r"gpu\.alloc .*: (memref<.*>)", outlined)) == sorted([type_, whole])
    assert len(set(re.findall(r"memref\.view %\w+\[(%\w+)\]", outlined))) == 2
    workspace = "@chain.workspace_size(%arg0: index)" if size == "?" else "workspace_bytes = 1536"
    assert workspace in outlined
    library = build_library(text, tmp_path)
    for count in (100, 3, 1) if size == "?" else (100,):
        x = np.arange(count, dtype=np.float32)
        library.call("chain", x)
        np.testing.assert_array_equal(x, np.arange(count) + 6)


@pytest.mark.parametrize("rows", ["512", "?"])
def test_buffers_that_kernels_read_by_tma_are_used_again(
    rows: str, aotc: Aotc, mlir_file: MlirFile
) -> None:
    """A TMA descriptor, and a comparison of an address, keep no buffer until the function ends: of
    four matmuls behind each other, the three temporaries have two places."""
    type_ = f"tensor<{rows}x512xf16>"
    steps = "\n".join(
        f"""%e{i} = tensor.empty({"%n" if rows == "?" else ""}) : {type_}
  %z{i} = linalg.fill ins(%zero : f16) outs(%e{i} : {type_}) -> {type_}
  %x{i + 1} = linalg.matmul ins(%x{i}, %w : {type_}, tensor<512x512xf16>)
      outs(%z{i} : {type_}) -> {type_}"""
        for i in range(4)
    )
    text = f"""
func.func @chain(%x0: {type_}, %w: tensor<512x512xf16>) -> {type_}
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %n = tensor.dim %x0, %c0 : {type_}
  {steps}
  return %x4 : {type_}
}}"""
    options = ("--chip", "sm_90a", "--emit", "mlir", "-o", "-")
    outlined = aotc("build", mlir_file(text), *options).succeeded().stdout
    assert "nvgpu.tma.create.descriptor" in outlined
    if rows == "?":
        places = set(re.findall(r"memref\.view %\w+\[(%\w+)\]\[%\w+\]", outlined))
        assert len(places) == 2
    else:
        assert f"workspace_bytes = {2 * 512 * 512 * 2}" in outlined


def test_results_that_kernels_write_by_tma_are_where_the_arguments_are(
    aotc: Aotc, mlir_file: MlirFile
) -> None:
    """TMA descriptors are of views with strides of their own; what is returned is the whole."""
    text = """
func.func @product(%x: tensor<?x64xf16>, %w: tensor<64x1000xf16>) -> tensor<?x1000xf16>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%n) : tensor<?x1000xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<?x1000xf16>) -> tensor<?x1000xf16>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x1000xf16>)
      outs(%z : tensor<?x1000xf16>) -> tensor<?x1000xf16>
  return %y : tensor<?x1000xf16>
}"""
    options = ("--chip", "sm_90a", "--emit", "mlir", "-o", "-")
    outlined = aotc("build", mlir_file(text), *options).succeeded().stdout
    assert "nvgpu.tma.create.descriptor" in outlined
    assert re.search(r"gpu\.alloc +host_shared .*aotc\.result", outlined)
