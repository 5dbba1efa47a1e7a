"""What an entry does to its arguments and returns, as the manifest says it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import Outcome

LOAD = "%v = memref.load %a[%c0] : memref<8xf32>"
STORE = "memref.store %one, %a[%c0] : memref<8xf32>"


def _module(body: str, arguments: str = "%a: memref<8xf32>", *, before: str = "") -> str:
    result, _, body = body.rpartition("|")
    return f"""
{before}
func.func @f({arguments}) {result} attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  {body}
}}
"""


def _kernel(body: str) -> str:
    return f"""scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
    {body}
  }}
  return"""


@pytest.fixture
def described(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path], tmp_path: Path
) -> Callable[[str], dict[str, Any]]:
    """The description of entry `f` of MLIR text."""

    def describe(text: str) -> dict[str, Any]:
        options = ("--emit", "manifest", "--chip", "sm_80", "-o", "-")
        done = aotc("build", mlir_file(text), *options).succeeded()
        entries = json.loads(done.stdout)["entries"]
        return next(entry for entry in entries if entry["name"] == "f")

    return describe


# name: (module, is it read, is it written, where it must be)
ACCESSES: dict[str, tuple[str, bool, bool, str]] = {
    "nothing": (_module("return"), False, False, "device"),
    "shape": (
        _module("(index) | %n = memref.dim %a, %c0 : memref<?xf32>\n return %n : index")
        .replace("(index)", "-> (index)")
        .replace("memref<8xf32>", "memref<?xf32>"),
        *(False, False, "device"),
    ),
    "host_reads": (_module(f"-> (f32) | {LOAD}\n return %v : f32"), True, False, "managed"),
    "host_writes": (_module(f"{STORE}\n return"), False, True, "managed"),
    "kernel_reads": (
        _module(
            _kernel(
                "%v = memref.load %a[%i] : memref<8xf32>\n memref.store %v, %b[%i] : memref<8xf32>"
            ),
            "%a: memref<8xf32>, %b: memref<8xf32>",
        ),
        *(True, False, "device"),
    ),
    # From task to task as a value, and to a kernel in the end.
    "kernel_of_a_task_writes": (
        _module(
            """%made, %there = async.execute -> !async.value<memref<8xf32>> {
    async.yield %a : memref<8xf32>
  }
  %done = async.execute [%made] (%there as %x: !async.value<memref<8xf32>>) {
    scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
      memref.store %one, %x[%i] : memref<8xf32>
    }
    async.yield
  }
  async.await %done : !async.token
  return"""
        ),
        *(False, True, "device"),
    ),
    "host_reads_behind_a_task": (
        _module(
            """-> (f32) | %done, %there = async.execute -> !async.value<memref<8xf32>> {
    async.yield %a : memref<8xf32>
  }
  %x = async.await %there : !async.value<memref<8xf32>>
  %v = memref.load %x[%c0] : memref<8xf32>
  return %v : f32"""
        ),
        *(True, False, "managed"),
    ),
    "kernel_writes": (
        _module(_kernel("memref.store %one, %a[%i] : memref<8xf32>")),
        *(False, True, "device"),
    ),
    "kernel_and_host": (
        _module(f"{LOAD}\n{_kernel('memref.store %v, %a[%i] : memref<8xf32>')}"),
        *(True, True, "managed"),
    ),
    "copied_from_on_the_host": (
        _module(
            "memref.copy %a, %b : memref<8xf32> to memref<8xf32>\n return",
            "%a: memref<8xf32>, %b: memref<8xf32>",
        ),
        *(True, False, "managed"),
    ),
    "copied_to_on_the_host": (
        _module(
            "memref.copy %b, %a : memref<8xf32> to memref<8xf32>\n return",
            "%a: memref<8xf32>, %b: memref<8xf32>",
        ),
        *(False, True, "managed"),
    ),
    "copied_to_by_the_gpu": (
        _module(
            "gpu.memcpy %a, %b : memref<8xf32>, memref<8xf32>\n return",
            "%a: memref<8xf32>, %b: memref<8xf32>",
        ),
        *(False, True, "device"),
    ),
    "through_a_view": (
        _module(
            """%s = memref.subview %a[2][4][1]
    : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  memref.store %one, %s[%c0] : memref<4xf32, strided<[1], offset: 2>>
  return"""
        ),
        *(False, True, "managed"),
    ),
    "through_a_loop": (
        _module(
            """%r = scf.for %i = %c0 to %c8 step %c1 iter_args(%p = %a) -> (memref<8xf32>) {
    memref.store %one, %p[%i] : memref<8xf32>
    scf.yield %p : memref<8xf32>
  }
  return"""
        ),
        *(False, True, "managed"),
    ),
    "through_a_selection": (
        _module(
            "%s = arith.select %go, %a, %b : memref<8xf32>\n"
            "memref.store %one, %s[%c0] : memref<8xf32>\n return",
            "%a: memref<8xf32>, %b: memref<8xf32>, %go: i1",
        ),
        *(False, True, "managed"),
    ),
    "by_a_called_function": (
        _module(
            "func.call @callee(%a) : (memref<8xf32>) -> ()\n return",
            before=_module(f"{STORE}\n return")
            .replace("@f", "private @callee")
            .replace(" attributes {llvm.emit_c_interface}", ""),
        ),
        *(False, True, "managed"),
    ),
    "by_an_unknown_function": (
        _module(
            "func.call @callee(%a) : (memref<8xf32>) -> ()\n return",
            before="func.func private @callee(memref<8xf32>)",
        ),
        *(True, True, "managed"),
    ),
    "atomically": (
        _module(_kernel("%o = memref.atomic_rmw addf %one, %a[%c0] : (f32, memref<8xf32>) -> f32")),
        *(True, True, "device"),
    ),
    "as_vectors": (
        _module(
            _kernel(
                "%z = vector.broadcast %one : f32 to vector<4xf32>\n"
                "vector.store %z, %a[%c0] : memref<8xf32>, vector<4xf32>"
            )
        ),
        *(False, True, "device"),
    ),
    "registered": (
        _module(
            "%u = memref.cast %a : memref<8xf32> to memref<*xf32>\n"
            "gpu.host_register %u : memref<*xf32>\n"
            + _kernel("memref.store %one, %a[%i] : memref<8xf32>").replace(
                "return", "gpu.host_unregister %u : memref<*xf32>\n return"
            )
        ),
        *(False, True, "host"),
    ),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_what_happens_to_an_argument(name: str, described: Callable[[str], dict[str, Any]]) -> None:
    text, is_read, is_written, memory = ACCESSES[name]
    argument = described(text)["arguments"][0]
    assert argument["name"] == "a"
    assert (argument["is_read"], argument["is_written"], argument["memory"]) == (
        is_read,
        is_written,
        memory,
    )


def test_scalars_are_read(described: Callable[[str], dict[str, Any]]) -> None:
    (scalar,) = described(_module("return", "%n: i32"))["arguments"]
    assert (scalar["is_read"], scalar["is_written"], scalar["memory"]) == (True, False, "host")


# name: (module, what each result is: aliases, is_owned, memory)
RESULTS: dict[str, tuple[str, list[tuple[int | None, bool, str]]]] = {
    "an_argument": (
        _module("-> (memref<8xf32>) | return %b : memref<8xf32>", "%a: f32, %b: memref<8xf32>"),
        [(1, False, "host")],
    ),
    "arguments_in_another_order": (
        _module(
            "-> (memref<8xf32>, memref<8xf32>) | return %b, %a : memref<8xf32>, memref<8xf32>",
            "%a: memref<8xf32>, %b: memref<8xf32>",
        ),
        [(1, False, "host"), (0, False, "host")],
    ),
    "new_host_memory": (
        _module(
            "-> (memref<8xf32>) | %t = memref.alloc() : memref<8xf32>\n"
            "memref.store %one, %t[%c0] : memref<8xf32>\n return %t : memref<8xf32>"
        ),
        [(None, True, "host")],
    ),
    "new_memory_that_a_kernel_wrote": (
        _module(
            "-> (memref<8xf32>) | %t = memref.alloc() : memref<8xf32>\n"
            + _kernel("memref.store %one, %t[%i] : memref<8xf32>").replace(
                "return", "return %t : memref<8xf32>"
            )
        ),
        [(None, True, "caller")],
    ),
    "new_memory_of_a_called_function": (
        _module(
            "-> (memref<8xf32>) | %t = func.call @make() : () -> memref<8xf32>\n"
            "return %t : memref<8xf32>",
            before="func.func private @make() -> memref<8xf32> {\n"
            "  %t = memref.alloc() : memref<8xf32>\n  return %t : memref<8xf32>\n}",
        ),
        [(None, True, "host")],
    ),
    "new_memory_of_a_loop_that_begins_with_other_memory": (
        _module(
            "-> (memref<8xf32>) | %t = memref.alloc() : memref<8xf32>\n"
            "memref.store %one, %t[%c0] : memref<8xf32>\n"
            "%r = scf.while (%p = %t) : (memref<8xf32>) -> memref<8xf32> {\n"
            "  %v = memref.load %p[%c0] : memref<8xf32>\n"
            "  %n = memref.alloc() : memref<8xf32>\n"
            "  memref.store %v, %n[%c0] : memref<8xf32>\n"
            "  %more = arith.cmpf olt, %v, %one : f32\n"
            "  scf.condition(%more) %n : memref<8xf32>\n"
            "} do {\n"
            "^bb0(%q: memref<8xf32>):\n"
            "  scf.yield %q : memref<8xf32>\n"
            "}\n"
            "memref.dealloc %t : memref<8xf32>\n"
            "return %r : memref<8xf32>"
        ),
        [(None, True, "host")],
    ),
    "a_global": (
        _module(
            "-> (memref<8xf32>) | %g = memref.get_global @g : memref<8xf32>\n"
            "return %g : memref<8xf32>",
            before='memref.global "private" @g : memref<8xf32> = dense<0.0>',
        ),
        [(None, False, "host")],
    ),
    "one_of_two_that_an_earlier_result_may_be": (
        _module(
            "-> (memref<8xf32>, memref<8xf32>) | %s = memref.alloc() : memref<8xf32>\n"
            "%t = memref.alloc() : memref<8xf32>\n"
            "%u = arith.select %go, %t, %s : memref<8xf32>\n"
            "return %t, %u : memref<8xf32>, memref<8xf32>",
            "%go: i1",
        ),
        [(None, True, "host"), (None, False, "host")],
    ),
    "a_scalar_and_an_argument": (
        _module("-> (f32, memref<8xf32>) | return %one, %a : f32, memref<8xf32>"),
        [(None, False, "host"), (0, False, "host")],
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_result_is(name: str, described: Callable[[str], dict[str, Any]]) -> None:
    """Who frees it, and how: an argument, the caller's to free, or neither."""
    text, expected = RESULTS[name]
    results = described(text)["results"]
    assert [(r["aliases"], r["is_owned"], r["memory"]) for r in results] == expected
    assert [r["name"] for r in results] == [f"result{i}" for i in range(len(results))]


