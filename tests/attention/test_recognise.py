"""Which modules have attention that becomes one kernel, and which have something like it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from attention.written import ALL_SEEN, CAUSAL, attention, multiplied
from helpers.command import Outcome

Aotc = Callable[..., Outcome]

INPUTS = Path(__file__).parent / "inputs"
STRICTLY_CAUSAL = CAUSAL.replace("ule", "ult")
BACKWARDS = CAUSAL.replace("%key, %query", "%query, %key")
TURNED = CAUSAL.replace("ule, %key, %query", "uge, %query, %key")
HIDDEN = CAUSAL.replace("ule", "ugt").replace("%scaled, %least", "%least, %scaled")
LARGE = CAUSAL.replace("%least", "%zero")
ADDED = (
    CAUSAL.replace("%scaled, %least", "%minus_zero, %least").replace("%seen =", "%mask =")
    + """
    %seen = arith.addf %scaled, %mask : f32"""
)

# What was -infinity is infinity.
NEGATED = (
    CAUSAL.replace("%seen =", "%hidden =")
    + """
    %minus_one = arith.constant -1.0 : f32
    %seen = arith.mulf %hidden, %minus_one : f32"""
)

# Sums and softmax are of f64, between tensors of f32.
IN_F64 = attention().replace("f32", "f64").replace("f16", "f32").replace(
    "0xFF800000", "0xFFF0000000000000"
)  # fmt: skip


def said(text: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path, chip: str) -> str:
    """What --explain says of attention."""
    out = f"{tmp_path / 'out'}/"
    path = mlir_file(text)
    done = aotc("build", path, "--chip", chip, "--emit", "mlir", "--explain", "-o", out).succeeded()
    found = re.findall(r": ((?:causal )?attention.*: one kernel.*)", done.stderr + done.stdout)
    return "\n".join(found)


# One number, of a tensor without dimensions, in place of a mask.
ADDED_NUMBER = (
    attention()
    .replace("(%q:", "(%number: tensor<f32>, %q:", 1)
    .replace("ins(%masked :", "ins(%moved :")
    .replace(
        "  %weights =",
        """  %moved = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> ()>,
        affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%masked, %number : tensor<2x70x131xf32>, tensor<f32>)
      outs(%empty : tensor<2x70x131xf32>) {
  ^bb0(%score: f32, %one: f32, %out: f32):
    %sum = arith.addf %score, %one : f32
    linalg.yield %sum : f32
  } -> tensor<2x70x131xf32>
  %weights =""",
    )
)


def replaced(value: float, element: str) -> str:
    """Scores that are `value` of the type `element` where a tensor says so, and f32 behind that."""
    wide, score, number = "", "%score", "%number"
    chosen = "arith.addf %chosen, %minus_zero : f32"
    if element == "f64":
        wide, score, number = "    %wide = arith.extf %score : f32 to f64\n", "%wide", "%value"
        chosen = "arith.truncf %chosen : f64 to f32"
    return (
        attention()
        .replace("(%q:", "(%hidden: tensor<70x131xi1>, %q:", 1)
        .replace("ins(%masked :", "ins(%moved :")
        .replace(
            "  %weights =",
            f"""  %value = arith.constant {value:.1e} : f64
  %moved = linalg.generic {{
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (i, j)>,
        affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%masked, %hidden : tensor<2x70x131xf32>, tensor<70x131xi1>)
      outs(%empty : tensor<2x70x131xf32>) {{
  ^bb0(%score: f32, %is_hidden: i1, %out: f32):
    %number = arith.truncf %value : f64 to f32
{wide}    %chosen = arith.select %is_hidden, {number}, {score} : {element}
    %found = {chosen}
    linalg.yield %found : f32
  }} -> tensor<2x70x131xf32>
  %weights =""",
        )
    )


@pytest.mark.parametrize(
    ("why", "text", "what"),
    [
        ("scores are replaced", replaced(-1e9, "f32"), "attention with a mask:"),
        ("they are so in f64", replaced(-1e9, "f64"), "attention with a mask:"),
        ("all keys are seen", attention(), "attention:"),
        ("in bf16", attention(element="bf16"), "attention:"),
        ("in f32", attention(element="f32", mask=CAUSAL), "causal attention:"),
        ("of sizes that are not known", attention(None, None, None), "attention:"),
        ("a sum with nothing", attention(mask=ALL_SEEN), "attention:"),
        ("causal", attention(mask=CAUSAL), "causal attention:"),
        ("the other way round", attention(mask=TURNED), "causal attention:"),
        ("what is hidden is selected", attention(mask=HIDDEN), "causal attention:"),
        ("a mask is added", attention(mask=ADDED), "causal attention:"),
        ("96 columns", attention(head_dim=96), "attention:"),
        ("40 columns", attention(head_dim=40), "attention:"),
        ("scores times a number of each head", multiplied(element="f32"), "attention:"),
        ("scores times one number", multiplied(factor="", element="f32"), "attention:"),
        (
            "scores times a number of each query",
            multiplied(factor="i", element="f32"),
            "attention:",
        ),
    ],
)
def test_what_is_found(
    why: str, text: str, what: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    assert said(text, aotc, mlir_file, tmp_path, "sm_90a").startswith(what), why


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("pytorch", "attention:"),
        ("pytorch_causal", "causal attention:"),
        ("pytorch_by_hand", "attention:"),
        ("pytorch_masked_by_hand", "causal attention:"),
        ("pytorch_mask", "attention with a mask:"),
        ("pytorch_windows", "attention with a mask of heads in rows:"),
        ("pytorch_heads_in_rows", "causal attention of heads in rows:"),
        ("pytorch_heads_in_rows_of_one", "causal attention of heads in rows:"),
        ("pytorch_heads_in_rows_of_any_batch", "causal attention of heads in rows:"),
        ("pytorch_heads_in_rows_of_any_size", "causal attention of heads in rows:"),
        ("pytorch_rows_first_of_any_batch", "attention of heads in rows:"),
        ("pytorch_heads_apart", "attention of heads in rows:"),
        ("one_head_apart", "attention:"),
        ("mask_on_a_diagonal", "attention with a mask:"),
        ("no_batch", "attention:"),
        ("batch_and_heads", "attention:"),
    ],
)
def test_what_comes_in_other_forms_is_found(
    name: str, what: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    text = (INPUTS / f"{name}.mlir").read_text()
    assert said(text, aotc, mlir_file, tmp_path, "sm_90a").startswith(what)


@pytest.mark.parametrize(
    "name",
    [
        "pytorch_heads_in_rows",
        "pytorch_heads_in_rows_of_one",
        "pytorch_heads_in_rows_of_any_batch",
        "pytorch_rows_first",
    ],
)
def test_heads_are_read_and_written_where_they_are(
    name: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """The kernel is all that is launched: nothing is transposed in front of it, or behind."""
    text = (INPUTS / f"{name}.mlir").read_text()
    out = tmp_path / "out.mlir"
    command = ("build", mlir_file(text), "--chip", "sm_90a", "--emit", "mlir", "-o", out)
    aotc(*command).succeeded()
    entry = out.read_text().partition("func.func @attention")[2].partition("\n  func.func")[0]
    before, then = entry.split("scf.if", 1)
    kernel, others = then.split("} else {", 1)
    behind = others.partition("\n    }\n")[2]
    assert [part.count("gpu.launch_func") for part in (before, kernel, behind)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("a kernel would round to f32", IN_F64),
        ("the largest score would be the least", attention(scale=-0.125)),
        ("rows would be too long", attention(head_dim=1024)),
        ("weights are of keys, over queries", attention(softmax_along=1)),
        ("the last key is hidden, too", attention(mask=STRICTLY_CAUSAL)),
        ("keys before are hidden", attention(mask=BACKWARDS)),
        ("hidden scores are 0", attention(mask=LARGE)),
        ("hidden scores are infinity", attention(mask=NEGATED, scale=-0.125)),
        ("a number is added to all scores", ADDED_NUMBER),
        ("Q would be rounded, and scores are not", multiplied()),
        ("each key has its factor", multiplied(factor="j", element="f32")),
        ("a mask is rounded first", (INPUTS / "mask_is_rounded.mlir").read_text()),
        ("what replaces scores is 0 in f32", replaced(1e-46, "f32")),
        ("what replaces scores is infinite in f32 alone", replaced(-1e300, "f64")),
        ("no softmax", attention(scores="%masked")),
        ("the weights are a result, too", (INPUTS / "pytorch_with_weights.mlir").read_text()),
    ],
)
def test_what_is_something_else(
    why: str, text: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    assert said(text, aotc, mlir_file, tmp_path, "sm_90a") == "", why


@pytest.mark.parametrize(
    ("chip", "kernels"),
    [
        (
            "sm_80",
            "attention: one kernel, mma.sync with tiles of 64x64 on GPUs, "
            "else mma.sync with tiles of 64x32 on GPUs, "
            "else blocks with tiles of 96x256 on the CPU",
        ),
        (
            "sm_75",
            "attention: one kernel, blocks with tiles of 96x256 on the CPU, else as it was written",
        ),
    ],
)
def test_other_gpus_have_what_they_can(
    chip: str, kernels: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    assert said(attention(), aotc, mlir_file, tmp_path, chip) == kernels


@pytest.mark.parametrize(
    ("why", "head_dim", "tile"),
    [("rows end within 8 bytes", 38, "96x256"), ("rows are too long", 512, "96x64")],
)
def test_the_cpu_has_a_kernel_where_gpus_have_none(
    why: str, head_dim: int, tile: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    found = said(attention(head_dim=head_dim), aotc, mlir_file, tmp_path, "sm_90a")
    expected = f"one kernel, blocks with tiles of {tile} on the CPU, else as it was written"
    assert found == f"attention: {expected}", why


@pytest.mark.parametrize("name", ["pytorch", "pytorch_causal"])
def test_nothing_is_allocated_in_front_of_kernels(
    name: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """Of a batch of 1, too, whose dimension is gone: then there is an asynchronous form."""
    out = tmp_path / "out.mlir"
    text = (INPUTS / f"{name}.mlir").read_text()
    aotc("build", mlir_file(text), "--chip", "sm_90a", "--emit", "mlir", "-o", out).succeeded()
    entry = out.read_text().partition("func.func @attention")[2].partition("\n  func.func")[0]
    assert entry
    assert "alloc" not in entry.partition("scf.if")[0]
