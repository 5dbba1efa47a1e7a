"""Memory placement: every buffer that a kernel is given is one that the GPU can reach."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import build_library

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

_FILL = """
  scf.parallel (%{iv}) = (%c0) to (%c32) step (%c1) {{
    memref.store %one, {buffer}[%{iv}] : {type}
  }}
"""


def fill(buffer: str, iv: str = "i", type_: str = "memref<32xf32>") -> str:
    """A kernel that writes 1 to each element of a buffer."""
    return _FILL.format(buffer=buffer, iv=iv, type=type_)


def entry(body: str, *, before: str = "", arguments: str = "%a: memref<32xf32>") -> str:
    return f"""
{before}
func.func @f({arguments}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1.0 : f32
  {body}
}}
"""


COPY_OUT = "memref.copy %t, %a : memref<32xf32> to memref<32xf32>"
DEALLOC = "memref.dealloc %t : memref<32xf32>"

# name: (module, managed allocations, host allocations, frees of managed, frees of host memory)
PLACEMENTS: dict[str, tuple[str, int, int, int, int]] = {
    "alloc": (
        entry(f"%t = memref.alloc() : memref<32xf32>{fill('%t')}{COPY_OUT}\n{DEALLOC}\nreturn"),
        *(1, 0, 1, 0),
    ),
    "alloca": (
        entry(f"%t = memref.alloca() : memref<32xf32>{fill('%t')}{COPY_OUT}\nreturn"),
        *(1, 0, 1, 0),
    ),
    "alloc_of_the_host_alone": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
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
            f"""%t = memref.alloc() : memref<32xf32>
  %v = memref.subview %t[0][32][1] : memref<32xf32> to memref<32xf32, strided<[1]>>
  {fill("%v", type_="memref<32xf32, strided<[1]>>")}
  {COPY_OUT}
  {DEALLOC}
  return"""
        ),
        *(1, 0, 1, 0),
    ),
    "through_a_loop": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
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
  {COPY_OUT}
  {DEALLOC}
  return""",
            arguments="%a: memref<32xf32>, %go: i1",
        ),
        *(2, 0, 1, 0),
    ),
    "from_a_called_function": (
        entry(
            f"""%t = func.call @make() : () -> memref<32xf32>
  {fill("%t")}
  {COPY_OUT}
  {DEALLOC}
  return""",
            before="""func.func private @make() -> memref<32xf32> {
  %t = memref.alloc() : memref<32xf32>
  return %t : memref<32xf32>
}""",
        ),
        *(1, 0, 1, 0),
    ),
    "into_a_called_function": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
  func.call @use(%t) : (memref<32xf32>) -> ()
  {COPY_OUT}
  {DEALLOC}
  return""",
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
            f"""%t = memref.alloc() : memref<32xf32>
  cf.br ^next(%t : memref<32xf32>)
