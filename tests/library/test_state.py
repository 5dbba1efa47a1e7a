"""State: what entries remember from call to call, through `aotc.load`, on the CPU device."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from helpers.command import REPOSITORY
from jsonschema import Draft202012Validator

import aotc

# An entry for each type, which exchanges its field with an argument; and others.
TYPES = {
    # By name: the type of the initial value, NumPy's, the initial value in MLIR, and as a number.
    "i1": ("i1", np.bool_, "true", True),
    "i8": ("i8", np.int8, "-5", -5),
    "u8": ("ui8", np.uint8, "250", 250),
    "i16": ("i16", np.int16, "-300", -300),
    "i32": ("i32", np.int32, "70000", 70000),
    "i64": ("i64", np.int64, "-9000000000", -9000000000),
    "f16": ("f16", np.float16, "1.5", 1.5),
    "bf16": ("ui16", ml_dtypes.bfloat16, "0xC020", -2.5),
    "f32": ("f32", np.float32, "0x7FC00000", np.nan),
    "f64": ("f64", np.float64, "0xFFF0000000000000", -np.inf),
}
TYPE = {"ui8": "i8", "ui16": "bf16"}
EXCHANGE = """\
func.func @exchange_{name}(%x: tensor<3x{type}>,
    %f: tensor<3x{type}> {{aotc.state = "f.{name}", aotc.initial = dense<{word}> : tensor<3x{of}>}})
    -> (tensor<3x{type}> {{aotc.into = 0}}, tensor<3x{type}> {{aotc.into = 1}})
    attributes {{llvm.emit_c_interface}} {{
  return %f, %x : tensor<3x{type}>, tensor<3x{type}>
}}
"""
OTHERS = """\
func.func @look(%all: memref<2x4xf32> {aotc.state = "all",
    aotc.initial = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>},
    %y: memref<2x4xf32>) attributes {llvm.emit_c_interface} {
  memref.copy %all, %y : memref<2x4xf32> to memref<2x4xf32>
  return
}
func.func @bits(%b: memref<3xi1> {aotc.state = "bits",
    aotc.initial = dense<[true, false, true]> : tensor<3xi1>}, %f: memref<2xf8E5M2>
    {aotc.state = "f8", aotc.initial = dense<0x3E> : tensor<2xui8>}, %c: memref<2xcomplex<f32>>
    {aotc.state = "complex"}) attributes {llvm.emit_c_interface} {
  return
}
func.func @sum(%x: tensor<?xf32>, %s: tensor<f32> {aotc.state = "s"},
    %none: tensor<0x3xf32> {aotc.state = "none"}) -> (tensor<f32> {aotc.into = 1})
    attributes {llvm.emit_c_interface} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
      iterator_types = ["reduction"]} ins(%x : tensor<?xf32>) outs(%s : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
"""
BIG = 40_000  # elements, more bytes than stay in text


def _text() -> str:
    big = np.arange(BIG, dtype=np.float32)
    digits = big.tobytes().hex().upper()
    return (
        "".join(
            EXCHANGE.format(name=name, type=TYPE.get(of, of), of=of, word=word)
            for name, (of, _, word, _) in TYPES.items()
        )
        + OTHERS
        + f"""\
func.func @big(%f: tensor<{BIG}xf32> {{aotc.state = "big",
    aotc.initial = dense<"0x{digits}"> : tensor<{BIG}xf32>}}, %x: tensor<{BIG}xf32>)
    -> (tensor<{BIG}xf32> {{aotc.into = 0}}) attributes {{llvm.emit_c_interface}} {{
  return %x : tensor<{BIG}xf32>
}}
"""
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    out = tmp_path_factory.mktemp("state")
    artifact = aotc.build(_text(), emit="shared", out=f"{out}/", name="state", chips="sm_80")
    library = aotc.load(artifact)
    library.set_device("cpu")
    return library


@pytest.mark.parametrize("name", TYPES)
def test_types(name: str, library: aotc.Library) -> None:
    _, dtype, _, initial = TYPES[name]
    one, two = library.state(), library.state()
    x = np.array([0, 1, 1]).astype(dtype)
    given = x.copy()
    library[f"exchange_{name}"](x, state=one)
    np.testing.assert_array_equal(x, np.full(3, initial, dtype))
    np.testing.assert_array_equal(one.read(f"f.{name}").view(dtype), given)
    np.testing.assert_array_equal(two.read(f"f.{name}").view(dtype), np.full(3, initial, dtype))
    if name != "bf16":  # NumPy has its bits
        assert one.read(f"f.{name}").dtype == dtype


def test_what_fields_begin_with(library: aotc.Library) -> None:
    state = library.state()
    y = np.zeros((2, 4), np.float32)
    library.look(y, state=state)
    np.testing.assert_array_equal(y, np.arange(1, 9, dtype=np.float32).reshape(2, 4))
    np.testing.assert_array_equal(state.read("big"), np.arange(BIG, dtype=np.float32))
    np.testing.assert_array_equal(state.read("bits"), [True, False, True])
    np.testing.assert_array_equal(state.read("f8"), np.full(2, 0x3E, np.uint8))
    np.testing.assert_array_equal(state.read("complex"), np.zeros(2, np.complex64))
    library.big(np.zeros(BIG, np.float32), state=state)
    assert not state.read("big").any()
    state.truncate("big", 0, 3)
    np.testing.assert_array_equal(state.read("big")[:4], [0, 0, 0, 3])
    state.reset()
    np.testing.assert_array_equal(state.read("big"), np.arange(BIG, dtype=np.float32))


def test_rank_0_and_no_elements(library: aotc.Library) -> None:
    one, two = library.state(), library.state()
    for i in range(3):
        library.sum(np.ones(5, np.float32), state=one)
        assert one.read("s") == 5 * (i + 1)
    library.sum(np.empty(0, np.float32), state=one)
    assert one.read("s") == 15
    assert two.read("s") == 0
    assert one.read("none").shape == (0, 3)
    one.write("none", np.empty((0, 3), np.float32))
    one.truncate("none", 1, 0)


def test_copies_and_files(library: aotc.Library, tmp_path: Path) -> None:
    state = library.state()
    state.write("s", np.float32(9))
    state.write("all", np.zeros((2, 4), np.float32))
    copy = state.copy()
    state.reset()
    assert (state.read("s"), copy.read("s")) == (0, 9)
    copy.save(tmp_path / "saved")
    state.load(tmp_path / "saved")
    for name in state.fields:
        np.testing.assert_array_equal(state.read(name), copy.read(name))
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_what_is_refused(library: aotc.Library, tmp_path: Path) -> None:
    state = library.state()
    with pytest.raises(aotc.InputError, match=r"sum takes a state of its library: give state="):
        library.sum(np.ones(3, np.float32))
    with pytest.raises(aotc.InputError, match="takes a state of its library"):
        library.sum(np.ones(3, np.float32), state="none")
    with pytest.raises(aotc.InputError, match=r"The state has no field 'x': f\.i1, "):
        state.read("x")
    with pytest.raises(aotc.InputError, match=r"'s' takes a contiguous array of f32 of shape \(\)"):
        state.write("s", np.zeros(1, np.float32))
    with pytest.raises(aotc.InputError, match="and was given one of f64"):
        state.write("s", np.zeros((), np.float64))
    with pytest.raises(aotc.InputError, match="which is not contiguous"):
        state.write("all", np.zeros((4, 2), np.float32).T)
    with pytest.raises(aotc.LibraryError, match="dimension 1 cannot be cut to 5 of 4 elements"):
        state.truncate("all", 1, 5)
    (tmp_path / "bad").write_bytes(b"no state" * 10)
    with pytest.raises(aotc.LibraryError, match="it is no state that aotc's libraries save"):
        state.load(tmp_path / "bad")
    assert state.read("s") == 0


def test_the_manifest(library: aotc.Library) -> None:
    schema = json.loads((REPOSITORY / "docs" / "manifest.schema.json").read_text())
    content = json.loads(library.manifest.to_json())
    Draft202012Validator(schema).validate(content)
    fields = {field["name"]: field for field in content["state"]}
    assert fields["f.u8"] == {
        "name": "f.u8",
        "type": "memref<3xi8>",
        "dtype": "u8",
        "shape": [3],
        "memory": "device",
        "initial": "fa",
    }
    assert fields["all"]["initial"] is None
    assert fields["s"]["initial"] == "00000000"
    assert content["functions"]["state_create"] == "state_state_create"
    entries = {entry["name"]: entry for entry in content["entries"]}
    assert entries["look"]["state"] == "state_state"
    assert entries["look"]["arguments"][0]["state"] == "all"


@pytest.mark.parametrize(
    ("arguments", "results", "message"),
    [
        ("%a: tensor<4xf32> {aotc.state = 3}", "", "must be a string, the name of a field"),
        ('%a: tensor<4xf32> {aotc.state = ""}', "", "must be a string, the name of a field"),
        ('%a: f32 {aotc.state = "a"}', "", "has the type f32; it must be a tensor"),
        ('%a: tensor<?xf32> {aotc.state = "a"}', "", "of known shape"),
        (
            '%a: tensor<4xf32> {aotc.state = "a"}, %b: tensor<4xf32> {aotc.state = "a"}',
            "",
            "Two arguments of this function are the field 'a'",
        ),
        ("%a: tensor<4xf32> {aotc.initial = dense<0.0> : tensor<4xf32>}", "", "but no aotc.state"),
        (
            '%a: tensor<4xf32> {aotc.state = "a", aotc.initial = dense<0.0> : tensor<3xf32>}',
            "",
            "must be a dense constant of its shape and element type, memref<4xf32>",
        ),
        (
            '%a: tensor<4xf32> {aotc.state = "a", aotc.initial = 1.0 : f32}',
            "",
            "must be a dense constant",
        ),
        (
            '%a: tensor<2xbf16> {aotc.state = "a", aotc.initial = dense<[1.0, 2.0]> : '
            "tensor<2xbf16>}",
            "",
            "Of bf16, give the bits: ui16",
        ),
        ("%a: tensor<4xf32>", "tensor<4xf32> {aotc.into = 1}", "must be the number of an"),
        ("%a: tensor<4xf32>", "tensor<4xf32> {aotc.into = true}", "must be the number of an"),
        (
            "%a: tensor<4xf32>, %b: tensor<2xf32>",
            "tensor<4xf32> {aotc.into = 1}",
            "both must be tensors of one type",
        ),
    ],
)
def test_attributes_that_make_no_sense(arguments: str, results: str, message: str) -> None:
    returned = "return %a : tensor<4xf32>" if results else "return"
    text = f"""\
func.func @f({arguments}) {f"-> ({results})" if results else ""}
    attributes {{llvm.emit_c_interface}} {{
  {returned}
}}
"""
    with pytest.raises(aotc.InputError, match="(?s)" + message):
        aotc.build(text, emit="manifest", out="-f", name="f", chips="sm_80")


def test_fields_of_two_entries(tmp_path: Path) -> None:
    entry = """\
func.func @{name}(%a: tensor<{type}> {{aotc.state = "a", aotc.initial = dense<{word}> :
    tensor<{type}>}}) attributes {{llvm.emit_c_interface}} {{
  return
}}
"""

    def build(*others: tuple[str, str]) -> aotc.Artifact:
        text = "".join(
            entry.format(name=f"f{i}", type=type_, word=word)
            for i, (type_, word) in enumerate([("4xf32", "1.0"), *others])
        )
        return aotc.build(text, emit="manifest", out=tmp_path / "f.json", name="f", chips="sm_80")

    manifest = build(("4xf32", "1.0")).manifest
    assert manifest is not None
    assert len(manifest.state) == 1
    with pytest.raises(aotc.InputError, match="has the type memref<5xf32> here, and memref<4xf32>"):
        build(("5xf32", "1.0"))
    with pytest.raises(aotc.InputError, match=r"'a' has another .* in another entry"):
        build(("4xf32", "2.0"))


SWAP = """\
func.func @swap(%a: tensor<3xf32> {aotc.state = "a", aotc.initial = dense<2.0> : tensor<3xf32>},
    %b: tensor<3xf32>) -> (tensor<3xf32> {aotc.into = 1}, tensor<3xf32> {aotc.into = 0})
    attributes {llvm.emit_c_interface} {
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}
"""


def test_an_executable(tmp_path: Path) -> None:
    """Each call begins with the initial values, and the first is reported."""
    artifact = aotc.build(SWAP, emit="exe", out=tmp_path / "swap", name="swap", chips="sm_80")
    words = [artifact.path, "--b", "5", "--repeat", "2", "--device", "cpu", "--json"]
    done = subprocess.run([*words, "--print", "a", "--print", "b"], capture_output=True, check=True)
    results = {one["name"]: one["values"] for one in json.loads(done.stdout)["results"]}
    assert results == {"a": [5, 5, 5], "b": [2, 2, 2]}
    given = subprocess.run([*words, "--a", "7", "--print", "b"], capture_output=True, check=True)
    assert json.loads(given.stdout)["results"][1]["values"] == [7, 7, 7]
    refused = subprocess.run(
        [artifact.path, "--b", "initial"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "only state has initial values" in refused.stderr


def test_a_pipeline_that_does_not_write(tmp_path: Path) -> None:
    pipeline = "builtin.module(one-shot-bufferize{bufferize-function-boundaries})"
    with pytest.raises(aotc.InputError, match="put aotc-write-into-arguments behind"):
        aotc.build(SWAP, emit="mlir", out=tmp_path / "x.mlir", name="swap", pipeline=pipeline)


def test_an_entry_that_is_called(tmp_path: Path) -> None:
    text = """\
func.func @again(%n: i32, %a: tensor<3xf32>) -> (tensor<3xf32> {aotc.into = 1})
    attributes {llvm.emit_c_interface} {
  %r = func.call @again(%n, %a) : (i32, tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""
    with pytest.raises(aotc.InputError, match="'again' writes into its arguments"):
        aotc.build(text, emit="mlir", out=tmp_path / "x.mlir", name="again", chips="sm_80")
