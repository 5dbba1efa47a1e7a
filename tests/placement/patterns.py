"""Named patterns of host code and kernels over shared buffers, and the least that each needs.

A kernel is one of `KERNELS`, over 32 numbers. `Counts` are of one call: allocations, copies,
launches and waits. Of the waits, two stand before the host code of an entry that touches memory
(for what the caller enqueued, on the legacy and on the thread's stream); they are in `BEFORE`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

N = 32
BEFORE = 2

KERNELS = """
  gpu.module @k {
    gpu.func @fill(%a: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %n = arith.index_cast %i : index to i32
      %v = arith.sitofp %n : i32 to f32
      memref.store %v, %a[%i] : memref<32xf32>
      gpu.return
    }
    gpu.func @inc(%a: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %v = memref.load %a[%i] : memref<32xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %a[%i] : memref<32xf32>
      gpu.return
    }
    gpu.func @inc_part(%a: memref<16xf32, strided<[1], offset: 8>>) kernel {
      %i = gpu.thread_id x
      %c16 = arith.constant 16 : index
      %in = arith.cmpi ult, %i, %c16 : index
      scf.if %in {
        %one = arith.constant 1.0 : f32
        %v = memref.load %a[%i] : memref<16xf32, strided<[1], offset: 8>>
        %w = arith.addf %v, %one : f32
        memref.store %w, %a[%i] : memref<16xf32, strided<[1], offset: 8>>
      }
      gpu.return
    }
    gpu.func @add(%a: memref<32xf32>, %b: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<32xf32>
      %w = memref.load %b[%i] : memref<32xf32>
      %x = arith.addf %v, %w : f32
      memref.store %x, %b[%i] : memref<32xf32>
      gpu.return
    }
    gpu.func @next(%a: memref<32xf32>, %b: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %v = memref.load %a[%i] : memref<32xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %b[%i] : memref<32xf32>
      gpu.return
    }
    gpu.func @last(%a: memref<32xf32>, %s: memref<f32>) kernel {
      %i = gpu.thread_id x
      %c31 = arith.constant 31 : index
      %is_last = arith.cmpi eq, %i, %c31 : index
      scf.if %is_last {
        %v = memref.load %a[%i] : memref<32xf32>
        memref.store %v, %s[] : memref<f32>
      }
      gpu.return
    }
  }
"""


def launch(kernel: str, *arguments: tuple[str, str] | str) -> str:
    """A launch over 32 threads; an argument without a type is a memref<32xf32>."""
    typed = [a if isinstance(a, tuple) else (a, "memref<32xf32>") for a in arguments]
    passed = ", ".join(f"{value} : {type_}" for value, type_ in typed)
    return (
        f"gpu.launch_func @k::@{kernel} blocks in (%c1, %c1, %c1) "
        f"threads in (%c32, %c1, %c1) args({passed})"
    )


def initialize(buffer: str) -> str:
    """The host writes 0, 1, 2, ... to a buffer."""
    return f"""scf.for %h = %c0 to %c32 step %c1 {{
      %hn = arith.index_cast %h : index to i32
      %hv = arith.sitofp %hn : i32 to f32
      memref.store %hv, {buffer}[%h] : memref<32xf32>
    }}"""


ALLOC = "%t = memref.alloc() : memref<32xf32>"
DEALLOC = "memref.dealloc %t : memref<32xf32>"
READ = "%r = memref.load %t[%c5] : memref<32xf32>"


def function(name: str, arguments: str, result: str, body: str, *, is_entry: bool = True) -> str:
    kind = "" if is_entry else "private "
    attributes = " attributes {llvm.emit_c_interface}" if is_entry else ""
    arrow = f" -> {result}" if result else ""
    return f"""
  func.func {kind}@{name}({arguments}){arrow}{attributes} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %hundred = arith.constant 100.0 : f32
    {body}
  }}