^next(%p: memref<32xf32>):
  {fill("%p")}
  {COPY_OUT}
  {DEALLOC}
  return"""
        ),
        *(1, 0, 1, 0),
    ),
    "through_a_switch": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
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
            f"""%t = memref.alloc() : memref<32xf32>
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
  {COPY_OUT}
  {DEALLOC}
  return""",
            arguments="%a: memref<32xf32>, %n: i32",
        ),
        *(1, 0, 1, 0),
    ),
    "out_of_a_scope": (
        entry(
            f"""%r = memref.alloca_scope -> (memref<32xf32>) {{
    %t = memref.alloc() : memref<32xf32>
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


# name: (buffers of the device, of which have a twin of the host's, copies, waits)
AUTOMATIC: dict[str, tuple[int, int, int, int]] = {
    "alloc": (1, 0, 1, 0),
    "alloca": (1, 0, 1, 0),
    # The device copies from it, so it is freed when that is done.
    "alloc_of_the_host_alone": (0, 0, 1, 1),
    "through_a_view": (1, 0, 1, 0),
    "through_a_loop": (2, 0, 1, 0),
    # Only the run tells which of the two it is. Host memory is freed behind it: a wait.
    "sharing_a_dealloc": (2, 2, 2, 1),
    "from_a_called_function": (1, 0, 1, 0),
    "into_a_called_function": (1, 0, 1, 0),
    "in_a_branch_that_does_not_dominate_the_end": (1, 0, 1, 0),
    "through_branches": (1, 0, 1, 0),
    "through_a_switch": (2, 0, 1, 0),
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
    twins = 0 if name == "alloc_of_the_host_alone" else len(buffers)
    assert (
        len(re.findall(r"= gpu\.alloc", outlined)),
        twins,
        outlined.count("gpu.memcpy"),
        outlined.count("call @aotc_wait"),
    ) == AUTOMATIC[name]


TWIN_READ = "%v = memref.load %t[%c5] : memref<32xf32>\nmemref.store %v, %a[%c5] : memref<32xf32>"

# name: (module, what --explain says of its buffer)
REASONS: dict[str, tuple[str, str]] = {
    "kernels_alone": (
        entry(f"%t = memref.alloc() : memref<32xf32>{fill('%t')}{COPY_OUT}\n{DEALLOC}\nreturn"),
        "device memory: kernels alone use it",
    ),
    "host_too": (
        entry(f"%t = memref.alloc() : memref<32xf32>{fill('%t')}{TWIN_READ}\n{DEALLOC}\nreturn"),
        "host memory with a twin on the device: the host touches it, too (memref.load at ",
    ),
    "copies": (
        entry(f"%t = memref.alloc() : memref<32xf32>{fill('%t')}{TWIN_READ}\n{DEALLOC}\nreturn"),
        "@f: memref<32xf32>: copied, where it must be, at 1 place",
    ),
    "returned": (
        entry(
            f"%t = memref.alloc() : memref<32xf32>{fill('%t')}return %t : memref<32xf32>"
        ).replace("%a: memref<32xf32>)", "%a: memref<32xf32>) -> memref<32xf32>"),
        "managed memory: returned by a function that is called from outside",
    ),
    "or_an_argument": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
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
            f"""%t = memref.alloc() : memref<32xf32>
  {fill("%t")}
  %u = memref.cast %t : memref<32xf32> to memref<*xf32>
  func.call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  {DEALLOC}
  return""",
            before="func.func private @printMemrefF32(memref<*xf32>)",
        ),
        "host memory with a twin on the device: the host touches it, too (func.call at ",
    ),
    "handed_to_a_task": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
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
            f"""%t = memref.alloc() : memref<32xf32>
  {fill("%t")}
  func.call @keep(%t) : (memref<32xf32>) -> ()
  return""",
            before="func.func private @keep(memref<32xf32>)",
        ),
        "managed memory: used in a way that is not known (func.call at ",
    ),
    "through_an_operation_that_is_not_followed": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
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
            f"""%t = memref.alloc() : memref<32xf32>
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
  %t = memref.alloc() : memref<32xf32>
  {fill("%t")}
  return %t : memref<32xf32>
}}""",
        ),
        "managed memory: returned by a function that is called from outside",
    ),
    "in_blocks": (
        entry(
            f"""%t = memref.alloc() : memref<32xf32>
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
        "managed memory: the host touches it, and @f has branches between blocks",
    ),
    "handed_to_the_next_turn": (
        entry(
            f"""%u = memref.alloc() : memref<32xf32>
  %r = scf.for %n = %c0 to %c5 step %c1 iter_args(%p = %u) -> (memref<32xf32>) {{
    %t = memref.alloc() : memref<32xf32>
    {fill("%t")}
    {TWIN_READ}
    %w = memref.load %p[%c5] : memref<32xf32>
    memref.store %w, %a[%n] : memref<32xf32>
    scf.yield %t : memref<32xf32>
  }}
  return"""
        ),
        "managed memory: the host touches it, and a turn of the loop hands it to the next one",
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


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")


@pytest.mark.parametrize("name", ["alloc", "alloca", "through_a_loop", "from_a_called_function"])
def test_placed_buffers_work(name: str, tmp_path: Path) -> None:
    """The host reads in them what the kernel wrote, and freeing them is right."""
    library = build_library(PLACEMENTS[name][0], tmp_path)
    a = np.zeros(32, np.float32)
    for _ in range(3):
        a[:] = 0
        library.call("f", a)
        assert (a == 1).all()


# --- Globals ---------------------------------------------------------------------------


def test_a_constant_is_in_the_kernel_s_own_memory(tmp_path: Path) -> None:
    library = build_library(
        entry(
            """scf.parallel (%i) = (%c0) to (%c5) step (%c1) {
    %g = memref.get_global @table : memref<5xf32>
    %v = memref.load %g[%i] : memref<5xf32>
    memref.store %v, %a[%i] : memref<32xf32>
  }
  return""",
            before='memref.global "private" constant @table : memref<5xf32> '
            "= dense<[1.0, 2.0, 4.0, 8.0, 16.0]>",
        ),
        tmp_path,
    )
    a = np.zeros(32, np.float32)
    library.call("f", a)
    np.testing.assert_array_equal(a[:6], [1, 2, 4, 8, 16, 0])


GLOBAL_USES = {
    "handed_over": "%g = memref.get_global @g : memref<32xf32>" + fill("%g"),
    "as_a_view": """%g = memref.get_global @g : memref<32xf32>
  %v = memref.cast %g : memref<32xf32> to memref<?xf32>
"""
    + fill("%v", type_="memref<?xf32>"),
    "named_in_a_launch": """gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %g = memref.get_global @g : memref<32xf32>
    memref.store %one, %g[%tx] : memref<32xf32>
    gpu.terminator
  }
""",
}


@pytest.mark.parametrize("use", GLOBAL_USES)
def test_host_and_kernels_share_a_variable(use: str, tmp_path: Path) -> None:
    """What a kernel stores the host sees, in this function and others, and the other way."""
    library = build_library(
        entry(GLOBAL_USES[use] + "return", before=_VARIABLE, arguments="") + _OTHER_USES,
        tmp_path,
    )
    assert library.call("get", 3) == 7.0
    library.call("set", 3, 9.0)
    assert library.call("get", 3) == 9.0
    library.call("f")
    assert [library.call("get", i) for i in (0, 3, 31)] == [1.0, 1.0, 1.0]
    library.call("set", 3, 5.0)
    assert library.call("get", 3) == 5.0


_VARIABLE = 'memref.global "private" @g : memref<32xf32> = dense<7.0>'
_OTHER_USES = """
func.func @get(%i: index) -> f32 attributes {llvm.emit_c_interface} {
  %g = memref.get_global @g : memref<32xf32>
  %v = memref.load %g[%i] : memref<32xf32>
  return %v : f32
}
func.func @set(%i: index, %v: f32) attributes {llvm.emit_c_interface} {
  %g = memref.get_global @g : memref<32xf32>
  memref.store %v, %g[%i] : memref<32xf32>
  return
}
"""


_BOTH_COPIES = """
module attributes {gpu.container_module} {
gpu.module @k {
  gpu.func @add(%w: memref<32xf32>, %a: memref<32xf32>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %w[%i] : memref<32xf32>
    %u = memref.load %a[%i] : memref<32xf32>
    %s = arith.addf %u, %v : f32
    memref.store %s, %a[%i] : memref<32xf32>
    gpu.return
  }
}
memref.global "private" constant @w : memref<32xf32> = dense<3.0>
memref.global "private" constant @x : memref<32xf32> = dense<4.0>
func.func @f(%a: memref<32xf32>, %n: index) -> f32 attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %w = memref.get_global @w : memref<32xf32>
  gpu.launch_func @k::@add blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%w : memref<32xf32>, %a : memref<32xf32>)
  %x = memref.get_global @x : memref<32xf32>
  %w2 = memref.get_global @w : memref<32xf32>
  %is_w = arith.cmpi eq, %n, %c1 : index
  %one = arith.select %is_w, %w2, %x : memref<32xf32>
  gpu.launch_func @k::@add blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%one : memref<32xf32>, %a : memref<32xf32>)
  %v = memref.load %w[%n] : memref<32xf32>
  return %v : f32
}
func.func @g(%a: memref<32xf32>) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %w = memref.get_global @w : memref<32xf32>
  gpu.launch_func @k::@add blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%w : memref<32xf32>, %a : memref<32xf32>)
  return
}
}
"""


def test_a_constant_has_both_kinds_of_copies(tmp_path: Path) -> None:
    """One use is of it alone, another of one of two: the device's copy, and a managed one."""
    library = build_library(_BOTH_COPIES, tmp_path)
    a = np.zeros(32, np.float32)
    assert library.call("f", a, 1) == 3.0
    assert a[5] == 6.0
    assert library.call("f", a, 0) == 3.0
    assert a[5] == 13.0
    library.call("g", a)
    assert a[5] == 16.0


