"""What aotc says about an input that it cannot use: message, place and exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome, own_process

from aotc import mlir

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

VERSION_NOTE = (
    f"aotc reads the MLIR of LLVM {mlir.bindings().llvm_version}. MLIR's text format is not "
    "stable between releases: input written for another one may not parse.\n"
)
ENTRY = """
func.func @f(%a: memref<8xf32>) attributes {llvm.emit_c_interface} {
  affine.parallel (%i) = (0) to (8) {
    %v = affine.load %a[%i] : memref<8xf32>
    affine.store %v, %a[%i] : memref<8xf32>
  }
  return
}
"""


def test_text_that_does_not_parse(aotc: Aotc, mlir_file: MlirFile) -> None:
    """file:line:column, the line, a caret under the place, and the version that is read."""
    path = mlir_file("func.func @f(%a: f32) -> f32 {\n\t%b = arith.addf %a, : f32\n  return\n}\n")
    assert aotc("build", path) == Outcome(
        2,
        "",
        f"{path}:2:21: error: expected SSA operand\n"
        "  \t%b = arith.addf %a, : f32\n"
        "  \t                   ^\n"
        f"{VERSION_NOTE}",
    )


def test_text_that_does_not_verify(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file("func.func @f(%a: f32) -> i32 {\n  return %a : f32\n}\n")
    done = aotc("build", path)
    assert done.code == 2
    assert done.stderr.startswith(
        f"{path}:2:3: error: type of return operand 0 ('f32') doesn't match function result type "
        "('i32') in function @f\n    return %a : f32\n    ^\n"
    )


def test_a_dialect_that_is_not_there(aotc: Aotc, mlir_file: MlirFile) -> None:
    done = aotc("build", mlir_file('"no_such.op"() : () -> ()\n'))
    assert done.code == 2
    assert ": error: operation being parsed with an unregistered dialect." in done.stderr
    assert '  "no_such.op"() : () -> ()\n' in done.stderr


def test_the_caret_behind_characters_of_several_bytes(aotc: Aotc, mlir_file: MlirFile) -> None:
    """MLIR counts bytes; the caret stands under what a person sees."""
    path = mlir_file('func.func @f() attributes {x = "äöü€"} { nonsense }\n')
    done = aotc("build", path)
    assert done.code == 2
    line, caret = done.stderr.splitlines()[1:3]
    assert line[caret.index("^") :].startswith("nonsense")


def test_text_on_standard_input_is_called_stdin() -> None:
    done = own_process(["build", "-"], stdin=b"nonsense\n")
    assert done.code == 2
    assert done.stderr.startswith("<stdin>:1:1: error: ")
    assert "  nonsense\n  ^\n" in done.stderr


def test_a_file_that_is_neither_text_nor_bytecode(aotc: Aotc, tmp_path: Path) -> None:
    path = tmp_path / "image.mlir"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    done = aotc("build", path)
    assert done.code == 2
    assert done.stderr.startswith(
        f"aotc: error: {path} is neither MLIR text (UTF-8) nor MLIR bytecode: "
    )


def test_bytecode_that_does_not_parse(aotc: Aotc, tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_bytes(b"ML\xefR\x0dbroken")
    done = aotc("build", path)
    assert done.code == 2
    assert "error: " in done.stderr
    assert done.stderr.endswith(VERSION_NOTE.replace("text format", "bytecode of most dialects"))


def test_a_file_that_is_not_there(aotc: Aotc, tmp_path: Path) -> None:
    path = tmp_path / "missing.mlir"
    assert aotc("build", path) == Outcome(
        2, "", f"aotc: error: Cannot read '{path}': No such file or directory.\n"
    )


def test_a_folder_as_input(aotc: Aotc, tmp_path: Path) -> None:
    assert aotc("build", tmp_path) == Outcome(
        2, "", f"aotc: error: Cannot read '{tmp_path}': it is a directory, not an .mlir file.\n"
    )


def test_nothing_to_export(aotc: Aotc, mlir_file: MlirFile) -> None:
    """Lists the functions, and says both ways to export one."""
    path = mlir_file("func.func @one() { return }\nfunc.func @two() { return }\n")
    assert aotc("build", path) == Outcome(
        2,
        "",
        f"aotc: error: Nothing to export: no function of {path} carries "
        "'llvm.emit_c_interface'.\n"
        "It has: one, two.\n"
        "Mark one (func.func @one(...) attributes {llvm.emit_c_interface}) or name one: "
        "--entry one.\n",
    )


def test_no_function_at_all(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file("func.func private @declared()\n")
    assert aotc("build", path) == Outcome(
        2, "", f"aotc: error: Nothing to export: {path} has no function.\n"
    )


def test_an_unknown_entry(aotc: Aotc) -> None:
    assert aotc("build", SAMPLES / "matmul.mlir", "--entry", "matmull") == Outcome(
        2,
        "",
        "aotc: error: No entry 'matmull'. Did you mean matmul? This module has: matmul.\n",
    )


def test_an_unknown_entry_without_a_near_name(aotc: Aotc) -> None:
    done = aotc("build", SAMPLES / "matmul.mlir", "--entry", "xyz")
    assert done == Outcome(2, "", "aotc: error: No entry 'xyz'. This module has: matmul.\n")


def test_argument_types_without_a_c_form_are_reported_together(
    aotc: Aotc, mlir_file: MlirFile
) -> None:
    """One message names every argument and result that no C program can pass."""
    path = mlir_file(
        """
