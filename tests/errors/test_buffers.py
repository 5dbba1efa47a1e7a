"""Buffers that are used when they are freed, outside of their shape, or where no GPU reaches."""

from __future__ import annotations

import re

import pytest
from helpers.checks import BUFFER, HEAD, check, expected, reported

from aotc import mlir
from aotc.input.source import parse_source
from aotc.lower.checks.host_pointers import check_host_pointers

DEALLOCATIONS = {
    "in one block": f"""
  %m = memref.alloc() : {BUFFER}
  memref.store %x, %m[%c0] : {BUFFER}
  memref.dealloc %m : {BUFFER}
  memref.store %x, %m[%c1] : {BUFFER} // ERROR use-after-dealloc
  memref.dealloc %m : {BUFFER} // ERROR double-dealloc
""",
    "through views": f"""
  %m = memref.alloc() : {BUFFER}
  %v = memref.subview %m[4] [4] [1] : {BUFFER} to memref<4xf32, strided<[1], offset: 4>>
  %w = memref.cast %m : {BUFFER} to memref<?xf32>
  memref.dealloc %w : memref<?xf32>
  %d = memref.dim %w, %c0 : memref<?xf32>
  memref.store %x, %v[%c1] : memref<4xf32, strided<[1], offset: 4>> // ERROR use-after-dealloc
""",
    "in regions": f"""
  %m = memref.alloc() : {BUFFER}
  memref.dealloc %m : {BUFFER}
  scf.for %i = %c0 to %c8 step %c1 {{
    scf.if %cond {{
      memref.store %x, %m[%i] : {BUFFER} // ERROR use-after-dealloc
    }}
  }}
""",
    "only one branch frees": f"""
  %m = memref.alloc() : {BUFFER}
  scf.if %cond {{
    memref.dealloc %m : {BUFFER}
  }}
  memref.store %x, %m[%c0] : {BUFFER}
""",
    "a new one in each iteration": f"""
  scf.for %i = %c0 to %c8 step %c1 {{
    %m = memref.alloc() : {BUFFER}
    memref.store %x, %m[%i] : {BUFFER}
    memref.dealloc %m : {BUFFER}
  }}
""",
    "freed at the end of a loop's last iteration": f"""
  %m = memref.alloc() : {BUFFER}
  scf.for %i = %c0 to %c8 step %c1 {{
    memref.store %x, %m[%i] : {BUFFER}
    %is_last = arith.cmpi eq, %i, %c2 : index
    scf.if %is_last {{
      memref.dealloc %m : {BUFFER}
    }}
  }}
""",
    "blocks: on every way": f"""
  %m = memref.alloc() : {BUFFER}
  memref.dealloc %m : {BUFFER}
  cf.cond_br %cond, ^one, ^two
^one:
  memref.store %x, %m[%c0] : {BUFFER} // ERROR use-after-dealloc
  cf.br ^two
^two:
""",
    "blocks: on one way": f"""
  %m = memref.alloc() : {BUFFER}
  cf.cond_br %cond, ^one, ^two
^one:
  memref.dealloc %m : {BUFFER}
  cf.br ^two
^two:
  memref.store %x, %m[%c0] : {BUFFER}
""",
    "blocks: a loop that allocates anew": f"""
  cf.br ^head
^head:
  %m = memref.alloc() : {BUFFER}
  memref.store %x, %m[%c0] : {BUFFER}
  memref.dealloc %m : {BUFFER}
  cf.cond_br %cond, ^head, ^end
^end:
""",
    "blocks: a way that is never taken": f"""
  %never = arith.constant false
  %m = memref.alloc() : {BUFFER}
  memref.dealloc %m : {BUFFER}
  cf.cond_br %never, ^one, ^two
^one:
  memref.store %x, %m[%c0] : {BUFFER}
  cf.br ^two
^two:
""",
    "calls": f"""
  %m = memref.alloc() : {BUFFER}
  memref.dealloc %m : {BUFFER}
  %size = func.call @looks(%m) : ({BUFFER}) -> index
  func.call @writes(%m) : ({BUFFER}) -> () // ERROR use-after-dealloc
  func.call @unknown(%m) : ({BUFFER}) -> () // ERROR use-after-dealloc
""",
    "a launch": f"""
  %m = gpu.alloc () : {BUFFER}
  gpu.dealloc %m : {BUFFER}
  gpu.launch blocks(%a0, %a1, %a2) in (%a3 = %c1, %a4 = %c1, %a5 = %c1)
             threads(%b0, %b1, %b2) in (%b3 = %c1, %b4 = %c1, %b5 = %c1) {{
    memref.store %x, %m[%c0] : {BUFFER} // ERROR use-after-dealloc
    gpu.terminator
  }}
""",
    "tokens that order": f"""
  %t0 = gpu.wait async
  %m, %t1 = gpu.alloc async [%t0] () : {BUFFER}
  %t2 = gpu.dealloc async [%t1] %m : {BUFFER}
  %t3 = gpu.memset async [%t2] %m, %x : {BUFFER}, f32 // ERROR use-after-dealloc
  gpu.wait [%t3]
  gpu.memcpy %a, %m : {BUFFER}, {BUFFER} // ERROR use-after-dealloc
""",
    "tokens that do not": f"""
  %t0 = gpu.wait async
  %m, %t1 = gpu.alloc async [%t0] () : {BUFFER}
  %t2 = gpu.dealloc async [%t1] %m : {BUFFER}
  %t3 = gpu.memset async [%t1] %m, %x : {BUFFER}, f32
  gpu.wait [%t3]
""",
    "realloc": """
  %m = memref.alloc(%n) : memref<?xf32>
  %bigger = memref.realloc %m(%c20) : memref<?xf32> to memref<?xf32>
  memref.store %x, %bigger[%c0] : memref<?xf32>
  memref.store %x, %m[%c0] : memref<?xf32> // ERROR use-after-dealloc
  memref.dealloc %bigger : memref<?xf32>
""",
}


