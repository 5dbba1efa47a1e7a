"""What each loop becomes, and why: kinds of kernels, blocks that somebody asks for, remarks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, Outcome

Aotc = Callable[..., Outcome]
Write = Callable[..., Path]

LOOP = """\
func.func @f(%x: memref<64x96xf32>, %y: memref<64x96xf32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 96 {
      %v = affine.load %x[%i, %j] : memref<64x96xf32>
      affine.store %v, %y[%i, %j] : memref<64x96xf32>
    }
  }
  return
}
"""
PARALLEL = """\
func.func @f(%x: memref<1000xf32>) attributes {llvm.emit_c_interface} {
  %one = arith.constant 1.0 : f32
  affine.parallel (%i) = (0) to (1000) {
    affine.store %one, %x[%i] : memref<1000xf32>
  } {aotc.block = ATTRIBUTE}
  return
}
"""
NAMED = """\
func.func @f(%x: memref<64x96xf32>, %y: memref<64x96xf32>) attributes {llvm.emit_c_interface} {
  linalg.exp {aotc.block = ATTRIBUTE} ins(%x : memref<64x96xf32>) outs(%y : memref<64x96xf32>)
  return
}
"""


def _threads(text: str) -> list[str]:
    """Threads of each launch's blocks, in outlined MLIR."""
    constants = dict(re.findall(r"(%c\w+) = arith.constant (\d+) : index", text))
    launches = re.findall(r"threads in \(([^)]*)\)", text)
    return ["x".join(constants[word] for word in group.split(", ")) for group in launches]


def _outlined(aotc: Aotc, path: Path, *options: str) -> str:
    return aotc("build", path, "--emit", "mlir", *options, "-o", "-").succeeded().stdout


@pytest.mark.parametrize("block", ["64", "32x8", "16x4x2", "1x1x1", "7x5"])
def test_block_option(block: str, aotc: Aotc, mlir_file: Write) -> None:
    words = [*block.split("x"), "1", "1"][:3]
    text = _outlined(aotc, mlir_file(LOOP), "--block", block)
    assert _threads(text) == ["x".join(words)]


@pytest.mark.parametrize("text", [PARALLEL, NAMED], ids=["affine.parallel", "linalg"])
def test_attribute_wins_over_option(text: str, aotc: Aotc, mlir_file: Write) -> None:
    """It is the operation's, though few passes keep attributes; and leaves no trace."""
    path = mlir_file(text.replace("ATTRIBUTE", "array<i32: 16, 4>"))
    made = _outlined(aotc, path, "--block", "128")
    assert _threads(made) == ["16x4x1"]
    assert "aotc.block" not in made


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("array<i32: 2048>", "along x a block has 1 to 1024 threads."),
        ("array<i32: 1, 1, 65>", "along z a block has 1 to 64 threads."),
        ("array<i32: 0>", "along x a block has 1 to 1024 threads."),
        ("array<i32: 64, 32>", "2048 threads: GPUs take 1024."),
        ("array<i32>", "write array<i32: 256>, array<i32: 32, 8> or array<i32: 8, 8, 4>."),
        ("32 : i32", "write array<i32: 256>, array<i32: 32, 8> or array<i32: 8, 8, 4>."),
    ],
)
def test_no_such_block(attribute: str, message: str, aotc: Aotc, mlir_file: Write) -> None:
    path = mlir_file(PARALLEL.replace("ATTRIBUTE", attribute))
    done = aotc("build", path, "--emit", "mlir", "-o", "-")
    assert done.code == 2
    assert f"{path}:3:3: aotc.block is" in done.stderr
    assert message in done.stderr


def test_decisions_are_told(aotc: Aotc, tmp_path: Path) -> None:
    """A line for each of the bandwidth benchmark's loops: which kind of kernel, and why."""
    programs = REPOSITORY / "bench/bandwidth/programs.mlir"
    done = aotc("build", programs, "--emit", "mlir", "--explain", "-o", tmp_path / "out")
    lines = [
        line.split(": ", 1)[1]
        for line in done.succeeded().stdout.splitlines()
        if line.startswith("//   ") and "blocks of" in line
    ]
    kinds = {
        "4 points for each thread": 6,
        "a block for each row": 5,
        "a reduction in two kernels": 3,
        "tiles of 32x32": 3,
    }
    assert {kind: sum(kind in line for line in lines) for kind in kinds} == kinds
    assert len(lines) == sum(kinds.values())


def test_parallel_loop_that_stores_one_number(aotc: Aotc, mlir_file: Write) -> None:
    """A store without indices has no dimension that tiles could be contiguous along."""
    loop = """func.func @f(%x: memref<i32>) attributes {llvm.emit_c_interface} {
  scf.forall (%i) in (4) {
    %c7 = arith.constant 7 : i32
    memref.store %c7, %x[] : memref<i32>
  }
  return
}"""
    assert len(_threads(_outlined(aotc, mlir_file(loop)))) == 1