"""


@dataclass(frozen=True)
class Counts:
    allocations: int
    copies: int
    launches: int
    waits: int


@dataclass(frozen=True)
class Pattern:
    """An entry; what it takes (`out`, a buffer; a number), what it gives, and its counts."""

    name: str
    text: str
    arguments: tuple[str, ...]
    counts: Counts
    number: int | None
    result: float | None
    out: float | None  # what is added to element 5 of the buffer `out`


def _pattern(
    name: str,
    arguments: str,
    body: str,
    counts: Counts,
    *,
    number: int | None = None,
    result: float | None = None,
    out: float | None = None,
    beside: str = "",
) -> Pattern:
    """The pattern of an entry with this body, and of what stands beside it in the module."""
    text = function(name, arguments, "" if result is None else "f32", body)
    names = tuple(re.findall(r"%(\w+):", arguments))
    return Pattern(name, text + beside, names, counts, number, result, out)


_ALL = (
    # One allocation, as the temporary needs to be somewhere. Nothing is copied: the host never
    # looks. The call waits once, at its end.
    _pattern(
        "temporary_between_kernels",
        "%out: memref<32xf32>",
        f"{ALLOC}\n{launch('fill', '%t')}\n{launch('add', '%t', '%out')}\n{DEALLOC}\nreturn",
        Counts(1, 0, 2, 1),
        out=5.0,
    ),
    # Those of both branches are parts of the one allocation, at the same place.
    _pattern(
        "temporaries_of_branches",
        "%out: memref<32xf32>, %n: index",
        f"""{ALLOC}
    {launch("fill", "%t")}
    %is_more = arith.cmpi ult, %c6, %n : index
    scf.if %is_more {{
      %u = memref.alloc() : memref<32xf32>
      {launch("fill", "%u")}
      {launch("inc", "%u")}
      {launch("add", "%u", "%out")}
      memref.dealloc %u : memref<32xf32>
    }} else {{
      %u = memref.alloc() : memref<32xf32>
      {launch("fill", "%u")}
      {launch("add", "%u", "%out")}
      memref.dealloc %u : memref<32xf32>
    }}
    {launch("add", "%t", "%out")}
    {DEALLOC}
    return""",
        Counts(1, 0, 5, 1),
        number=7,
        out=11.0,
    ),
    # One copy of what the host wrote, none in the loop. One wait at the end: the host's memory is
    # freed there, which the copy read.
    _pattern(
        "host_init_then_kernels_in_a_loop",
        "%out: memref<32xf32>, %n: index",
        f"""{ALLOC}
    {initialize("%t")}
    scf.for %i = %c0 to %n step %c1 {{
      {launch("inc", "%t")}
    }}
    {launch("add", "%t", "%out")}
    {DEALLOC}
    return""",
        Counts(1, 1, 8, BEFORE + 1),
        number=7,
        out=12.0,
    ),
    # The kernels fill it, so only the result comes back: one copy, one wait for it.
    _pattern(
        "host_reads_once_after_a_loop",
        "%n: index",
        f"""{ALLOC}
    {launch("fill", "%t")}
    scf.for %i = %c0 to %n step %c1 {{
      {launch("inc", "%t")}
    }}
    {READ}
    {DEALLOC}
    return %r : f32""",
        Counts(1, 1, 8, BEFORE + 1),
        number=7,
        result=12.0,
    ),
    # A kernel writes between two reads: a copy and a wait for each of the 7, none over.
    _pattern(
        "host_reads_each_turn",
        "%n: index",
        f"""{ALLOC}
    {launch("fill", "%t")}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {{
      {launch("inc", "%t")}
      {READ}
      %u = arith.addf %s, %r : f32
      scf.yield %u : f32
    }}
    {DEALLOC}
    return %sum : f32""",
        Counts(1, 7, 8, BEFORE + 7),
        number=7,
        result=63.0,
    ),
    # One over (the other buffer has no content yet) and one back (the one that is read),
    # whichever it is after so many turns.
    _pattern(
        "two_buffers_swapped",
        "%n: index",
        f"""{ALLOC}
    %u = memref.alloc() : memref<32xf32>
    {initialize("%t")}
    %p:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t, %b = %u)
        -> (memref<32xf32>, memref<32xf32>) {{
      {launch("next", "%a", "%b")}
      scf.yield %b, %a : memref<32xf32>, memref<32xf32>
    }}
    %r = memref.load %p#0[%c5] : memref<32xf32>
    {DEALLOC}
    memref.dealloc %u : memref<32xf32>
    return %r : f32""",
        Counts(1, 2, 7, BEFORE + 1),
        number=7,
        result=12.0,
    ),
    # As if the call's body stood here.
    _pattern(
        "through_a_call",
        "",
        f"""{ALLOC}
    {initialize("%t")}
    {launch("inc", "%t")}
    func.call @step(%t) : (memref<32xf32>) -> ()
    {READ}
    {DEALLOC}
    return %r : f32""",
        Counts(1, 2, 2, BEFORE + 1),
        result=7.0,
        beside=function(
            "step", "%t: memref<32xf32>", "", f"{launch('inc', '%t')}\nreturn", is_entry=False
        ),
    ),
    # The buffer as a whole goes over and comes back, once each.
    _pattern(
        "a_view",
        "",
        f"""{ALLOC}
    {initialize("%t")}
    %v = memref.subview %t[8][16][1]
        : memref<32xf32> to memref<16xf32, strided<[1], offset: 8>>
    {launch("inc_part", ("%v", "memref<16xf32, strided<[1], offset: 8>>"))}
    %r0 = memref.load %v[%c5] : memref<16xf32, strided<[1], offset: 8>>
    %r1 = memref.load %t[%c5] : memref<32xf32>
    %r = arith.addf %r0, %r1 : f32
    {DEALLOC}
    return %r : f32""",
        Counts(1, 2, 1, BEFORE + 1),
        result=19.0,
    ),
    # The side that launches copies both ways; the other copies nothing and waits for nothing.
    *(
        _pattern(
            name,
            "%n: index",
            f"""{ALLOC}
    {initialize("%t")}
    %go = arith.cmpi ugt, %n, %c0 : index
    scf.if %go {{
      {launch("inc", "%t")}
    }} else {{
      memref.store %hundred, %t[%c5] : memref<32xf32>
    }}
    {READ}
    {DEALLOC}
    return %r : f32""",
            counts,
            number=number,
            result=result,
        )
        for name, number, result, counts in (
            ("branch_that_launches", 1, 6.0, Counts(1, 2, 1, BEFORE + 1)),
            ("branch_that_does_not_launch", 0, 100.0, Counts(1, 0, 0, BEFORE)),
        )
    ),
    # On the device since the first call.
    _pattern(
        "constants_over_many_calls",
        "%out: memref<32xf32>",
        f"""%w = memref.get_global @w : memref<32xf32>
    {launch("add", "%w", "%out")}
    return""",
        Counts(0, 0, 1, 1),
        out=3.0,
        beside='  memref.global "private" constant @w : memref<32xf32> = dense<3.0>\n',
    ),
    # Two buffers: both are filled on the device, and the number comes back.
    _pattern(
        "a_number_in_an_alloca",
        "",
        f"""{ALLOC}
    %s = memref.alloca() : memref<f32>
    {launch("fill", "%t")}
    {launch("last", "%t", ("%s", "memref<f32>"))}
    %r = memref.load %s[] : memref<f32>
    {DEALLOC}
    return %r : f32""",
        Counts(1, 1, 2, BEFORE + 1),
        result=31.0,
    ),
    # The host's part lands between the kernels' rest: back, over, and back; a wait for each back.
    _pattern(
        "host_writes_a_part_between_launches",
        "",
        f"""{ALLOC}
    {launch("fill", "%t")}
    memref.store %hundred, %t[%c5] : memref<32xf32>
    {launch("inc", "%t")}
    {READ}
    %q = memref.load %t[%c6] : memref<32xf32>
    %x = arith.addf %r, %q : f32
    {DEALLOC}
    return %x : f32""",
        Counts(1, 3, 2, BEFORE + 2),
        result=108.0,
    ),
)
PATTERNS = {pattern.name: pattern for pattern in _ALL}


def module_text() -> str:
    """All patterns in one module."""
    functions = "".join(pattern.text for pattern in PATTERNS.values())
    return f"module attributes {{gpu.container_module}} {{\n{KERNELS}{functions}\n}}\n"
