"""Launches and kernels that ask for more than GPUs have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.checks import HEAD, check
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

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


SURELY, MAYBE, NEVER = "// ERROR grid-size", "// WARNING grid-size", ""


@pytest.mark.parametrize(
    ("around", "mark"),
    [
        ("LAUNCH", SURELY),
        ("scf.if %cond { LAUNCH }", MAYBE),
        ("scf.if %true { LAUNCH }", SURELY),
        ("scf.if %true { } else { LAUNCH }", NEVER),
        ("scf.index_switch %n case 3 { LAUNCH scf.yield } default { }", MAYBE),
        ("scf.for %i = %c0 to %c8 step %c1 { LAUNCH }", SURELY),
        ("scf.for %i = %c0 to %n step %c1 { LAUNCH }", MAYBE),
        ("scf.for %i = %c8 to %c8 step %c1 { LAUNCH }", NEVER),
        ("affine.for %i = 0 to 8 { scf.if %cond { LAUNCH } }", MAYBE),
        ("scf.while : () -> () { LAUNCH scf.condition(%cond) } do { scf.yield }", SURELY),
        ("scf.while : () -> () { scf.condition(%cond) } do { LAUNCH scf.yield }", MAYBE),
        ("scf.execute_region { LAUNCH scf.yield }", SURELY),
        ("cf.cond_br %cond, ^one, ^two\n^one:\n LAUNCH cf.br ^two\n^two:", MAYBE),
        ("cf.cond_br %cond, ^one, ^two\n^one:\n cf.br ^two\n^two:\n LAUNCH", SURELY),
        ("cf.cond_br %true, ^one, ^two\n^one:\n LAUNCH cf.br ^two\n^two:", SURELY),
        ("cf.cond_br %true, ^two, ^one\n^one:\n LAUNCH cf.br ^two\n^two:", NEVER),
    ],
)
def test_launches_that_may_not_run(around: str, mark: str) -> None:
    """It is an error where each call of the function fails, else a warning."""
    launch = LAUNCH.format(
        grid=["%c0", "%c1", "%c1"], block=["%c1", "%c1", "%c1"], rest="", mark=mark
    )
    text = around.replace("LAUNCH", launch)
    check(f"{HEAD}  %true = arith.constant true\n  {text}\n  return\n}}\n")


@pytest.mark.parametrize(
    ("cluster", "grid", "chips", "is_wrong"),
    [
        ("2 2 2", "8 8 8", "", False),
        ("16 1 1", "64 1 1", "", False),
        ("32 1 1", "64 1 1", "", True),
        ("2 1 1", "63 1 1", "", True),
        ("0 1 1", "64 1 1", "", True),
        ("2 1 1", "64 1 1", "sm_90 sm_100a", False),
        ("2 1 1", "64 1 1", "sm_89 sm_90", True),
        ("1 1 1", "64 1 1", "sm_89", False),
    ],
)
def test_clusters(cluster: str, grid: str, chips: str, is_wrong: bool) -> None:
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
""",
        chips,
    )


def test_chips_that_have_no_code_are_not_asked() -> None:
    """wgmma is sm_90a's alone, which has this much."""
    launch = "dynamic_shared_memory_size %most"
    check(kernel_module(body="nvvm.wgmma.fence.aligned", launch=launch))


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


DYNAMIC = "%d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>"
NO_ELEMENTS = "%d = memref.get_global @none : memref<0xi8, #gpu.address_space<workgroup>>"
ENOUGH = "dynamic_shared_memory_size %bytes"
LOAD = "%e = memref.load %d[%i] : memref<{}xi8, #gpu.address_space<workgroup>>"
VIEW = f"""{DYNAMIC}
    %at = arith.constant 96000 : index
    %v = memref.view %d[%at][] : memref<?xi8, #gpu.address_space<workgroup>> to \
memref<{{}}xf32, #gpu.address_space<workgroup>>
    %e = memref.load %v[%i] : memref<{{}}xf32, #gpu.address_space<workgroup>>"""


