"""What --explain says of a buffer: the memory that it is in, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome
from unit.lower.memory_text import ALLOC, DEALLOC, END, entry, fill

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

TWIN_READ = "%v = memref.load %t[%c5] : memref<32xf32>\nmemref.store %v, %a[%c5] : memref<32xf32>"

# name: (module, what --explain says of its buffer)
REASONS: dict[str, tuple[str, str]] = {
    "kernels_alone": (
        entry(f"{ALLOC}{fill('%t')}{END}"),
        "device memory: only kernels use it",
    ),
    "host_too": (
        entry(f"{ALLOC}{fill('%t')}{TWIN_READ}\n{DEALLOC}\nreturn"),
        "host memory with a mirror on the device: the host also accesses it (memref.load at ",
    ),
    "copies": (
        entry(f"{ALLOC}{fill('%t')}{TWIN_READ}\n{DEALLOC}\nreturn"),
        "@f: memref<32xf32>: copied if needed, at 1 place",
    ),
    "returned": (
        entry(f"{ALLOC}{fill('%t')}return %t : memref<32xf32>").replace(
            "%a: memref<32xf32>)", "%a: memref<32xf32>) -> memref<32xf32>"
        ),
        "the memory of the caller's arguments, on the device or managed: returned by a function",
    ),
    "or_an_argument": (
        entry(
            f"""{ALLOC}
  %s = arith.select %go, %t, %a : memref<32xf32>
  {fill("%s")}
  {DEALLOC}
  return""",
            arguments="%a: memref<32xf32>, %go: i1",
        ),
        "managed memory: it may be memory of another kind as well",
    ),
    # It looks, and keeps nothing.
    "printed": (
        entry(
            f"""{ALLOC}
  {fill("%t")}
  %u = memref.cast %t : memref<32xf32> to memref<*xf32>
  func.call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  {DEALLOC}
  return""",
            before="func.func private @printMemrefF32(memref<*xf32>)",
        ),
        "host memory with a mirror on the device: the host also accesses it (func.call at ",
    ),
    "handed_to_a_task": (
        entry(
            f"""{ALLOC}
  {fill("%t")}
  %token, %promise = async.execute -> !async.value<memref<32xf32>> {{
    async.yield %t : memref<32xf32>
  }}
  %r = async.await %promise : !async.value<memref<32xf32>>
  memref.copy %r, %a : memref<32xf32> to memref<32xf32>
  memref.dealloc %r : memref<32xf32>
  return"""
        ),
        "managed memory: passed to or from an asynchronous task (async.yield at ",
    ),
    "kept_by_an_unknown_function": (
        entry(
            f"""{ALLOC}
  {fill("%t")}
  func.call @keep(%t) : (memref<32xf32>) -> ()
  return""",
            before="func.func private @keep(memref<32xf32>)",
        ),
        "managed memory: used in a way that is not known (func.call at ",
    ),
    "through_an_operation_that_is_not_followed": (
        entry(
            f"""{ALLOC}
  %u = memref.alloc() : memref<32xf32>
  %x, %y = memref.distinct_objects %t, %u : memref<32xf32>, memref<32xf32>
  {fill("%y")}
  memref.copy %u, %a : memref<32xf32> to memref<32xf32>
  return"""
        ),
        "managed memory: used in a way that is not known (memref.distinct_objects at ",
    ),
    "in_a_memref_of_memrefs": (
        entry(
            f"""{ALLOC}
  %table = memref.alloc() : memref<2xmemref<32xf32>>
  memref.store %t, %table[%c1] : memref<2xmemref<32xf32>>
  %x = memref.load %table[%c1] : memref<2xmemref<32xf32>>
  {fill("%x")}
  {TWIN_READ}
  return"""
        ),
        "memref<32xf32>: managed memory: used in a way that is not known (memref.store at ",
    ),
    "from_a_function_whose_address_is_taken": (
        entry(
            """%f = func.constant @make : () -> memref<32xf32>
  %t = scf.for %n = %c0 to %c5 step %c1 iter_args(%g = %f) -> (() -> memref<32xf32>) {
    %h = func.call @other(%g) : (() -> memref<32xf32>) -> (() -> memref<32xf32>)
    scf.yield %h : () -> memref<32xf32>
  }
  %m = func.call_indirect %t() : () -> memref<32xf32>
  memref.copy %m, %a : memref<32xf32> to memref<32xf32>
  return""",
            before=f"""
