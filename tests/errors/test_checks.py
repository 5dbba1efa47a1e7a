"""What is wrong with the input and found before any hardware runs it: the name and the place.

In the modules below `// ERROR name` and `// WARNING name` stand at the end of the lines that are
to be reported; lines without are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome

from aotc import mlir
from aotc.load.source import parse_source
from aotc.lower.checks import check_input
from aotc.lower.checks.host_pointers import check_host_pointers
from aotc.request import BuildRequest, Chip
from aotc.warnings import WARNINGS, BuildWarning

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

BUFFER = "memref<8xf32>"
# Names that the bodies of functions below use.
HEAD = f"""
func.func private @unknown({BUFFER})
func.func private @looks(%m: {BUFFER}) -> index {{
  %zero = arith.constant 0 : index
  %n = memref.dim %m, %zero : {BUFFER}
  return %n : index
}}
func.func private @writes(%m: {BUFFER}) {{
  %zero = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  memref.store %f, %m[%zero] : {BUFFER}
  return
}}
func.func @f(%a: {BUFFER}, %n: index, %cond: i1) attributes {{llvm.emit_c_interface}} {{
  %c-1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %x = arith.constant 1.0 : f32
""".replace("%c-1", "%m1")


def expected(text: str) -> list[tuple[int, str, str]]:
    """(line, severity, name) of the markers in `text`."""
    return [
        (number, found[1].lower(), found[2])
        for number, line in enumerate(text.split("\n"), start=1)
        for found in re.finditer(r"// (ERROR|WARNING) ([a-z-]+)", line)
    ]


def reported(found: list[BuildWarning]) -> list[tuple[int, str, str]]:
    return [
        (warning.place.line if warning.place else 0, WARNINGS[warning.name].value, warning.name)
        for warning in found
    ]


def check(text: str, chips: str = "") -> None:
    source = parse_source("input.mlir", text.encode(), mlir.make_context())
    request = BuildRequest(Path("input.mlir"), chips=tuple(map(Chip, chips.split())))
    assert reported(check_input(source, request)) == expected(text)


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


def test_a_freed_buffer_is_returned() -> None:
    check(
        f"""func.func @f() -> {BUFFER} attributes {{llvm.emit_c_interface}} {{
  %m = memref.alloc() : {BUFFER}
  memref.dealloc %m : {BUFFER}
  return %m : {BUFFER} // ERROR use-after-dealloc
}}
"""
    )


LAUNCH = """  gpu.launch blocks(%a0, %a1, %a2) \
in (%a3 = {grid[0]}, %a4 = {grid[1]}, %a5 = {grid[2]}) \
threads(%b0, %b1, %b2) in (%b3 = {block[0]}, %b4 = {block[1]}, %b5 = {block[2]}) {rest} {{ {mark}
    gpu.terminator
  }}
"""


@pytest.mark.parametrize(
    ("grid", "block", "names"),
    [
        ("%c1 %c1 %c1", "%c1024 %c1 %c1", ""),
        ("%c1 %c1 %c1", "%c1024 %c2 %c1", "block-size"),
        ("%c1 %c1 %c1", "%c1024 %c2 %n", "block-size"),
        ("%c1 %c1 %c1", "%c64 %n %n", ""),
        ("%c1 %c1 %c1", "%c2 %c2 %c64", ""),
        ("%c1 %c1 %c1", "%c1 %c1 %c1024", "block-size"),
        ("%c1 %c1 %c1", "%c0 %c1 %c1", "block-size"),
        ("%c1 %c1 %c1", "%m1 %c1 %c1", "block-size"),
        ("%n %n %n", "%n %n %n", ""),
        ("%c0 %c1 %c1", "%c1 %c1 %c1", "grid-size"),
        ("%c1 %m1 %c1", "%c1 %c1 %c1", "grid-size"),
        ("%big %c1 %c1", "%c1 %c1 %c1", ""),
        ("%c1 %big %c1", "%c1 %c1 %c1", "grid-size"),
        ("%c1 %c1 %big", "%c1024 %c2 %c1", "block-size grid-size"),
    ],
)
def test_launch_sizes(grid: str, block: str, names: str) -> None:
    """Sizes that are constants, or arithmetic on constants, against CUDA's limits."""
    mark = " ".join(f"// ERROR {name}" for name in names.split())
    launch = LAUNCH.format(grid=grid.split(), block=block.split(), rest="", mark=mark)
    check(f"{HEAD}  %big = arith.muli %c1024, %c1024 : index\n{launch}  return\n}}\n")


@pytest.mark.parametrize(
    ("cluster", "grid", "is_wrong"),
    [
        ("2 2 2", "8 8 8", False),
        ("16 1 1", "64 1 1", False),
        ("32 1 1", "64 1 1", True),
        ("2 1 1", "63 1 1", True),
        ("0 1 1", "64 1 1", True),
    ],
)
def test_clusters(cluster: str, grid: str, is_wrong: bool) -> None:
    mark = "// ERROR cluster-size" if is_wrong else ""
    sizes = [f"%c{n}" for n in (*cluster.split(), *grid.split())]
    constants = "".join(
        f"  {name} = arith.constant {name[2:]} : index\n" for name in sorted({*sizes, "%c1"})
    )
    x, y, z, *blocks = sizes
    check(
        f"""module attributes {{gpu.container_module}} {{
gpu.module @device {{
  gpu.func @kernel() kernel {{
    gpu.return
  }}
}}
func.func @f() attributes {{llvm.emit_c_interface}} {{
{constants}
  gpu.launch_func @device::@kernel clusters in ({x}, {y}, {z}) blocks in ({", ".join(blocks)}) \
threads in (%c1, %c1, %c1) {mark}
  return
}}
}}
"""
    )


def kernel_module(
    *, attributes: str = "", shared: str = "", launch: str = "", rest: str = "", body: str = ""
) -> str:
    """One kernel and its launch with blocks of 64 threads."""
    return f"""module attributes {{gpu.container_module}} {{
gpu.module @device {{
  memref.global "private" @tile : memref<64x128xf32, #gpu.address_space<workgroup>>
  gpu.func @kernel() {shared} kernel attributes {{{attributes}}} {{{rest}
    {body}
    gpu.return
  }}
}}
func.func @f() attributes {{llvm.emit_c_interface}} {{
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %bytes = arith.constant 100000 : i32
  %most = arith.constant 232448 : i32
  %too_much = arith.constant 232449 : i32
  gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) {launch}
  return
}}
}}
"""


@pytest.mark.parametrize(
    ("attributes", "in_kernel", "at_launch"),
    [
        ("known_block_size = array<i32: 64, 1, 1>", "", ""),
        ("known_block_size = array<i32: 32, 1, 1>", "", "// ERROR block-size"),
        ("known_block_size = array<i32: 64, 32, 1>", "// ERROR block-size", "// ERROR block-size"),
        ("known_grid_size = array<i32: 2, 1, 1>", "", "// ERROR grid-size"),
        ("nvvm.maxntid = array<i32: 1024>", "", ""),
        ("nvvm.maxntid = array<i32: 2048>", "// ERROR block-size", ""),
        ("nvvm.reqntid = array<i32: 32>", "", "// ERROR block-size"),
    ],
)
def test_sizes_that_kernels_are_made_for(attributes: str, in_kernel: str, at_launch: str) -> None:
    check(kernel_module(attributes=attributes, rest=in_kernel, launch=at_launch))


SHARED = "workgroup(%w: memref<{}xf32, #gpu.address_space<workgroup>>)"
TILE = "%t = memref.get_global @tile : memref<64x128xf32, #gpu.address_space<workgroup>>"


@pytest.mark.parametrize(
    ("shared", "body", "is_wrong"),
    [
        (SHARED.format(12288), "", False),
        (SHARED.format(12289), "", True),
        (SHARED.format(4096), TILE, False),
        (SHARED.format(4097), TILE, True),
        ("private(%p: memref<99999xf32, #gpu.address_space<private>>)", "", False),
    ],
)
def test_static_shared_memory(shared: str, body: str, is_wrong: bool) -> None:
    """48 KiB, whatever the chip: attributions, and the globals that the kernel names."""
    mark = "// ERROR shared-memory" if is_wrong else ""
    check(kernel_module(shared=shared, body=body, rest=mark))


@pytest.mark.parametrize(
    ("size", "chips", "mark"),
    [
        ("%most", "sm_90a", ""),
        ("%too_much", "sm_90a", "// ERROR shared-memory"),
        ("%bytes", "sm_80", ""),
        ("%bytes", "sm_75", "// ERROR shared-memory"),
        ("%most", "sm_80 sm_90", "// ERROR shared-memory"),
        # The user named no chip: it may never run where it cannot.
        ("%most", "", "// WARNING chip-shared-memory"),
        ("%bytes", "", ""),
        ("%too_much", "", "// ERROR shared-memory"),
    ],
)
def test_dynamic_shared_memory(size: str, chips: str, mark: str) -> None:
    check(kernel_module(launch=f"dynamic_shared_memory_size {size} {mark}"), chips)


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


# --- On the command line ---------------------------------------------------------------------

WRONG = f"""func.func @f(%a: {BUFFER}) attributes {{llvm.emit_c_interface}} {{
  %x = arith.constant 1.0 : f32
  %c9 = arith.constant 9 : index
  memref.store %x, %a[%c9] : {BUFFER}
  return
}}
"""


def test_options(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """A warning with its place and name; hidden; and an error, with which nothing is written."""
    path = mlir_file(WRONG)
    out = tmp_path / "out.mlir"
    command = ("build", path, "--emit", "host-mlir", "-o", out)
    said = (
        f"{path}:4:3: {{}}: memref.store has index 9 along dimension 0 of {BUFFER} [{{}}]\n"
        f"    memref.store %x, %a[%c9] : {BUFFER}\n"
        "    ^\n"
    )
    error = Outcome(2, "", said.format("error", "-Werror=out-of-bounds"))
    for option in ("-Werror", "-Werror=out-of-bounds"):
        assert aotc(*command, option) == error
        assert not out.exists()
    assert aotc(*command) == Outcome(0, "", said.format("warning", "-Wout-of-bounds"))
    assert out.exists()
    for option in ("-Wno-out-of-bounds", "-q"):
        assert aotc(*command, option) == Outcome(0, "", "")


def test_an_unknown_name(aotc: Aotc) -> None:
    done = aotc("build", SAMPLES / "matmul.mlir", "-Wno-out-of-bound")
    assert done.code == 2
    assert done.stderr.startswith(
        "aotc: error: Unknown warning 'out-of-bound' in -Wno-out-of-bound. Did you mean "
        "out-of-bounds? Known: block-size, "
    )


def test_an_error_by_default_can_be_a_warning(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    launch = LAUNCH.format(grid=["%c1"] * 3, block=["%c1024", "%c2", "%c1"], rest="", mark="")
    path = mlir_file(f"{HEAD}{launch}  return\n}}\n")
    command = ("build", path, "--emit", "mlir", "-o", tmp_path / "out.mlir")
    done = aotc(*command)
    assert done.code == 2
    assert (
        ": error: a block of 1024 x 2 x 1 threads has 2048: GPUs take 1024 [-Werror=block-size]\n"
    ) in done.stderr
    assert aotc(*command, "-Wno-error=block-size").stderr.count("warning: a block of") == 1
    assert aotc(*command, "-Wno-block-size").succeeded().stderr == ""