func.func @f(%v: vector<4xf32>, %ok: memref<4xf32>, %u: memref<*xf32>, %w: memref<4xi24>)
    -> tensor<*xf32> attributes {llvm.emit_c_interface} {
  %t = tensor.empty() : tensor<4xf32>
  %r = tensor.cast %t : tensor<4xf32> to tensor<*xf32>
  return %r : tensor<*xf32>
}
func.func @g(%m: memref<4x4xf32, affine_map<(i, j) -> (i mod 2, j)>>, %p: tensor<5x!llvm.ptr>)
    attributes {llvm.emit_c_interface} {
  return
}
"""
    )
    done = aotc("build", path)
    assert done.code == 2
    accepted = (
        "An entry takes and returns integers of 1, 8, 16, 32 and 64 bits, index, f16, bf16, f32, "
        "f64, complex of f32 and f64, and ranked memrefs and tensors of them."
    )
    # Each is followed by its line and a caret.
    places, problems = [], []
    for line in done.stderr.splitlines()[::3]:
        place, _, problem = line.removeprefix(f"{path}:").partition(": error: ")
        places.append(place)
        problems.append(problem)
    assert places == ["2:14", "2:53", "2:72", "2:1", "8:14", "8:71"]
    assert problems[:2] == [
        "The argument 'v' of 'f' has the type vector<4xf32>, which has no C form. " + accepted,
        "The argument 'u' of 'f' has the type memref<*xf32>, which has no C form. " + accepted,
    ]
    assert problems[2].startswith(
        "The argument 'w' of 'f' has the type memref<4xi24>, whose element type i24 has no C form."
    )
    assert problems[3] == (
        "The result 0 of 'f' has the type tensor<*xf32>, which has no C form. " + accepted
    )
    assert problems[4].startswith("The argument 'm' of 'g' has the type memref<4x4xf32, ")
    assert problems[4].endswith(
        "whose layout is not strided: it has no C form. "
        "Write a permuted layout as strides: memref<5x7xf32, strided<[1, 5]>>."
    )
    assert problems[5].startswith(
        "The argument 'p' of 'g' has the type tensor<5x!llvm.ptr>, whose element type !llvm.ptr has"
    )


def test_an_entry_that_is_lowered_already(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(
        "llvm.func @f(%a: !llvm.ptr) attributes {llvm.emit_c_interface} {\n  llvm.return\n}\n"
    )
    assert aotc("build", path) == Outcome(
        2,
        "",
        f"{path}:1:1: error: Entry 'f' is an llvm.func: its argument types are already lowered, "
        "and --emit exe tells them. Give aotc the module before convert-func-to-llvm; or take it "
        "as it is with --emit obj.\n",
    )


def test_a_main_that_no_c_program_can_start(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    path = mlir_file("func.func @main(%n: f32) -> f32 {\n  return %n : f32\n}\n")
    assert aotc("build", path, "-o", tmp_path / "program") == Outcome(
        2,
        "",
        f"aotc: error: {path}:1:1: The module's main has the type (f32) -> (f32), which no C "
        "program can start. It may take nothing or (i32, !llvm.ptr), and return nothing or one of "
        "i1, i8, i16, i32, i64, index; or carry 'llvm.emit_c_interface' to be an entry.\n",
    )
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize(
    ("kind", "what"), [("shared", "a shared library"), ("static", "a static library")]
)
def test_a_program_makes_no_library(
    kind: str, what: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    path = mlir_file("func.func @main() {\n  return\n}\n")
    assert aotc("build", path, "--emit", kind, "-o", f"{tmp_path}/") == Outcome(
        2,
        "",
        f"aotc: error: Nothing to export: {path} has a main of its own and no entry, so it makes "
        f"an executable, not {what}.\n",
    )


GENERIC = """
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = [KINDS]}
      outs(%x : memref<4xf32>) {
  ^bb0(%y: f32):
    linalg.yield %y : f32
  }