# --- GPU operations written without tokens ---------------------------------------------


def test_synchronous_gpu_operations(tmp_path: Path) -> None:
    """gpu.alloc, gpu.memcpy, gpu.memset and gpu.dealloc need no token."""
    library = build_library(
        entry(
            f"""%t = gpu.alloc () : memref<32xf32>
  gpu.memset %t, %one : memref<32xf32>, f32
  gpu.memcpy %a, %t : memref<32xf32>, memref<32xf32>
  {fill("%t")}
  gpu.dealloc %t : memref<32xf32>
  return"""
        ),
        tmp_path,
    )
    a = np.zeros(32, np.float32)
    library.call("f", a)
    assert (a == 1).all()


def test_asynchronous_gpu_operations(tmp_path: Path) -> None:
    """A chain of tokens: copy in, launch, copy out, on one stream."""
    library = build_library(
        """
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @twice(%a: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<32xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %a[%i] : memref<32xf32>
      gpu.return
    }
  }
  func.func @f(%a: memref<32xf32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %start = gpu.wait async
    %t, %allocated = gpu.alloc async [%start] () : memref<32xf32>
    %in = gpu.memcpy async [%allocated] %t, %a : memref<32xf32>, memref<32xf32>
    %done = gpu.launch_func async [%in] @device::@twice blocks in (%c1, %c1, %c1)
      threads in (%c32, %c1, %c1) args(%t : memref<32xf32>)
    %out = gpu.memcpy async [%done] %a, %t : memref<32xf32>, memref<32xf32>
    %free = gpu.dealloc async [%out] %t : memref<32xf32>
    gpu.wait [%free]
    return
  }
}
""",
        tmp_path,
    )
    a = np.arange(32, dtype=np.float32)
    library.call("f", a)
    np.testing.assert_array_equal(a, 2 * np.arange(32))