@pytest.mark.parametrize("body", DEALLOCATIONS.values(), ids=list(DEALLOCATIONS))
def test_deallocations(body: str) -> None:
    """What every run that comes there does, and nothing that some run may do right."""
    check(f"{HEAD}{body}  return\n}}\n")


def test_memory_that_no_allocation_made_is_freed() -> None:
    """The stack's and globals' for certain; an entry's argument may be the caller's allocation."""
    check(
        f"""memref.global "private" @g : {BUFFER} = uninitialized
func.func @f(%a: {BUFFER}, %b: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
  %n = arith.constant 9 : index
  %s = memref.alloca() : {BUFFER}
  %w = memref.cast %s : {BUFFER} to memref<?xf32>
  memref.dealloc %w : memref<?xf32> // ERROR invalid-dealloc
  %g = memref.get_global @g : {BUFFER}
  memref.dealloc %g : {BUFFER} // ERROR invalid-dealloc
  memref.dealloc %a : {BUFFER} // WARNING invalid-dealloc
  %r = memref.realloc %b(%n) : memref<?xf32> to memref<?xf32> // WARNING invalid-dealloc
  return
}}
func.func @g1(%a: {BUFFER}) {{
  memref.dealloc %a : {BUFFER}
  return
}}
"""
    )


def test_a_freed_buffer_is_returned() -> None:
    check(
        f"""func.func @f() -> {BUFFER} attributes {{llvm.emit_c_interface}} {{
  %m = memref.alloc() : {BUFFER}
  memref.dealloc %m : {BUFFER}
  return %m : {BUFFER} // ERROR use-after-dealloc
}}
"""
    )