"""
CONTRACT = """
  %v = vector.contract {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
    iterator_types = [KINDS], kind = #vector.kind<add>
  } %a, %a, %c : vector<4xf32>, vector<4xf32> into f32
"""


@pytest.mark.parametrize("operation", [GENERIC, CONTRACT], ids=["generic", "contract"])
@pytest.mark.parametrize("kinds", ['["parallel"], "parallel"', '"parallel", 3', "f32"])
def test_iterators_that_are_no_strings(
    operation: str, kinds: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """MLIR's parser would crash, or want all of the memory."""
    text = "func.func @f(%x: memref<4xf32>, %a: vector<4xf32>, %c: f32)"
    text += " attributes {llvm.emit_c_interface} {" + operation + "  return\n}\n"
    path = mlir_file(text.replace("KINDS", kinds))
    done = aotc("build", path, "--emit", "mlir", "-o", tmp_path / "out")
    assert (done.code, done.stdout) == (2, "")
    assert "the MLIR parser cannot read this" in done.stderr


@pytest.mark.parametrize("name", ["sysconf", "malloc", "sin"])
def test_an_entry_called_like_a_c_function(
    name: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """The library would call it, or its header could not be compiled; with a prefix it can be."""
    path = mlir_file(
        f"func.func @{name}(%x: f32) attributes {{llvm.emit_c_interface}} {{ return }}"
    )
    done = aotc("build", path, "--emit", "static", "-o", f"{tmp_path}/")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"aotc: error: The C function of entry '{name}' would be called")
    aotc("build", path, "-o", tmp_path / "program").succeeded()
    assert "--prefix my_" in done.stderr
    aotc("build", path, "--emit", "static", "--prefix", "my_", "-o", f"{tmp_path}/").succeeded()


