"""What the options of `aotc build` do."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome, own_process, process_environment
from helpers.elf import Elf
from helpers.filecheck import filecheck

from aotc import __version__, mlir
from aotc.artifacts import KINDS
from aotc.errors import AotcError
from aotc.input.source import parse_source
from aotc.request import DEFAULT_CHIPS
from aotc.toolchain import Toolchain

Aotc = Callable[..., Outcome]
SAMPLE = SAMPLES / "vector_add.mlir"
KERNEL = "vector_add_kernels"


# --- Chips and PTX ---------------------------------------------------------------------


def _images(aotc: Aotc, folder: Path, *options: str) -> tuple[list[str], list[str], str]:
    """The chips of the cubins and of the PTX that a build makes; what the manifest says."""
    done = aotc("build", SAMPLE, "--emit", "ptx,cubin,manifest", *options, "-o", f"{folder}/")
    done.succeeded()
    names = sorted(file.name.split(".")[1:] for file in folder.iterdir() if KERNEL in file.name)
    built_for = json.loads((folder / "vector_add.json").read_text())["kernels"][0]["built_for"]
    cubins = sorted((name for name, kind in names if kind == "cubin"), key=_number)
    ptx = sorted((name for name, kind in names if kind == "ptx"), key=_number)
    return cubins, ptx, ", ".join(built_for)


def _number(chip: str) -> int:
    return int(re.sub(r"\D", "", chip))


def test_the_default_chips_reach_every_gpu_from_ampere_on(aotc: Aotc, tmp_path: Path) -> None:
    cubins, _, built_for = _images(aotc, tmp_path)
    assert tuple(cubins) == DEFAULT_CHIPS
    assert built_for == ", ".join([*DEFAULT_CHIPS, "compute_80"])


@pytest.mark.parametrize(
    "options",
    [["--chip", "sm_90a,sm_80"], ["--chip", "sm_90a", "--chip", "sm_80", "--chip", "sm_90a"]],
)
def test_chips_are_a_list_or_repeated(options: list[str], aotc: Aotc, tmp_path: Path) -> None:
    """Named chips are all: no PTX beside them."""
    assert _images(aotc, tmp_path, *options) == (
        ["sm_80", "sm_90a"],
        ["sm_80", "sm_90a"],
        "sm_90a, sm_80",
    )


def test_ptx_for_a_chip_without_a_cubin(aotc: Aotc, tmp_path: Path) -> None:
    assert _images(aotc, tmp_path, "--chip", "sm_90", "--ptx", "compute_80") == (
        ["sm_90"],
        ["sm_80", "sm_90"],
        "sm_90, compute_80",
    )


def test_no_ptx(aotc: Aotc, tmp_path: Path) -> None:
    _, _, built_for = _images(aotc, tmp_path, "--ptx", "none")
    assert built_for == ", ".join(DEFAULT_CHIPS)


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_121"])
def test_ptx_names_its_chip(chip: str, aotc: Aotc) -> None:
    done = aotc("build", SAMPLE, "--emit", "ptx", "--chip", chip, "-o", "-").succeeded()
    assert f"\n.target {chip}\n" in done.stdout


def test_every_known_chip_compiles(aotc: Aotc, tmp_path: Path) -> None:
    """A name that --chip offers is one that the tools take."""
    offer = aotc("build", SAMPLE, "--chip", "x").stderr
    known = re.findall(r"\bsm_\w+", offer.partition("Known: ")[2])
    assert set(known) > set(DEFAULT_CHIPS)
    options = ("--chip", ",".join(known), "--emit", "cubin")
    aotc("build", SAMPLE, *options, "-o", f"{tmp_path}/").succeeded()
    assert len(list(tmp_path.iterdir())) == len(known)


def test_a_fatbin_holds_what_was_asked_for(aotc: Aotc, tmp_path: Path) -> None:
    """Its size grows with each image; the PTX text is in it, compressed or not."""
    sizes = []
    for options in (["--chip", "sm_80"], ["--chip", "sm_80,sm_90"]):
        place = tmp_path / "image.fatbin"
        aotc("build", SAMPLE, "--emit", "fatbin", *options, "-o", place).succeeded()
        sizes.append(len(place.read_bytes()))
    assert sizes[1] > 1.5 * sizes[0]


# --- The host --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "machine", "loader"),
    [
        ("x86_64-linux-gnu.2.28", "x86_64", "ld-linux-x86-64.so.2"),
        ("aarch64-linux-gnu.2.28", "aarch64", "ld-linux-aarch64.so.1"),
        ("aarch64-linux-gnu", "aarch64", "ld-linux-aarch64.so.1"),
    ],
)
def test_host_targets(target: str, machine: str, loader: str, aotc: Aotc, tmp_path: Path) -> None:
    """Every linked thing is for the machine that --target names, whatever this one is."""
    options = ("--emit", "obj,shared,exe", "--target", target, "--chip", "sm_80")
    aotc("build", SAMPLE, *options, "-o", f"{tmp_path}/").succeeded()
    for name in ("vector_add.o", "lib/libvector_add.so", "vector_add"):
        assert Elf(tmp_path / name).machine == machine
    interpreter = Elf(tmp_path / "vector_add").section(".interp")
    assert interpreter is not None
    assert interpreter.rstrip(b"\0").decode().endswith(loader)
    versions = Elf(tmp_path / "vector_add").versions_needed["libc.so.6"]
    assert max(tuple(map(int, v[6:].split("."))) for v in versions) <= (2, 28)


def test_the_optimization_reaches_host_and_device(aotc: Aotc, tmp_path: Path) -> None:
    made = {}
    for level in "0123":
        out = tmp_path / level
        options = ("--emit", "ptx,cubin,obj", "--chip", "sm_80", f"-O{level}", "-v")
        done = aotc("build", SAMPLE, *options, "-o", f"{out}/").succeeded()
        commands = [shlex.split(line) for line in done.stderr.splitlines()]
        # clang for each chip, the kernels and the host; ptxas, fatbinary, ld.lld -r
        assert len(commands) == 6
        assert sum(f"-O{level}" in command for command in commands) == 4
        made[level] = [file.read_bytes() for file in sorted(out.iterdir())]
    for zero, three in zip(made["0"], made["3"], strict=True):
        assert zero != three


# --- Entries ---------------------------------------------------------------------------

TWO_ENTRIES = """
func.func @one(%a: memref<8xf32>) attributes {llvm.emit_c_interface} { return }
func.func @two(%a: memref<8xf32>) attributes {llvm.emit_c_interface} { return }
func.func @three() { return }
"""


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ([], ["one", "two"]),
        (["--entry", "two"], ["two"]),
        (["--entry", "three,one"], ["one", "three"]),
        (["--entry", "three", "--entry", "two"], ["two", "three"]),
    ],
)
def test_entries(
    options: list[str],
    entries: list[str],
    aotc: Aotc,
    mlir_file: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """--entry says which functions are exported, and those alone are."""
    path = mlir_file(TWO_ENTRIES)
    aotc("build", path, "--emit", "manifest,shared", *options, "-o", f"{tmp_path}/").succeeded()
    manifest = json.loads((tmp_path / "input.json").read_text())
    assert [entry["name"] for entry in manifest["entries"]] == entries
    exports = {s for s in Elf(tmp_path / "lib" / "libinput.so").exports if s.startswith("_mlir_")}
    assert exports == {f"_mlir_ciface_{name}" for name in entries}


def test_several_entries_in_one_program(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    program = tmp_path / "program"
    aotc("build", mlir_file(TWO_ENTRIES), "-o", program).succeeded()
    done = subprocess.run([program, "--describe"], capture_output=True, text=True, check=True)
    assert "one" in done.stdout
    assert "two" in done.stdout
    assert "three" not in done.stdout


# --- The input -------------------------------------------------------------------------


def test_standard_input(tmp_path: Path) -> None:
    done = own_process(
        ["build", "-", "--emit", "manifest", "-o", "-"], stdin=SAMPLE.read_bytes(), cwd=tmp_path
    ).succeeded()
    manifest = json.loads(done.stdout)
    assert manifest["name"] == "stdin"
    assert [a["name"] for a in manifest["entries"][0]["arguments"]] == ["x", "y", "z"]


def test_bytecode(aotc: Aotc, tmp_path: Path) -> None:
    """Builds to the same code as its text; only the arguments' names are lost, in the manifest and
    in the note that has it."""
    bytecode = tmp_path / "vector_add.mlirbc"
    with mlir.make_context(), bytecode.open("wb") as file:
        mlir.ir.Module.parse(SAMPLE.read_text()).operation.write_bytecode(file)
    options = ("--emit", "manifest,obj", "--chip", "sm_80")
    aotc("build", bytecode, *options, "-o", f"{tmp_path}/bytecode/").succeeded()
    aotc("build", SAMPLE, *options, "-o", f"{tmp_path}/text/").succeeded()
    manifest = json.loads((tmp_path / "bytecode" / "vector_add.json").read_text())
    assert [a["name"] for a in manifest["entries"][0]["arguments"]] == ["arg0", "arg1", "arg2"]
    objects = [Elf(tmp_path / place / "vector_add.o") for place in ("bytecode", "text")]
    sections = [[s for s in elf.sections if s.name != ".note.aotc"] for elf in objects]
    assert sections[0] == sections[1]


def test_bytecode_on_standard_input(tmp_path: Path) -> None:
    """With -g its own locations are the lines; what it is called is for -o to say."""
    source = parse_source("there.mlir", SAMPLE.read_bytes(), mlir.make_context(), locations=True)
    buffer = io.BytesIO()
    source.module.operation.write_bytecode(buffer)
    options = ("--emit", "ptx", "--chip", "sm_80", "-g", "-o", "named.ptx")
    own_process(["build", "-", *options], stdin=buffer.getvalue(), cwd=tmp_path).succeeded()
    assert "there.mlir:" in (tmp_path / "named.ptx").read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["named.ptx"]


def test_damaged_bytecode(tmp_path: Path, aotc: Aotc) -> None:
    """The message has the file's name: there is no line to show."""
    buffer = io.BytesIO()
    with mlir.make_context():
        mlir.ir.Module.parse(SAMPLE.read_text()).operation.write_bytecode(buffer)
    damaged = tmp_path / "damaged.mlirbc"
    damaged.write_bytes(buffer.getvalue()[:300])
    done = aotc("build", damaged)
    assert done.code == 2
    assert done.stderr.startswith(f"aotc: error: Cannot read the bytecode of {damaged}:\n")
    assert "None" not in done.stderr