func.func private @other(() -> memref<32xf32>) -> (() -> memref<32xf32>)
func.func private @make() -> memref<32xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1.0 : f32
  {ALLOC}
  {fill("%t")}
  return %t : memref<32xf32>
}}""",
        ),
        "managed memory: returned by a function that is called from outside",
    ),
    "in_blocks": (
        entry(
            f"""{ALLOC}
  {fill("%t")}
  cf.cond_br %go, ^some, ^none
^some:
  {TWIN_READ}
  cf.br ^none
^none:
  {DEALLOC}
  return""",
            arguments="%a: memref<32xf32>, %go: i1",
        ),
        "managed memory: the host accesses it, and @f has branches between blocks",
    ),
    "handed_to_the_next_turn": (
        entry(
            f"""%u = memref.alloc() : memref<32xf32>
  %r = scf.for %n = %c0 to %c5 step %c1 iter_args(%p = %u) -> (memref<32xf32>) {{
    {ALLOC}
    {fill("%t")}
    {TWIN_READ}
    %w = memref.load %p[%c5] : memref<32xf32>
    memref.store %w, %a[%n] : memref<32xf32>
    scf.yield %t : memref<32xf32>
  }}
  return"""
        ),
        "managed memory: the host accesses it, and an iteration of the loop passes it "
        "to the next one",
    ),
    "constant": (
        entry(
            """%w = memref.get_global @w : memref<32xf32>
  %v = memref.load %w[%c5] : memref<32xf32>
  gpu.launch_func @k::@add blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%w : memref<32xf32>, %a : memref<32xf32>)
  return""",
            before="""module attributes {gpu.container_module} {
gpu.module @k {
  gpu.func @add(%w: memref<32xf32>, %a: memref<32xf32>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %w[%i] : memref<32xf32>
    memref.store %v, %a[%i] : memref<32xf32>
    gpu.return
  }
}
memref.global "private" constant @w : memref<32xf32> = dense<3.0>""",
        )
        + "}",
        "copied to the device once for each load of the module: nothing writes it",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_what_is_explained(name: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    text, reason = REASONS[name]
    options = ("--explain", "--emit", "mlir", "-o", str(tmp_path / "out.mlir"))
    told = aotc("build", mlir_file(text), *options).succeeded()
    assert reason in told.stdout + told.stderr


def test_constants_described_for_tma_are_on_the_device(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """A matmul on sm_90 reads its constant through a descriptor, or directly, by its sizes'
    alignment: of the device's copy both."""
    text = """func.func @f(%a: memref<128x256xf16>, %c: memref<128x256xf16>)
    attributes {llvm.emit_c_interface} {
  %w = memref.get_global @w : memref<256x256xf16>
  linalg.matmul ins(%a, %w : memref<128x256xf16>, memref<256x256xf16>)
      outs(%c : memref<128x256xf16>)
  return
}
memref.global "private" constant @w : memref<256x256xf16> = dense<3.0>"""
    out = tmp_path / "host.mlir"
    aotc("build", mlir_file(text), "--chip", "sm_90", "--emit", "host-mlir", "-o", out).succeeded()
    host = out.read_text()
    assert "mgpuTensorMapEncodeTiledMemref" in host
    assert re.findall(r"llvm\.mlir\.addressof @(\w*w)\b", host) == ["aotc_device_w"]
