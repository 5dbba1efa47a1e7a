"""`-O1` is a quick build: one chip, and one kernel for each matmul and attention."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attention.problems import problem as attention_problem
from helpers.command import SAMPLES, Outcome, build_here
from matmul.contracted import convolution

from aotc.chips import LIMITS
from aotc.inspect import inspect
from aotc.kernels.attention.choice import choose as choose_attention
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.request import DEFAULT_CHIPS, Chip

MATMUL = """func.func @f(%a: memref<?x?xTYPE>, %b: memref<?x?xTYPE>, %c: memref<?x?xTYPE>)
    attributes {llvm.emit_c_interface} {
  linalg.matmul ins(%a, %b : memref<?x?xTYPE>, memref<?x?xTYPE>) outs(%c : memref<?x?xTYPE>)
  return
}"""
CHIPS = [Chip(name) for name in DEFAULT_CHIPS]


def kernels_of(source: Path, folder: Path, *options: str) -> list[Any]:
    """Those that GPUs are launched."""
    build_here(source, "--emit", "manifest", "--no-cpu-kernels", *options, "-o", f"{folder}/x.json")
    kernels = json.loads((folder / "x.json").read_text())["kernels"]
    return [kernel for kernel in kernels if kernel["built_for"]]


@pytest.mark.parametrize("element", ["f32", pytest.param("f16", marks=pytest.mark.exhaustive)])
def test_a_matmul_has_one_kernel(element: str, tmp_path: Path) -> None:
    source = tmp_path / "matmul.mlir"
    source.write_text(MATMUL.replace("TYPE", element))
    quick, full = (kernels_of(source, tmp_path, level) for level in ("-O1", "-O3"))
    assert len(quick) == 1
    assert len(full) > 1


def test_attention_has_one_kernel(tmp_path: Path) -> None:
    """Beside the loop that fills the result."""
    quick = kernels_of(SAMPLES / "attention.mlir", tmp_path, "-O1")
    full = kernels_of(SAMPLES / "attention.mlir", tmp_path, "-O3")
    assert len(full) > len(quick) == 2


def test_images_are_for_one_chip(tmp_path: Path) -> None:
    """And PTX for all others; a chip that is named stays. (Where there is a GPU, its own.)"""
    source = tmp_path / "matmul.mlir"
    source.write_text(MATMUL.replace("TYPE", "f32"))

    def chips(*options: str) -> set[str]:
        folder = tmp_path / "".join(options)
        build_here(source, "--emit", "fatbin", "--no-cpu-kernels", "-o", f"{folder}/", *options)
        return {image.chip for file in folder.iterdir() for image in inspect(file).images}

    assert len(chips("-O1")) == 2
    assert chips("-O3") >= {*DEFAULT_CHIPS, "compute_80"}
    assert chips("-O1", "--chip", "sm_86,sm_90") == {"sm_86", "sm_90"}


def test_it_is_said(aotc: Callable[..., Outcome], tmp_path: Path) -> None:
    source = tmp_path / "matmul.mlir"
    source.write_text(MATMUL.replace("TYPE", "f32"))
    emit = ("--emit", "mlir", "-o", f"{tmp_path}/x.mlir", "--explain")
    said = aotc("build", source, *emit, "-O1").succeeded().stdout
    assert "// -O1 is for trying things: code for sm_" in said
    assert "-O1: this one kernel is for all sizes and addresses" in said
    assert "-O1" not in aotc("build", source, *emit).succeeded().stdout


def test_the_one_kernel_takes_all_addresses_on_all_gpus() -> None:
    """Of every element type, of convolutions and of attention."""
    for element, accumulator in (("f16", "f32"), ("f32", "f32"), ("f64", "f64"), ("i8", "i32")):
        matrix = Matrix("memref<?x?x" + element + ">", element, (None, None), None, 16)
        problem = Problem(matrix, matrix, matrix, accumulator)
        (choice,) = choose(problem, CHIPS, one_variant=True)
        assert choice.problem.a.alignment == ELEMENT_BYTES[element]
        assert (choice.target, choice.least_tiles, choice.most_tiles) == ("gpu", 0, 0)
    problem = convolution("c", (8, 64, 56, 56), (64, 3, 3), layout="nhwc", element="f16").problem
    assert problem is not None
    (choice,) = choose(problem, CHIPS, one_variant=True)
    least = min(LIMITS[one].block_shared for one in LIMITS)
    assert choice.family.shared_bytes(choice.problem, choice.variant) <= least
    (attention,) = choose_attention(attention_problem(), CHIPS, one_variant=True)
    assert len(attention.variants) == 1
    assert attention.problem.q.alignment < 16