@pytest.mark.parametrize(
    ("body", "launch", "is_wrong"),
    [
        (DYNAMIC, "", False),
        (f"{DYNAMIC}\n{LOAD.format('?')}", "", True),
        (f"{DYNAMIC}\n{LOAD.format('?')}", ENOUGH, False),
        (f"{NO_ELEMENTS}\n{LOAD.format(0)}", "", True),
        (f"{NO_ELEMENTS}\n{LOAD.format(0)}", ENOUGH, False),
        (VIEW.format(1000, 1000), ENOUGH, False),
        (VIEW.format(1001, 1001), ENOUGH, True),
        (f"scf.if %maybe {{\n{VIEW.format(1001, 1001)}\n}}", ENOUGH, False),
    ],
)
def test_dynamic_shared_memory_that_kernels_use(body: str, launch: str, is_wrong: bool) -> None:
    """The view ends at byte 100,000, or at 100,004; one that is not always taken need not fit."""
    body = f"%i = gpu.thread_id x\n%maybe = arith.cmpi eq, %i, %i : index\n{body}"
    mark = "// ERROR shared-memory" if is_wrong else ""
    module = kernel_module(body=body, launch=f"{launch} {mark}")
    none = 'memref.global "private" @none : memref<0xi8, #gpu.address_space<workgroup>>'
    check(module.replace("  gpu.func", f"  {none}\n  gpu.func", 1), "sm_90a")


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ("@device::@k (%x : f64)", "Argument 0 of the kernel 'k' is f32; this launch gives f64."),
        ("@device::@k ()", "The kernel 'k' takes 1 arguments; this launch gives 0."),
        ("@device::@k (%y : f32, %y : f32)", "takes 1 arguments; this launch gives 2."),
        ("@device::@q (%y : f32)", "The gpu.module 'device' has no kernel 'q'. It has: k."),
        ("@device::@help (%y : f32)", "'help' is no kernel: its gpu.func has no 'kernel'"),
        ("@other::@k (%y : f32)", "names the gpu.module 'other', which is not there."),
        ("@device::@deep::@k (%y : f32)", "names its kernel as @MODULE::@KERNEL."),
        ("@device::@k (%y : f32)", ""),
    ],
)
@pytest.mark.parametrize("around", ["scf.if %maybe { LAUNCH }", "LAUNCH"])
def test_launches_fit_their_kernels(
    launch: str, message: str, around: str, aotc: Aotc, mlir_file: MlirFile
) -> None:
    """MLIR's verifier looks at launches alone that are directly in a function."""
    name, _, arguments = launch.partition(" ")
    sizes = "blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)"
    given = "" if arguments == "()" else f"args{arguments}"
    path = mlir_file(f"""module attributes {{gpu.container_module}} {{
gpu.module @device {{
  gpu.func @k(%x: f32) kernel {{ gpu.return }}
  gpu.func @help(%x: f32) {{ gpu.return }}
}}
func.func @f(%x: f64, %y: f32, %maybe: i1) attributes {{llvm.emit_c_interface}} {{
  %c1 = arith.constant 1 : index
  {around.replace("LAUNCH", f"gpu.launch_func {name} {sizes} {given}")}
  return
}}
}}
""")
    done = aotc("build", path, "--emit", "mlir", "-o", "-", "--chip", "sm_90a")
    assert done.code == (2 if message else 0), done.stderr
    if "scf.if" in around:
        assert message in done.stderr


@pytest.mark.parametrize("kernel", ["@device::@other", "@device::@none"])
def test_kernels_launch_no_kernels(kernel: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    sizes = "blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)"
    path = mlir_file(f"""module attributes {{gpu.container_module}} {{
gpu.module @device {{
  gpu.func @other() kernel {{ gpu.return }}
  gpu.func @k() kernel {{
    %c1 = arith.constant 1 : index
    gpu.launch_func {kernel} {sizes}
    gpu.return
  }}
}}
func.func @f() attributes {{llvm.emit_c_interface}} {{
  %c1 = arith.constant 1 : index
  gpu.launch_func @device::@k {sizes}
  return
}}
}}
""")
    done = aotc("build", path, "--emit", "mlir", "-o", "-", "--chip", "sm_90a")
    assert done.code == 2
    assert "6:5: error: gpu.launch_func is not supported in kernels: host code" in done.stderr