BOUNDS = {
    "constants": f"""
  memref.store %x, %a[%c8] : {BUFFER} // WARNING out-of-bounds
  memref.store %x, %a[%m1] : {BUFFER} // WARNING out-of-bounds
  memref.store %x, %a[%n] : {BUFFER}
  %0 = memref.load %a[%c2] : {BUFFER}
  %1 = affine.load %a[8] : {BUFFER} // WARNING out-of-bounds
  %sum = arith.addi %c2, %c8 : index
  %2 = vector.load %a[%sum] : {BUFFER}, vector<2xf32> // WARNING out-of-bounds
""",
    "loops": f"""
  scf.for %i = %c0 to %c20 step %c1 {{
    memref.store %x, %a[%i] : {BUFFER} // WARNING out-of-bounds
  }}
  scf.for %i = %c0 to %c8 step %c1 {{
    memref.store %x, %a[%i] : {BUFFER}
    %back = arith.subi %c8, %i : index
    memref.store %x, %a[%back] : {BUFFER} // WARNING out-of-bounds
  }}
  affine.for %i = 0 to 9 step 2 {{
    affine.store %x, %a[%i] : {BUFFER} // WARNING out-of-bounds
  }}
  affine.for %i = 0 to 9 step 3 {{
    affine.store %x, %a[%i + 1] : {BUFFER}
    affine.store %x, %a[%i floordiv 2] : {BUFFER}
    affine.store %x, %a[%i * 2 - 1] : {BUFFER} // WARNING out-of-bounds
  }}
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c20) step (%c1, %c1) {{
    memref.store %x, %a[%j] : {BUFFER} // WARNING out-of-bounds
  }}
""",
    "conditions and loops that may not run": f"""
  scf.for %i = %c0 to %c20 step %c1 {{
    %fits = arith.cmpi ult, %i, %c8 : index
    scf.if %fits {{
      memref.store %x, %a[%i] : {BUFFER}
    }}
    scf.for %j = %i to %c8 step %c1 {{
      memref.store %x, %a[%i] : {BUFFER}
    }}
  }}
  scf.for %i = %c20 to %c8 step %c1 {{
    memref.store %x, %a[%i] : {BUFFER}
  }}
  scf.parallel (%i, %j) = (%c0, %c0) to (%c20, %c0) step (%c1, %c1) {{
    memref.store %x, %a[%i] : {BUFFER}
  }}
""",
    "what a constant keeps from running": f"""
  %fits = arith.cmpi slt, %c8, %c8 : index
  scf.if %fits {{
    memref.store %x, %a[%c8] : {BUFFER}
  }} else {{
    memref.store %x, %a[%c20] : {BUFFER} // WARNING out-of-bounds
  }}
  scf.if %cond {{
    memref.store %x, %a[%c8] : {BUFFER} // WARNING out-of-bounds
  }}
  scf.index_switch %c2
  case 2 {{
    memref.store %x, %a[%c8] : {BUFFER} // WARNING out-of-bounds
    scf.yield
  }}
  case 8 {{
    memref.store %x, %a[%c8] : {BUFFER}
    scf.yield
  }}
  default {{
    memref.store %x, %a[%c8] : {BUFFER}
  }}
  scf.for %i = %c8 to %c8 step %c1 {{
    memref.store %x, %a[%c8] : {BUFFER}
  }}
  cf.cond_br %fits, ^small, ^large
^small:
  memref.store %x, %a[%c8] : {BUFFER}
  cf.br ^large
^large:
  memref.store %x, %a[%c8] : {BUFFER} // WARNING out-of-bounds
""",
    "threads": f"""
  gpu.launch blocks(%a0, %a1, %a2) in (%a3 = %c1, %a4 = %c1, %a5 = %c1)
             threads(%b0, %b1, %b2) in (%b3 = %c20, %b4 = %c8, %b5 = %n) {{
    memref.store %x, %a[%b0] : {BUFFER} // WARNING out-of-bounds
    memref.store %x, %a[%b1] : {BUFFER}
    memref.store %x, %a[%b2] : {BUFFER}
    %fits = arith.cmpi ult, %b0, %c8 : index
    scf.if %fits {{
      memref.store %x, %a[%b0] : {BUFFER}
    }}
    gpu.terminator
  }}
""",
}


@pytest.mark.parametrize("body", BOUNDS.values(), ids=list(BOUNDS))
def test_bounds(body: str) -> None:
    check(f"{HEAD}{body}  return\n}}\n")


HOST_POINTERS = {
    "an allocation": f"""
  %m = memref.alloc() : {BUFFER}
  LAUNCH(%m) // ERROR host-pointer
""",
    "a view of an alloca": f"""
  %m = memref.alloca() : memref<16xf32>
  %v = memref.reinterpret_cast %m to offset: [0], sizes: [8], strides: [1]
    : memref<16xf32> to {BUFFER}
  LAUNCH(%v) // ERROR host-pointer
""",
    "a global": f"""
  %m = memref.get_global @table : {BUFFER}
  LAUNCH(%m) // ERROR host-pointer
""",
    "device memory, and an argument": f"""
  %m = gpu.alloc () : {BUFFER}
  LAUNCH(%m)
  LAUNCH(%a)
""",
    "registered": f"""
  %m = memref.alloc() : {BUFFER}
  %u = memref.cast %m : {BUFFER} to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  LAUNCH(%m)
""",
    "maybe registered elsewhere": f"""
  %m = memref.alloc() : {BUFFER}
  %u = memref.cast %m : {BUFFER} to memref<*xf32>
  func.call @mgpuMemHostRegisterFloat(%u) : (memref<*xf32>) -> ()
  LAUNCH(%m)
""",
}


@pytest.mark.parametrize("body", HOST_POINTERS.values(), ids=list(HOST_POINTERS))
def test_host_pointers(body: str) -> None:
    """On the outlined module, when nobody is to place memory."""
    launch = (
        "gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) "
        rf"args(\1 : {BUFFER})"
    )
    body = re.sub(r"LAUNCH\((%\w+)\)", launch, body)
    text = f"""module attributes {{gpu.container_module}} {{
memref.global "private" @table : {BUFFER} = dense<1.0>
func.func private @mgpuMemHostRegisterFloat(memref<*xf32>)
gpu.module @device {{
  gpu.func @kernel(%p: {BUFFER}) kernel {{
    gpu.return
  }}
}}
func.func @f(%a: {BUFFER}) {{
  %c1 = arith.constant 1 : index
{body}
  return
}}
}}
"""
    source = parse_source("input.mlir", text.encode(), mlir.make_context())
    with source.module.context:
        assert reported(check_host_pointers(source)) == expected(text)
