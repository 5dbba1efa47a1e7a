"""memref.copy of any layout, on hosts and in kernels, and memref.realloc: NumPy's numbers."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.elf import Elf, archive_members
from numpy.typing import NDArray

from aotc import mlir
from aotc.cli import run
from aotc.input.source import parse_source
from aotc.mlir import ir
from aotc.rewrites.copies import expand_copies

Floats = NDArray[np.float32]

HEAD = "(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface}"
ROWS = "strided<[?, 1], offset: ?>"

# Each copies a part of %x to a part of %y.
BODIES = {
    # Rows and columns change places, every other row, from the third column on.
    "turned": """
  %s = memref.subview %x[0, 2] [%c4, %c3] [2, 1]
    : memref<?x?xf32> to memref<?x?xf32, strided<[?, 1], offset: 2>>
  %t = memref.transpose %s (i, j) -> (j, i)
    : memref<?x?xf32, strided<[?, 1], offset: 2>> to memref<?x?xf32, strided<[1, ?], offset: 2>>
  %d = memref.subview %y[0, 0] [3, 4] [1, 2]
    : memref<?x?xf32> to memref<3x4xf32, strided<[?, 2]>>
  memref.copy %t, %d
    : memref<?x?xf32, strided<[1, ?], offset: 2>> to memref<3x4xf32, strided<[?, 2]>>""",
    "whole": """
  memref.copy %x, %y : memref<?x?xf32> to memref<?x?xf32>""",
    "row": """
  %s = memref.subview %x[2, 0] [1, 6] [1, 1]
    : memref<?x?xf32> to memref<6xf32, strided<[1], offset: ?>>
  %d = memref.subview %y[5, 0] [1, 6] [1, 1]
    : memref<?x?xf32> to memref<6xf32, strided<[1], offset: ?>>
  memref.copy %s, %d
    : memref<6xf32, strided<[1], offset: ?>> to memref<6xf32, strided<[1], offset: ?>>""",
    "column": """
  %s = memref.subview %x[0, 3] [%c4, 1] [1, 1]
    : memref<?x?xf32> to memref<?xf32, strided<[?], offset: 3>>
  %d = memref.subview %y[1, 0] [1, %c4] [1, 1]
    : memref<?x?xf32> to memref<?xf32, strided<[1], offset: ?>>
  memref.copy %s, %d
    : memref<?xf32, strided<[?], offset: 3>> to memref<?xf32, strided<[1], offset: ?>>""",
    "element": f"""
  %s = memref.subview %x[3, 4] [1, 1] [1, 1]
    : memref<?x?xf32> to memref<f32, strided<[], offset: ?>>
  %t = memref.alloca() : memref<f32>
  memref.copy %s, %t : memref<f32, strided<[], offset: ?>> to memref<f32>
  %d = memref.subview %y[1, 2] [1, 1] [1, 1]
    : memref<?x?xf32> to memref<1x1xf32, {ROWS}>
  %e = memref.collapse_shape %d []
    : memref<1x1xf32, {ROWS}> into memref<f32, strided<[], offset: ?>>
  memref.copy %t, %e : memref<f32> to memref<f32, strided<[], offset: ?>>""",
    "nothing": f"""
  %s = memref.subview %x[1, 1] [%c0, %c3] [1, 1] : memref<?x?xf32> to memref<?x?xf32, {ROWS}>
  %d = memref.subview %y[1, 1] [%c0, %c3] [1, 1] : memref<?x?xf32> to memref<?x?xf32, {ROWS}>
  memref.copy %s, %d : memref<?x?xf32, {ROWS}> to memref<?x?xf32, {ROWS}>""",
}
# Of a host alone: its lowering of unranked memrefs has no form in kernels.
HOST_BODIES = {
    "unranked": f"""
  %s = memref.transpose %x (i, j) -> (j, i)
    : memref<?x?xf32> to memref<?x?xf32, strided<[1, ?]>>
  %u = memref.cast %y : memref<?x?xf32> to memref<*xf32>
  memref.copy %s, %u : memref<?x?xf32, strided<[1, ?]>> to memref<*xf32>
  %r = memref.subview %x[0, 0] [1, 8] [1, 1]
    : memref<?x?xf32> to memref<1x8xf32, strided<[?, 1]>>
  %v = memref.cast %r : memref<1x8xf32, strided<[?, 1]>> to memref<*xf32>
  %d = memref.subview %y[7, 0] [1, 8] [1, 1] : memref<?x?xf32> to memref<1x8xf32, {ROWS}>
  memref.copy %v, %d : memref<*xf32> to memref<1x8xf32, {ROWS}>""",
    # The second half of what grew is written by a kernel, and so is what was there before.
    "grown": """
  %a = memref.alloc(%c3) : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%c3) step (%c1) {
    %v = memref.load %x[%i, %i] : memref<?x?xf32>
    memref.store %v, %a[%i] : memref<?xf32>
  }
  %b = memref.realloc %a(%c6) : memref<?xf32> to memref<?xf32>
  scf.parallel (%i) = (%c3) to (%c6) step (%c1) {
    %v = memref.load %b[%c2] : memref<?xf32>
    memref.store %v, %b[%i] : memref<?xf32>
  }
  scf.for %i = %c0 to %c6 step %c1 {
    %v = memref.load %b[%i] : memref<?xf32>
    memref.store %v, %y[%i, %c0] : memref<?x?xf32>
  }
  memref.dealloc %b : memref<?xf32>""",
}


def _expected(name: str, x: Floats, y: Floats) -> Floats:
    y = y.copy()
    if name == "turned":
        y[0:3, 0:8:2] = x[0:8:2, 2:5].T
    elif name == "whole":
        y[:] = x
    elif name == "row":
        y[5, :6] = x[2, :6]
    elif name == "column":
        y[1, :4] = x[:4, 3]
    elif name == "element":
        y[1, 2] = x[3, 4]
    elif name == "unranked":
        y[:] = x.T
        y[7] = x[0]
    elif name == "grown":
        y[:6, 0] = [x[0, 0], x[1, 1], x[2, 2], x[2, 2], x[2, 2], x[2, 2]]
    else:
        assert name == "nothing"
    return y


CONSTANTS = "\n".join(f"  %c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 6))


def _host(name: str, body: str) -> str:
    return f"func.func @{name}{HEAD} {{\n{CONSTANTS}{body}\n  return\n}}\n"


def _kernel(name: str, body: str) -> str:
    return f"""func.func @{name}_in_kernel{HEAD} {{
{CONSTANTS}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
{body}
    gpu.terminator
  }}
  return
}}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the program of all entries, its PTX, manifest and outlined module."""
    folder = tmp_path_factory.mktemp("copies")
    hosts = [_host(name, body) for name, body in {**BODIES, **HOST_BODIES}.items()]
    kernels = [_kernel(name, body) for name, body in BODIES.items()]
    source = folder / "copies.mlir"
    source.write_text("".join([*hosts, *kernels]))
    kinds = "exe,ptx,manifest,mlir"
    options = ("--emit", kinds, "--chip", "sm_80", "-o", f"{folder}/out/")
    assert run(["build", str(source), *options]) == 0
    return folder / "out"


ENTRIES = [*BODIES, *HOST_BODIES, *(f"{name}_in_kernel" for name in BODIES)]


@pytest.mark.parametrize("entry", ENTRIES)
def test_copies_give_the_same_as_numpy(built: Path, tmp_path: Path, entry: str) -> None:
    """Every element that is copied, and none else."""
    generator = np.random.default_rng(5)
    x, y = (generator.uniform(-1, 1, (8, 8)).astype(np.float32) for _ in range(2))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    words = [f"--x={tmp_path}/x.npy", f"--y={tmp_path}/y.npy", f"--out=y={tmp_path}/out.npy"]
    done = subprocess.run(
        [built / "copies", entry, *words],
        env={"AOTC_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = _expected(entry.removesuffix("_in_kernel"), x, y)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_kernels_copy_without_a_library(built: Path) -> None:
    """PTX that calls functions nobody defines is only refused when it is loaded."""
    (ptx,) = built.glob("*.ptx")
    assert ".entry turned_in_kernel" in ptx.read_text()
    assert ".func" not in ptx.read_text()


@pytest.mark.parametrize("entry", ["turned", "column", "turned_in_kernel", "column_in_kernel"])
def test_a_copy_reads_its_source_and_writes_its_target(built: Path, entry: str) -> None:
    manifest = json.loads((built / "copies.json").read_text())
    (described,) = [e for e in manifest["entries"] if e["name"] == entry]
    usage = {a["name"]: (a["is_read"], a["is_written"]) for a in described["arguments"]}
    assert usage == {"x": (True, False), "y": (False, True)}
    assert described["touches_memory_on_host"] == (not entry.endswith("_in_kernel"))


@pytest.mark.parametrize(
    ("source", "target", "stays"),
    [
        ("memref<?x?xf32>", "memref<?x?xf32>", True),
        ("memref<f32>", "memref<f32, strided<[], offset: ?>>", True),
        ("memref<4xf32, strided<[1], offset: ?>>", "memref<4xf32>", True),
        ("memref<4x4xf32, strided<[4, 1], offset: 8>>", "memref<4x4xf32>", True),
        ("memref<4x4xf32, strided<[8, 1]>>", "memref<4x4xf32>", False),
        ("memref<4x4xf32>", "memref<4x4xf32, strided<[1, 4]>>", False),
        ("memref<?xf32, strided<[1], offset: ?>>", "memref<?xf32>", False),
        ("memref<4xf32, affine_map<(i) -> (i floordiv 2)>>", "memref<4xf32>", False),
        ("memref<4x0xf32, strided<[0, 1]>>", "memref<4x0xf32>", False),
        ("memref<*xf32>", "memref<?xf32>", False),
        ("memref<*xf32>", "memref<*xf32>", True),
    ],
)
def test_a_host_keeps_the_copies_that_are_memcpy(source: str, target: str, stays: bool) -> None:
    """And those that no loop can do: they are refused later, by name."""
    assert _copies_left(f"""
      func.func @f(%x: {source}, %y: {target}) {{
        memref.copy %x, %y : {source} to {target}
        return
      }}""") == int(stays)


def test_kernels_keep_no_copy() -> None:
    """The NVPTX back end would copy bytes."""
    assert (
        _copies_left("""
      gpu.module @k {
        gpu.func @f(%x: memref<?xf32>, %y: memref<?xf32>) kernel {
          memref.copy %x, %y : memref<?xf32> to memref<?xf32>
          gpu.return
        }
      }""")
        == 0
    )


def _copies_left(text: str) -> int:
    context = mlir.make_context()
    with context, ir.Location.unknown():
        source = parse_source("copy.mlir", text.encode(), context)
        expand_copies(source.module)
        assert source.module.operation.verify()
        return len(re.findall("memref.copy", str(source.module)))


UNRANKED_COPY = """  %u = memref.cast %x : memref<4xf32> to memref<*xf32>
  %v = memref.cast %y : memref<4xf32> to memref<*xf32>
  memref.copy %u, %v : memref<*xf32> to memref<*xf32>"""


def test_a_copy_of_two_unranked_memrefs_calls_the_utilities(tmp_path: Path) -> None:
    """Within a library nobody sees that."""
    source = tmp_path / "unranked.mlir"
    source.write_text(
        "func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) attributes {llvm.emit_c_interface} {\n"
        f"{UNRANKED_COPY}\n  return\n}}\n"
    )
    made = tmp_path / "out"
    assert run(["build", str(source), "--emit", "shared,static", "-o", f"{made}/"]) == 0
    library = ctypes.CDLL(str(made / "lib" / "libunranked.so"))
    assert not hasattr(library, "memrefCopy")
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert library.f(x.ctypes, y.ctypes) == 0
    np.testing.assert_array_equal(y, x)
    (member,) = archive_members((made / "lib" / "libunranked.a").read_bytes()).values()
    assert {s.name: s.is_global for s in Elf(member).symbols if s.name == "memrefCopy"} == {
        "memrefCopy": False
    }


def test_a_kernel_copies_by_known_ranks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "unranked.mlir"
    source.write_text(
        f"""func.func @f(%x: memref<4xf32>, %y: memref<4xf32>)
    attributes {{llvm.emit_c_interface}} {{
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
{UNRANKED_COPY}
    gpu.terminator
  }}
  return
}}
"""
    )
    assert run(["build", str(source), "-o", str(tmp_path / "program")]) == 2
    assert f"{source}:8:3: error: memref.copy is not supported in kernels" in capfd.readouterr().err