@pytest.mark.parametrize(
    ("body", "touches"),
    [
        (_kernel("memref.store %one, %a[%i] : memref<8xf32>"), False),
        (f"{STORE}\n return", True),
        ("func.call @callee() : () -> ()\n return", True),
        ("gpu.memcpy %a, %a : memref<8xf32>, memref<8xf32>\n return", False),
    ],
)
def test_whether_the_host_touches_memory(
    body: str, touches: bool, described: Callable[[str], dict[str, Any]]
) -> None:
    """Then a caller's stream has to be waited for inside the entry."""
    text = _module(body, before="func.func private @callee()")
    assert described(text)["touches_memory_on_host"] is touches


# What the entry does with a buffer `%t` of its own → what keeps it from being asynchronous.
OWN_BUFFERS: dict[str, tuple[str, str | None]] = {
    "kernels_alone": ("memref.copy %t, %a : memref<8xf32> to memref<8xf32>", None),
    "host_too": (
        "%v = memref.load %t[%c1] : memref<8xf32>\n"
        "scf.if %go {\n memref.store %v, %t[%c0] : memref<8xf32>\n}",
        "its host code reads or writes memory, and so must wait for its kernels",
    ),
    "kept_elsewhere": (
        "func.call @keep(%t) : (memref<8xf32>) -> ()",
        "its host code reads or writes memory, and so must wait for its kernels",
    ),
}


@pytest.mark.parametrize("name", OWN_BUFFERS)
def test_entries_that_allocate(name: str, described: Callable[[str], dict[str, Any]]) -> None:
    """Memory of the device comes and goes in the caller's stream; other memory does not."""
    use, reason = OWN_BUFFERS[name]
    loop, end = _kernel("memref.store %one, %t[%i] : memref<8xf32>").rsplit("\n", 1)
    body = f"""%t = memref.alloc() : memref<8xf32>
  {loop}
  {use}
  memref.dealloc %t : memref<8xf32>
  {end}"""
    entry = described(
        _module(
            body,
            "%a: memref<8xf32>, %go: i1",
            before="func.func private @keep(memref<8xf32>)",
        )
    )
    assert entry["why_not_async"] == reason
    assert ("async" in entry["functions"]) is (reason is None)