def test_each_program_of_the_benchmark_is_one_kernel(aotc: Aotc) -> None:
    """Totals are two; six loops of a softmax, and what they hand over in memory, are one. Where the
    host alone knows how long rows are it has three to take one from."""
    programs = REPOSITORY / "bench/bandwidth/programs.mlir"
    made = _outlined(aotc, programs, "--no-cpu-kernels")
    entries = re.findall(r"  func\.func @(\w+)(\(.*?)\n  }", made, flags=re.DOTALL)
    counts = {name: body.count("gpu.launch_func") for name, body in entries}
    more = {"softmax_parallel": 4, "softmax_memrefs": 4}
    assert counts == {name: more.get(name, 2 if name.startswith("sum") else 1) for name in counts}
    assert len(counts) == 17
    assert not any("alloc" in body for name, body in entries if not name.startswith("sum"))


ORDERED = """\
func.func @f(%x: memref<5000xf32>) -> f32 attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %r = affine.for %i = 0 to 5000 iter_args(%s = %zero) -> (f32) {
    %v = affine.load %x[%i] : memref<5000xf32>
    %next = OPERATION : f32
    affine.yield %next : f32
  }
  return %r : f32
}
"""


@pytest.mark.parametrize(
    "operation", ["arith.subf %s, %v", "arith.divf %v, %s", "arith.addf %s, %s"]
)
def test_what_has_an_order_stays_in_sequence(operation: str, aotc: Aotc, mlir_file: Write) -> None:
    made = _outlined(aotc, mlir_file(ORDERED.replace("OPERATION", operation)))
    assert "gpu.launch_func" not in made


@pytest.mark.parametrize(("memory", "count"), [("auto", 1), ("explicit", 2), ("managed", 2)])
def test_a_total_brings_its_own_device_memory(
    memory: str, count: int, aotc: Aotc, mlir_file: Write
) -> None:
    """What the two kernels hand over, and the result on its way to the host: parts of one
    allocation, where aotc places memory."""
    text = ORDERED.replace("OPERATION", "arith.addf %s, %v").replace("5000", "50000")
    made = _outlined(aotc, mlir_file(text), "--memory", memory)
    assert made.count("gpu.launch_func") == 2
    assert made.count("gpu.alloc ") == made.count("gpu.dealloc ") == count
    assert "host_shared" not in made
    assert made.count("gpu.memcpy ") == 1


def test_a_function_that_says_what_is_parallel_keeps_its_other_loops(
    aotc: Aotc, mlir_file: Write
) -> None:
    text = ORDERED.replace("OPERATION", "arith.addf %s, %v").replace(
        "  %r = affine.for",
        "  affine.parallel (%k) = (0) to (5000) {\n"
        "    affine.store %zero, %x[%k] : memref<5000xf32>\n  }\n  %r = affine.for",
    )
    made = _outlined(aotc, mlir_file(text))
    assert made.count("gpu.launch_func") == 1
    assert "iter_args" in made


PRODUCT = """\
func.func @f(%a: memref<512x512xf32>, %b: memref<512x512xf32>, %c: memref<512x512xf32>)
    attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 512 {
      affine.for %k = 0 to 512 {
        %x = affine.load %a[%i, %k] : memref<512x512xf32>
        %y = affine.load %b[%k, %j] : memref<512x512xf32>
        %z = affine.load %c[%i, %j] : memref<512x512xf32>
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %z, %p : f32
        affine.store %s, %c[%i, %j] : memref<512x512xf32>
      }
    }
  }
  return
}
"""


def test_a_product_has_a_thread_for_each_element_and_its_sum_in_a_register(
    aotc: Aotc, mlir_file: Write
) -> None:
    """Where a block is asked for. Its reductions do not go along rows alone. The sum is loaded and
    stored once."""
    made = _outlined(aotc, mlir_file(PRODUCT), "--block", "32x8")
    assert _threads(made) == ["32x8x1"]
    assert made.count("memref.store") == 1
    assert re.search(r"iter_args.*\n(.*\n)*?      }\n      memref.store", made)


def test_a_buffer_that_may_be_another_view_stays_in_memory(aotc: Aotc, mlir_file: Write) -> None:
    """What the loop loads may be the accumulator itself: the sum has to be seen in memory."""
    made = _outlined(
        aotc,
        mlir_file("""\
func.func @f(%x: memref<64x100xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %view = memref.cast %x : memref<64x100xf32> to memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    scf.for %j = %c0 to %c100 step %c1 {
      %v = memref.load %view[%i, %j] : memref<?x?xf32>
      %s = memref.load %x[%i, %c0] : memref<64x100xf32>
      %n = arith.addf %s, %v : f32
      memref.store %n, %x[%i, %c0] : memref<64x100xf32>
    }
  }
  return
}
"""),
    )
    assert "iter_args" not in made
    assert "all_reduce" not in made


