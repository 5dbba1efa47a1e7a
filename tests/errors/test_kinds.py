"""What is no MLIR, or not one module of it: the message says what it looks like."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
def test_an_empty_file(text: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(text)
    assert aotc("build", path) == Outcome(2, "", f"aotc: error: {path} is empty.\n")


@pytest.mark.parametrize(
    ("data", "what", "hint"),
    [
        (gzip.compress(b"module {}", mtime=0), "gzip data", "unpack it first"),
        (b"\x7fELF\x02\x01\x01", "an ELF file (an object, ", "aotc makes such files"),
        (b"\x50\xed\x55\xba\x01\x00", "a CUDA fatbin", "aotc makes such files"),
        (b"BC\xc0\xde\x35\x14", "LLVM bitcode", "mlir-translate --import-llvm"),
        ("module {}".encode("utf-16"), "UTF-16 text", "save it as UTF-8."),
    ],
)
def test_files_that_are_not_text(
    data: bytes, what: str, hint: str, aotc: Aotc, tmp_path: Path
) -> None:
    path = tmp_path / "input.mlir"
    path.write_bytes(data)
    done = aotc("build", path)
    assert done.code == 2
    error, said = done.stderr.splitlines()
    assert error.startswith(f"aotc: error: {path} is {what}")
    assert said.startswith(f"aotc: hint: {hint}")


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("; ModuleID = 'x'\ndefine void @f() {\n  ret void\n}\n", "LLVM IR", "give aotc the MLIR"),
        ("\ndefine i32 @main() {\n  ret i32 0\n}\n", "LLVM IR", "give aotc the MLIR"),
        ("//\n.version 8.0\n.target sm_90\n", "PTX", "give aotc the MLIR"),
        ("#include <stdio.h>\nint main(void) { return 0; }\n", "C, C++ or CUDA", "that is for"),
        ("__global__ void k(float *x) {}\n", "C, C++ or CUDA", "that is for"),
        ("import torch\n\ndef f(x):\n  return x\n", "Python", "run it"),
        ("from mlir import ir\n", "Python", "run it"),
        (
            "def multiply(a, b) {\n  return transpose(a) * transpose(b);\n}\n",
            "the Toy tutorial's language",
            "samples/toy is a front end",
        ),
        ("HloModule m\nENTRY e { ROOT p = f32[8] parameter(0) }\n", "XLA's HLO text", "jax.export"),
        (
            "var a<2, 3> = [1, 2, 3, 4, 5, 6];\n",
            "the Toy tutorial's language",
            "samples/toy is a front end",
        ),
        ('{"name": "x"}\n', "JSON", "aotc reads MLIR."),
        ("version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer", "git lfs pull"),
        ("<!DOCTYPE html>\n<html></html>\n", "a web page", "download"),
    ],
)
def test_text_of_other_languages(
    text: str, what: str, hint: str, aotc: Aotc, mlir_file: MlirFile
) -> None:
    """Named, with MLIR's own words behind it, and what to do."""
    path = mlir_file(text)
    done = aotc("build", path)
    assert done.code == 2
    lines = done.stderr.splitlines()
    assert lines[0] == f"aotc: error: {path} looks like {what}, not MLIR."
    assert lines[1].startswith(f"{path}:")
    assert lines[-1].startswith(f"aotc: hint: {hint}")


def test_text_behind_a_byte_order_mark(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """Some editors put one there."""
    path = mlir_file("\ufefffunc.func @f() attributes {llvm.emit_c_interface} { return }\n")
    aotc("build", path, "--emit", "host-mlir", "-o", tmp_path / "out.mlir").succeeded()


def test_several_modules_in_one_file(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file("func.func private @f()\n// -----\nfunc.func private @f()\n")
    done = aotc("build", path)
    assert done.code == 2
    assert done.stderr.endswith(
        "aotc: hint: the file holds several modules, for -split-input-file: give aotc one of "
        "them.\n"
    )


def test_text_that_the_parser_gives_up_on(aotc: Aotc, mlir_file: MlirFile) -> None:
    """The bindings run out of memory over an attribute in place of a string."""
    path = mlir_file(
        "func.func @f(%m: memref<8xf32>) {\n"
        "  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],\n"
        "    iterator_types = [#linalg.iterator_type<parallel>]} outs(%m : memref<8xf32>) {\n"
        "  ^bb0(%x: f32):\n    linalg.yield %x : f32\n  }\n  return\n}\n"
    )
    done = aotc("build", path)
    assert done.code == 2
    assert "Traceback" not in done.stderr
    assert "aotc: hint: In linalg.generic the iterator types are words in quotes:" in done.stderr


def test_a_name_of_any_length_in_bytecode(aotc: Aotc, tmp_path: Path) -> None:
    """A damaged file may have no end of it: as much is shown as anybody reads."""
    path = tmp_path / "newer.mlirbc"
    path.write_bytes(b"ML\xefR" + bytes([99 << 1 | 1]) + b"MLIR\n" * 4000)
    done = aotc("build", path)
    assert done.code == 2
    assert len(done.stderr) < 800
    assert "it was written by MLIR?MLIR?" in done.stderr


def test_bytecode_of_a_newer_mlir(aotc: Aotc, tmp_path: Path) -> None:
    """Who wrote it, and how to write what is read here."""
    path = tmp_path / "newer.mlirbc"
    path.write_bytes(b"ML\xefR" + bytes([99 << 1 | 1]) + b"MLIR99.1.0\0\x01")
    done = aotc("build", path)
    assert done.code == 2
    assert "error: bytecode version 99 is newer than the current version " in done.stderr
    hint = done.stderr.splitlines()[-1]
    assert hint.startswith("aotc: hint: it was written by MLIR99.1.0. ")
    assert re.search(r"--emit-bytecode-version=\d+; or give aotc the text\.$", hint)


def test_a_part_of_a_long_line_is_shown(aotc: Aotc, mlir_file: Callable[..., Path]) -> None:
    """With the caret under its place, for each of several errors."""
    line = "func.func private @f() " * 300 + "func.func @f("
    done = aotc("build", mlir_file(line))
    assert done.code == 2
    assert max(map(len, done.stderr.splitlines())) < 200
    _, shown, caret, *_ = done.stderr.splitlines()
    assert shown.startswith("  …")
    assert len(caret) <= len(shown)