def test_an_entry_called_main(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """Front ends call their one function so: it can be a program's entry, or have a prefix."""
    path = mlir_file("func.func @main(%x: f32) attributes {llvm.emit_c_interface} { return }")
    done = aotc("build", path, "--emit", "static", "-o", f"{tmp_path}/")
    assert (done.code, done.stdout) == (2, "")
    assert "cannot be called 'main': programs begin with one" in done.stderr
    assert "--prefix my_" in done.stderr
    aotc("build", path, "-o", tmp_path / "program").succeeded()
    aotc("build", path, "--emit", "static", "--prefix", "my_", "-o", f"{tmp_path}/").succeeded()


def test_a_library_called_aotc(aotc: Aotc, tmp_path: Path) -> None:
    path = tmp_path / "aotc.mlir"
    path.write_text("func.func @f() attributes {llvm.emit_c_interface} { return }")
    done = aotc("build", path, "--emit", "header", "-o", f"{tmp_path}/out/")
    assert (done.code, done.stdout) == (2, "")
    assert "cannot begin with 'aotc_'" in done.stderr


@pytest.mark.parametrize("kind", ["static", "shared", "header"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("main", "cannot be called 'main'"),
        ("_init", "cannot be called '_init'"),
        ("mgpuModuleLoad", "begins with 'mgpu'"),
    ],
)
def test_names_are_refused_before_they_are_compiled(
    name: str, said: str, kind: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """What a C compiler or a linker would refuse is the input's fault."""
    path = mlir_file(
        f"func.func @{name}(%x: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{ return }}"
    )
    done = aotc("build", path, "--emit", kind, "-o", f"{tmp_path}/")
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr


def test_an_entry_called_like_a_macro(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """Compilers have macros among the names that C keeps for them."""
    path = mlir_file(
        "func.func @__linux__(%x: f32) attributes {llvm.emit_c_interface} { return }", "named.mlir"
    )
    aotc("build", path, "--emit", "shared,header", "-o", f"{tmp_path}/out/").succeeded()
    header = next((tmp_path / "out").rglob("named.h")).read_text()
    assert " __linux___(float x_);" in header


@pytest.mark.parametrize("kind", ["ptx", "cubin", "device-ll"])
def test_device_code_of_a_module_without_kernels(
    kind: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    path = mlir_file("func.func @f() attributes {llvm.emit_c_interface} {\n  return\n}\n")
    assert aotc("build", path, "--emit", kind, "-o", f"{tmp_path}/") == Outcome(
        2, "", f"aotc: error: Nothing to emit for {kind}: {path} has no kernel.\n"
    )


# --- What aotc itself cannot do --------------------------------------------------------


def test_files_that_are_not_read(aotc: Aotc, mlir_file: MlirFile) -> None:
    """MLIR lets any type name a file: others than a pointer would be taken for one."""
    path = mlir_file(
        """#rows = #sparse_tensor.encoding<{ map = (i) -> (i : compressed) }>
func.func @f(%a: memref<8xf32>) -> index attributes {llvm.emit_c_interface} {
  %s = sparse_tensor.new %a : memref<8xf32> to tensor<8xf32, #rows>
  %n = sparse_tensor.number_of_entries %s : tensor<8xf32, #rows>
  return %n : index
}
"""
    )
    done = aotc("build", path, "--emit", "obj", "-o", f"{path.parent}/")
    assert done.code == 2
    assert done.stderr.startswith(
        f"{path}:3:8: error: sparse_tensor.new is not supported here: a file is named by an "
        "!llvm.ptr to its text, not by a memref<8xf32>.\n"
    )


# What calls @f, which is the entry itself where there is none.
ENTRIES = {
    "itself": "",
    "on buffers": """
func.func @g(%a: memref<8xf32>, %x: f32) attributes {llvm.emit_c_interface} {
  call @f(%a, %x) : (memref<8xf32>, f32) -> ()
  return
}
""",
    "on tensors": """
func.func @g(%a: memref<8xf32>, %x: f32, %t: tensor<8xf32>) -> tensor<8xf32>
    attributes {llvm.emit_c_interface} {
  call @f(%a, %x) : (memref<8xf32>, f32) -> ()
  %sum = arith.addf %t, %t : tensor<8xf32>
  return %sum : tensor<8xf32>
}
""",
}


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("gpu.barrier", "gpu.barrier"),
        ("gpu.printf", 'gpu.printf "%f\\0A", %x : f32'),
        ("gpu.thread_id", "%i = gpu.thread_id x\n  memref.store %x, %a[%i] : memref<8xf32>"),
        (
            "gpu.all_reduce",
            "%y = gpu.all_reduce add %x { } : (f32) -> (f32)\n  %i = arith.constant 0 : index\n"
            "  memref.store %y, %a[%i] : memref<8xf32>",
        ),
        ("nvvm.cp.async.commit.group", "nvvm.cp.async.commit.group"),
        ("nvgpu.device_async_create_group", "%g = nvgpu.device_async_create_group"),
    ],
)
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_work_of_threads_in_host_code(
    aotc: Aotc, mlir_file: MlirFile, name: str, operation: str, entry: str
) -> None:
    """In an entry, and in what one calls, whatever else is to be lowered there."""
    path = mlir_file(
        f"func.func {'private ' if entry else ''}@f(%a: memref<8xf32>, %x: f32)"
        f"{'' if entry else ' attributes {llvm.emit_c_interface}'} {{\n"
        f"  {operation}\n  return\n}}\n{entry}"
    )
    done = aotc("build", path, "--emit", "host-mlir", "-o", "-")
    assert done.code == 2
    assert f"{path}:2:" in done.stderr
    assert f": {name} is for the threads of a kernel; here it is in host code, @f." in done.stderr


@pytest.mark.parametrize("loop", ["scf.parallel", "gpu.launch"])
def test_work_of_threads_in_what_kernels_call(aotc: Aotc, mlir_file: MlirFile, loop: str) -> None:
    """It is in no host code, though its function stands among the host's."""
    body = "func.call @id(%a) : (memref<8xindex>) -> ()"
    opened = {
        "scf.parallel": "scf.parallel (%i) = (%c0) to (%c8) step (%c1) {",
        "gpu.launch": "gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1) "
        "threads(%i, %j, %k) in (%bx = %c8, %by = %c1, %bz = %c1) {",
    }[loop]
    closed = "gpu.terminator\n  }" if loop == "gpu.launch" else "}"
    path = mlir_file(
        f"""func.func private @id(%a: memref<8xindex>) {{
  %id = gpu.thread_id x
  memref.store %id, %a[%id] : memref<8xindex>
  return
}}
func.func @f(%a: memref<8xindex>) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  {opened}
    {body}
  {closed}
  return
}}
"""
    )
    assert aotc("build", path, "--emit", "host-mlir", "-o", "-").succeeded().stderr == ""


def test_a_vector_of_bits_for_a_kernel(aotc: Aotc, mlir_file: MlirFile) -> None:
    """Upstream's lowering reads it from other bytes than it was put into: refused, where it
    cannot be made in the kernel."""
    path = mlir_file(
        """func.func private @use(%a: memref<8xi32>, %mask: vector<8xi1>) {
  affine.parallel (%i) = (0) to (8) {
    %bit = vector.extract %mask[%i] : i1 from vector<8xi1>
    %wide = arith.extui %bit : i1 to i32
    affine.store %wide, %a[%i] : memref<8xi32>
  }
  return
}
func.func @f(%a: memref<8xi32>, %n: index) attributes {llvm.emit_c_interface} {
  %mask = vector.create_mask %n : vector<8xi1>
  call @use(%a, %mask) : (memref<8xi32>, vector<8xi1>) -> ()
  return
}
"""
    )
    done = aotc("build", path, "--emit", "obj", "-o", f"{path.parent}/")
    assert done.code == 2
    assert "a kernel is given a vector<8xi1>, which is not supported" in done.stderr


def test_an_operation_that_aotc_cannot_lower(aotc: Aotc, mlir_file: MlirFile) -> None:
    """A known limit: exit 2, the operations and their places, and what to do."""
    path = mlir_file(
        """func.func @f(%a: memref<?xf32>) -> index attributes {llvm.emit_c_interface} {
  %s = shape.shape_of %a : memref<?xf32> -> tensor<?xindex>
  %n = shape.num_elements %s : tensor<?xindex> -> index
  return %n : index
}
"""
    )
    done = aotc("build", path, "--emit", "obj", "-o", f"{path.parent}/")
    assert done.code == 2
    assert done.stderr.startswith(
        "aotc: error: aotc cannot lower these operations of the host code:"
    )
    assert f"\n  {path}:3:8: shape.num_elements\n" in done.stderr
    assert done.stderr.endswith(
        "aotc: hint: Lower them first, or give the whole lowering with --pipeline.\n"
    )


def test_an_operation_of_a_kernel_that_aotc_cannot_lower(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(
        """func.func @f(%a: memref<?xindex>) attributes {llvm.emit_c_interface} {
  affine.parallel (%i) = (0) to (8) {
    %part = memref.subview %a[%i] [%i] [1]
        : memref<?xindex> to memref<?xindex, strided<[1], offset: ?>>
    %s = shape.shape_of %part
        : memref<?xindex, strided<[1], offset: ?>> -> tensor<?xindex>
    %n = shape.num_elements %s : tensor<?xindex> -> index
    affine.store %n, %a[%i] : memref<?xindex>
  }
  return
}
"""
    )
    done = aotc("build", path, "--emit", "obj", "-o", f"{path.parent}/")
    assert done.code == 2
    assert "cannot lower these operations of the kernels in 'input_kernels':" in done.stderr
    assert f"\n  {path}:7:10: shape.num_elements\n" in done.stderr


# --- --pipeline ------------------------------------------------------------------------


def test_a_pipeline_of_another_shape(aotc: Aotc, mlir_file: MlirFile) -> None:
    assert aotc("build", mlir_file(ENTRY), "--pipeline", "cse,canonicalize") == Outcome(
        2,
        "",
        "aotc: error: --pipeline expects 'builtin.module(...)', and got 'cse,canonicalize'.\n",
    )


def test_a_pipeline_with_an_unknown_pass(aotc: Aotc, mlir_file: MlirFile) -> None:
    done = aotc("build", mlir_file(ENTRY), "--pipeline", "builtin.module(cse,no-such-pass)")
    assert done.code == 2
    assert done.stderr.startswith(
        "aotc: error: Cannot parse the pass pipeline 'builtin.module(cse,no-such-pass)': "
    )
    assert "'no-such-pass' does not refer to a registered pass or pass pipeline" in done.stderr


def test_a_pipeline_whose_pass_fails(aotc: Aotc) -> None:
    """The user's pipeline, the user's error, in the pass's words and with the place."""
    path = SAMPLES / "block_sums.mlir"
    pipeline = (
        "builtin.module(gpu-kernel-outlining,nvvm-attach-target{chip=sm_80},gpu-module-to-binary)"
    )
    done = aotc("build", path, "--pipeline", pipeline)
    assert done.code == 2
    first, *rest = done.stderr.splitlines()
    assert first == "aotc: error: The pipeline given by --pipeline failed:"
    assert any(line.startswith(f"{path}:7:3: error: ") for line in rest), rest