def test_a_transpose_does_not_join_the_rows_before_it(aotc: Aotc, mlir_file: Write) -> None:
    """It might, row by row, but would write across: it is tiles of its own."""
    made = _outlined(
        aotc,
        mlir_file("""\
func.func @f(%x: memref<96x96xf32>, %r: memref<96xf32>, %y: memref<96x96xf32>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 96 {
    %sum = affine.for %j = 0 to 96 iter_args(%s = %zero) -> (f32) {
      %v = affine.load %x[%i, %j] : memref<96x96xf32>
      %next = arith.addf %s, %v : f32
      affine.yield %next : f32
    }
    affine.store %sum, %r[%i] : memref<96xf32>
  }
  affine.for %i = 0 to 96 {
    affine.for %j = 0 to 96 {
      %v = affine.load %x[%i, %j] : memref<96x96xf32>
      affine.store %v, %y[%j, %i] : memref<96x96xf32>
    }
  }
  return
}
"""),
        "--no-cpu-kernels",
    )
    assert made.count("gpu.launch_func") == 2
    assert "memref<32x33xf32, #gpu.address_space<workgroup>>" in made


CHAIN = """\
func.func @f(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %y: memref<?x?xf32>, %n: index, %m: index)
    attributes {llvm.emit_c_interface} {
  %t = memref.alloc(%n, %m) : memref<?x?xf32>
  FIRST
  SECOND
  linalg.exp ins(%t : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  memref.dealloc %t : memref<?x?xf32>
  return
}
"""
TYPES = "memref<?x?xf32>, memref<?x?xf32>"
MUL = f"linalg.mul ins(%a, %b : {TYPES}) outs(%t : memref<?x?xf32>)"
ADD = f"linalg.add ins(%t, %b : {TYPES}) outs(%t : memref<?x?xf32>)"
TURN = "linalg.transpose ins(%a : memref<?x?xf32>) outs(%t : memref<?x?xf32>) permutation = [1, 0]"
TURN_ONTO = (
    "linalg.transpose ins(%t : memref<?x?xf32>) outs(%b : memref<?x?xf32>) permutation = [1, 0]"
)


def _asking(operation: str, block: str) -> str:
    name, rest = operation.split(" ", 1)
    return f"{name} {{aotc.block = array<i32: {block}>}} {rest}"


@pytest.mark.parametrize(
    ("first", "second", "kernels"),
    [
        (MUL, ADD, 1),
        # Tiles, whose elements are added to as they are written.
        (TURN, ADD, 1),
        # The second needs what other points of the first wrote.
        (MUL, TURN_ONTO, 2),
        # Who asks for a block gets it; who asks for none does not mind.
        (MUL, _asking(ADD, "64, 2"), 1),
        (_asking(MUL, "64, 4"), _asking(ADD, "64, 2"), 2),
    ],
    ids=["elementwise", "tiles", "turned back", "one block", "two blocks"],
)
def test_elementwise_chains_on_buffers_are_one_kernel(
    first: str, second: str, kernels: int, aotc: Aotc, mlir_file: Write
) -> None:
    """The operations promise that their sizes are equal; nothing else says so."""
    source = mlir_file(CHAIN.replace("FIRST", first).replace("SECOND", second))
    made = _outlined(aotc, source, "--no-cpu-kernels")
    assert made.count("gpu.launch_func") == kernels
    assert made.count("memref.alloc") + made.count("gpu.alloc") == (kernels > 1)
    assert "differ in size" not in made


def test_a_broadcast_joins_what_it_is_added_to(aotc: Aotc, mlir_file: Write) -> None:
    """Whose size the loops ask for differs from one to the next."""
    made = _outlined(
        aotc,
        mlir_file(f"""\
func.func @f(%x: memref<?x?xf32>, %b: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?x?xf32>)
    attributes {{llvm.emit_c_interface}} {{
  linalg.broadcast ins(%b : memref<?xf32>) outs(%t : memref<?x?xf32>) dimensions = [0]
  linalg.add ins(%x, %t : {TYPES}) outs(%t : memref<?x?xf32>)
  linalg.tanh ins(%t : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}}
"""),
    )
    assert made.count("gpu.launch_func") == 1


def test_softmax_of_buffers_of_unknown_size_is_one_loop(aotc: Aotc, mlir_file: Write) -> None:
    """A kernel for each range of lengths, and no buffer."""
    made = _outlined(
        aotc,
        mlir_file("""\
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}
"""),
        "--no-cpu-kernels",
    )
    assert made.count("gpu.launch_func") == 4
    assert "alloc" not in made