@pytest.mark.parametrize(
    "name", ["my kernel.mlir", "a-b.c.mlir", "-x.mlir", "@x.mlir", "merged.mlir", "größe.mlir"]
)
def test_names_of_inputs(name: str, aotc: Aotc, tmp_path: Path) -> None:
    """A file may be called anything; its artifacts are called after it."""
    path = tmp_path / name
    path.write_text(SAMPLE.read_text())
    out = tmp_path / "out"
    options = ("--emit", "exe,shared,static,obj", "--chip", "sm_80")
    aotc("build", *options, "-o", f"{out}/", "--", path).succeeded()
    stem = name.split(".")[0]
    names = {str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()}
    assert names == {
        *(stem, f"{stem}.o", f"{stem}.json"),
        *(f"lib/lib{stem}.so", f"lib/lib{stem}.a", f"include/{stem}.h"),
        *(f"lib/pkgconfig/{stem}.pc", f"lib/cmake/{stem}/{stem}Config.cmake"),
        f"lib/cmake/{stem}/{stem}ConfigVersion.cmake",
    }
    done = subprocess.run(
        [out / stem, "--dim", "x=10", "--dim", "y=10", "--dim", "z=10", "--device", "cpu"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# --- --pipeline ------------------------------------------------------------------------

OUTLINE = (
    "builtin.module(func.func(lower-affine,gpu-map-parallel-loops),convert-parallel-loops-to-gpu,"
    "func.func(lower-affine),gpu-kernel-outlining,canonicalize,cse)"
)
TO_LLVM = (
    "builtin.module(func.func(lower-affine,gpu-map-parallel-loops),convert-parallel-loops-to-gpu,"
    "gpu-kernel-outlining,convert-scf-to-cf,convert-func-to-llvm,"
    "gpu.module(convert-gpu-to-nvvm,reconcile-unrealized-casts),gpu-to-llvm,"
    "finalize-memref-to-llvm,convert-arith-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def test_a_lowering_of_the_user_s_up_to_kernels(aotc: Aotc, tmp_path: Path) -> None:
    """The user's mapping, one thread in each block, is kept; the rest is aotc's."""
    program = tmp_path / "program"
    options = ("--pipeline", OUTLINE, "--chip", "sm_80")
    done = aotc("build", SAMPLE, *options, "--emit", "mlir", "-o", "-").succeeded()
    filecheck(
        done.stdout,
        """
        CHECK: %[[C1:.*]] = arith.constant 1 : index
        CHECK: gpu.launch_func @vector_add_kernel::@vector_add_kernel
        CHECK-SAME: threads in (%[[C1]], %[[C1]], %[[C1]])
        """,
    )
    aotc("build", SAMPLE, *options, "-o", program).succeeded()
    _runs(program)


def test_options_of_aotcs_pipeline_beside_ones_own(aotc: Aotc, tmp_path: Path) -> None:
    """None is passed over: --block and --memory are for passes that one's own pipeline may have."""
    own = ("--pipeline", OUTLINE, "--emit", "mlir", "-o", tmp_path / "out.mlir")
    assert aotc("build", SAMPLE, *own, "--block", "32") == Outcome(
        2,
        "",
        "aotc: error: --block is for aotc's own pipeline: in that of --pipeline, its pass has the "
        "option, aotc-map-parallel-loops{block=...}.\n",
    )
    done = aotc("build", SAMPLE, *own, "--memory", "managed", "--explain").succeeded()
    assert "aotc-place-memory{memory=managed}" in done.stdout
    placing = f"{OUTLINE.removesuffix(')')},aotc-place-memory)"
    again = ("--pipeline", placing, *own[2:], "--memory", "managed")
    assert aotc("build", SAMPLE, *again) == Outcome(
        2,
        "",
        "aotc: error: --memory managed: the pipeline places memory itself: give the mode to its "
        "pass, aotc-place-memory.\n",
    )


def test_a_lowering_of_the_user_s_down_to_llvm(aotc: Aotc, tmp_path: Path) -> None:
    """What is lowered already stays as it is, kernels and host."""
    options = ("--pipeline", TO_LLVM, "--chip", "sm_80", "--emit", "obj,manifest,exe")
    aotc("build", SAMPLE, *options, "-o", f"{tmp_path}/").succeeded()
    manifest = json.loads((tmp_path / "vector_add.json").read_text())
    (entry,) = manifest["entries"]
    # Nothing is known of what lowered code does with its arguments.
    assert all(a["is_read"] and a["is_written"] for a in entry["arguments"])
    assert entry["touches_memory_on_host"]
    (kernel,) = manifest["kernels"]
    assert kernel["name"] == "vector_add_kernel"
    if kernel["why_no_cpu_form"] is None:
        _runs(tmp_path / "vector_add")


def _runs(program: Path) -> None:
    dims = [word for name in "xyz" for word in ("--dim", f"{name}=100")]
    values = ["--arg", "x=arange", "--arg", "y=ones"]
    done = subprocess.run(
        [program, *dims, *values, "--device", "cpu", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    (result,) = [r for r in json.loads(done.stdout)["results"] if r["name"] == "z"]
    assert (result["min"], result["max"]) == (1, 100)


# --- What is kept and told -------------------------------------------------------------


def test_save_temps_are_numbered_in_stage_order(aotc: Aotc, tmp_path: Path) -> None:
    """Each stage that ran, in order; each artifact as the stage made it."""
    temps = tmp_path / "temps"
    options = ("--chip", "sm_80,sm_90", "--save-temps", temps)
    aotc("build", SAMPLE, *options, "-o", tmp_path / "program").succeeded()
    names = sorted(file.name for file in temps.iterdir())
    assert [int(name.split("-")[0]) for name in names] == list(range(1, len(names) + 1))
    stages = [re.match(r"\d+-([a-z-]+)\.", name)[1] for name in names]  # type: ignore[index]
    order = list(KINDS)
    assert stages == sorted(stages, key=order.index)
    assert stages.count("cubin") == 2
    assert (temps / names[-1]).read_bytes() == (tmp_path / "program").read_bytes()
    aotc("build", SAMPLE, "--chip", "sm_80", "--emit", "ptx", "-o", tmp_path / "ptx").succeeded()
    (ptx,) = [name for name in names if name.endswith(".sm_80.ptx")]
    assert (temps / ptx).read_bytes() == (tmp_path / "ptx").read_bytes()


def test_the_time_report_has_every_stage_that_ran(aotc: Aotc, tmp_path: Path) -> None:
    options = ("--time-report", "--chip", "sm_80", "--emit", "exe,shared,static,asm,header")
    done = aotc("build", SAMPLE, *options, "-o", f"{tmp_path}/").succeeded()
    rows = [line.split() for line in done.stderr.splitlines()]
    stages = [name for name in KINDS if name != "weights"]
    assert [row[0] for row in rows] == [*stages, "total"]
    times = [float(row[1]) for row in rows]
    # Some ran concurrently, and between them there is little.
    assert max(times[:-1]) <= times[-1] <= sum(times[:-1]) + 50


def test_verbose_commands_run_again(aotc: Aotc, tmp_path: Path) -> None:
    """-v prints each command, quoted, as it was run: a shell does the same with it."""
    source = tmp_path / "it's a kernel.mlir"
    source.write_text(SAMPLE.read_text())
    temps = tmp_path / "temps"
    done = aotc(
        *("build", source, "-v", "--chip", "sm_80", "--emit", "cubin", "--save-temps", temps),
        *("-o", tmp_path / "cubin"),
    ).succeeded()
    clang, ptxas = done.stderr.splitlines()
    again = tmp_path / "again"
    again.mkdir()
    (saved,) = temps.glob("*-device-ll.*")
    (again / saved.name.split(".", 1)[1]).write_bytes(saved.read_bytes())
    for command in (clang, ptxas):
        subprocess.run(["sh", "-c", command], cwd=again, check=True, capture_output=True)
    (cubin,) = again.glob("*.cubin")
    assert cubin.read_bytes() == (tmp_path / "cubin").read_bytes()


def test_quiet_leaves_out_warnings(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    path = mlir_file(
        """
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @kernel() kernel { nvvm.wgmma.fence.aligned
      gpu.return }
  }
  func.func @f() attributes {llvm.emit_c_interface} { return }
}
"""
    )
    command = ("build", path, "--emit", "fatbin", "-o", tmp_path / "fatbin")
    assert "warning: " in aotc(*command).succeeded().stderr
    assert aotc(*command, "-q") == Outcome(0, "", "")


def test_version_lists_every_tool(aotc: Aotc) -> None:
    done = aotc("--version").succeeded()
    lines = done.stdout.splitlines()
    assert lines[0] == f"aotc {__version__}"
    rows = {line.split()[0]: line for line in lines[1:]}
    tools = {"mlir", "zig", "clang", "ptxas", "fatbinary", "libdevice", "cuda-include"}
    assert set(rows) >= tools
    for name in tools:
        version, place = re.match(r"  \S+ +(.*?)  (/.*?)(?:  \(package\))?$", rows[name]).groups()  # type: ignore[union-attr]
        assert re.search(r"\d+\.\d+|\d{8}", version), rows[name]
        assert Path(place).exists()
    assert mlir.bindings().llvm_version in rows["mlir"]


def test_an_older_ptxas_on_path_is_not_taken(tmp_path: Path) -> None:
    """Tools come from the packages; one that the user names is taken, and shown as such."""
    old = tmp_path / "ptxas"
    old.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 11.0, V11.0.1'\n")
    old.chmod(0o755)
    path = f"{tmp_path}:{process_environment()['PATH']}"
    plain = own_process(["--version"], env={"PATH": path}).succeeded()
    assert "11.0" not in plain.stdout
    assert "ptxas" in plain.stdout
    named = own_process(["--version"], env={"AOTC_PTXAS": str(old)}).succeeded()
    assert re.search(rf"ptxas +11\.0\.1  {re.escape(str(old))}  \(AOTC_PTXAS\)", named.stdout)


def test_help_loads_neither_the_bindings_nor_a_tool() -> None:
    """--help answers at once, and works where the tools do not."""
    done = subprocess.run(
        [
            *(sys.executable, "-X", "importtime", "-c"),
            "import aotc.cli; aotc.cli.run(['build', '--help'])",
        ],
        env=process_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--save-temps DIR" in done.stdout
    assert "torch_mlir" not in done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert not {name for name in loaded if name.split(".")[0] == "cuda"}


# --- -g --------------------------------------------------------------------------------


def test_debug_keeps_lines_on_host_and_device(aotc: Aotc, tmp_path: Path) -> None:
    options = ("-g", "--chip", "sm_80", "--emit", "ptx,cubin,obj,exe")
    aotc("build", SAMPLE, *options, "-o", f"{tmp_path}/").succeeded()
    ptx = (tmp_path / f"{KERNEL}.sm_80.ptx").read_text()
    # Line 9 adds, line 11 stores.
    filecheck(
        ptx,
        """
        CHECK: .loc {{[0-9]+}} 9
        CHECK-NEXT: add.rn.f32
        CHECK: .loc {{[0-9]+}} 11
        CHECK: st.global
        CHECK: .file 1 "{{.*}}vector_add.mlir"
        """.replace("9\n", str(_line("arith.addf")) + " \n").replace(
            "11\n", str(_line("memref.store")) + " \n"
        ),
    )
    cubin = Elf(tmp_path / f"{KERNEL}.sm_80.cubin")
    assert cubin.section(".debug_line"), [section.name for section in cubin.sections]
    assert b"vector_add.mlir" in (cubin.section(".debug_line") or b"")
    for name in ("vector_add.o", "vector_add"):
        elf = Elf(tmp_path / name)
        assert elf.section(".debug_line")
    strings = Elf(tmp_path / "vector_add").section(".debug_line_str") or Elf(
        tmp_path / "vector_add"
    ).section(".debug_line")
    assert b"vector_add.mlir" in (strings or b"")


def test_line_information_of_kernels_changes_no_code(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profilers find the lines in the cubin; the machine code, and the host's half, are as they
    are without."""
    monkeypatch.chdir(tmp_path)
    options = ("--chip", "sm_80", "--emit", "ptx,cubin,obj")
    aotc("build", SAMPLE, *options, "--lineinfo", "-o", "with/").succeeded()
    aotc("build", SAMPLE, *options, "-o", "without/").succeeded()
    ptx, cubin = f"{KERNEL}.sm_80.ptx", f"{KERNEL}.sm_80.cubin"
    assert f".loc\t1 {_line('arith.addf')} " in Path("with", ptx).read_text()
    lined, plain = Elf(Path("with", cubin)), Elf(Path("without", cubin))
    assert b"vector_add.mlir" in (lined.section(".debug_line") or b"")
    code = [section for section in plain.sections if section.name.startswith(".text.")]
    assert code
    assert [lined.section(section.name) for section in code] == [one.content for one in code]
    assert Elf(Path("with/vector_add.o")).section(".debug_line") is None
    assert Elf(Path("with/vector_add.o")).section(".text") == (
        Elf(Path("without/vector_add.o")).section(".text")
    )


def test_nvdisasm_shows_the_lines_of_kernels(aotc: Aotc, tmp_path: Path) -> None:
    try:
        nvdisasm = Toolchain(os.environ).tool("nvdisasm").path
    except AotcError as error:
        pytest.skip(f"there is no nvdisasm: {error}")
    cubin = tmp_path / "kernel.cubin"
    options = ("--chip", "sm_80", "--emit", "cubin", "--lineinfo", "-O1")
    aotc("build", SAMPLE, *options, "-o", cubin).succeeded()
    command = [nvdisasm, "-g", "-c", cubin]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    place = rf'//## File ".*vector_add\.mlir", line {_line("arith.addf")}\b'
    assert re.search(rf"{place}.*\n(?:\s.*\n)?.*FADD", shown), shown
    assert f".text.{KERNEL.removesuffix('_kernels')}" in shown


def _line(needle: str) -> int:
    lines = SAMPLE.read_text().splitlines()
    return next(i for i, line in enumerate(lines, start=1) if needle in line)


def test_without_debug_there_are_no_lines(aotc: Aotc, tmp_path: Path) -> None:
    options = ("--chip", "sm_80", "--emit", "ptx,cubin,obj,exe")
    aotc("build", SAMPLE, *options, "-o", f"{tmp_path}/").succeeded()
    assert ".loc" not in (tmp_path / f"{KERNEL}.sm_80.ptx").read_text()
    for name in (f"{KERNEL}.sm_80.cubin", "vector_add.o", "vector_add"):
        assert Elf(tmp_path / name).section(".debug_line") is None


# --- aotc run --------------------------------------------------------------------------


def test_run_passes_arguments_on(tmp_path: Path) -> None:
    dims = [word for name in "xyz" for word in ("--dim", f"{name}=100")]
    arguments = ["run", SAMPLE, "--chip", "sm_80", "--", *dims, "--device", "cpu", "--json"]
    done = own_process(arguments, cwd=tmp_path).succeeded()
    assert json.loads(done.stdout)["results"][0]["name"] == "z"
    assert not list(tmp_path.iterdir())


def test_run_ends_with_the_program_s_exit_code(mlir_file: Callable[..., Path], aotc: Aotc) -> None:
    path = mlir_file(
        """
func.func @main(%argc: i32, %argv: !llvm.ptr) -> i32 {
  %five = arith.constant 5 : i32
  %code = arith.addi %argc, %five : i32
  return %code : i32
}
"""
    )
    assert aotc("run", path).code == 6
    assert aotc("run", path, "--", "one", "--two").code == 8
    assert aotc("run", SAMPLE, "--chip", "sm_80", "--", "--no-such-option").code == 2
