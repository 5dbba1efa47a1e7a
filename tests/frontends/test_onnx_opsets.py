"""Models of older opsets: the operators that aotc's rewrites insert are ones of the model's opset,
or the model is converted to a newer one."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import onnx
import onnx.version_converter
from frontends.onnx_nodes import check_apart, has_tensors_alone, node_tests

import aotc
from aotc.errors import InputError
from aotc.frontends.onnx.functions import kind_of, unknown_operator
from aotc.frontends.onnx.nodes import Node, opset_of, walk
from aotc.frontends.onnx.preparation import _DOMAINS, _EARLY, _SIZED, prepare
from aotc.frontends.onnx.rewrites.apply import REWRITES, rewrite
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

OLDEST, CONVERTED = 7, 17
# ONNX's tests of operators whose rewrite has newer operators than these opsets.
OLDER = [
    ("test_ai_onnx_ml_tree_ensemble_single_tree", 10),
    ("test_div_uint64", 9),
    ("test_l2normalization_axis_0", 8),
    ("test_lppool_1d_default", 7),
    ("test_quantizelinear_axis", 10),
]


@cache
def cases() -> dict[str, Any]:
    return {case.name: case for case in node_tests()}


def of_opset(model: Any, opset: int) -> Any:
    """A copy of the model that declares another opset."""
    made = copy.deepcopy(model)
    others = [(one.domain, one.version) for one in made.opset_import if one.domain]
    del made.opset_import[:]
    for domain, version in [("", opset), *others]:
        made.opset_import.add(domain=domain, version=version)
    return made


def prepared(model: Any) -> Any:
    """The model after all rewrites, those of operators that torch-mlir refuses included."""
    typed = onnx.shape_inference.infer_shapes(model)
    return prepare(copy.deepcopy(model), {kind_of(node) for node in walk(typed)})


def test_each_rewrite_has_operators_of_the_models_opset() -> None:
    """Each of ONNX's tests whose operator is rewritten, in all opsets in which it is valid."""
    rewritten = {one.operator for one in (*REWRITES, *_EARLY, *_SIZED, *chain(*_DOMAINS.values()))}
    count, wrong = 0, []
    for case in cases().values():
        operators = {node.op_type for node in case.model.graph.node}
        if not operators & rewritten or len(operators) > 1 or not has_tensors_alone(case):
            continue
        for opset in range(OLDEST, opset_of(case.model) or CONVERTED):
            model = of_opset(case.model, opset)
            try:
                onnx.checker.check_model(model, full_check=True)
            except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
                continue
            count += 1
            try:
                made = prepared(model)
            except InputError:
                made = prepared(onnx.version_converter.convert_version(model, CONVERTED))
            unknown = unknown_operator(made.graph, opset_of(made))
            if unknown is not None:
                wrong.append((case.name, opset, unknown))
    assert wrong == []
    assert count > 1000


def test_a_rewrite_with_a_newer_operator_is_refused_by_name() -> None:
    def rounded(node: Node) -> str:
        body = Body(node.opset)
        return body.end(y=body("Round", "x"))

    graph = onnx.parser.parse_graph("g (float[2] x) => (float[2] y) { y = Floor (x) }")
    one = Rewrite("Floor", "(x) => (y)", rounded)
    for opset, refused in ((10, True), (11, False)):
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
        if refused:
            with pytest.raises(InputError, match="opset 10 is computed by Round of a newer opset"):
                rewrite(model, [one])
        else:
            assert [node.operator for node in walk(rewrite(model, [one]))] == ["Round", "Identity"]


@pytest.mark.parametrize(("name", "opset"), OLDER)
def test_models_of_older_opsets_are_right(name: str, opset: int) -> None:
    case = cases()[name]
    made = check_apart(replace(case, model=of_opset(case.model, opset)))
    assert (made.kind, made.text) == ("passed", "")


# By opset: a model of operators whose meaning is another in newer ones, or whose attributes became
# inputs. The sizes of the results are not declared.
OTHER_MEANINGS = {
    9: """<ir_version: 3, opset_import: ["" : 9]>
        g (float[1,2,3,4] x, float[4] scales) => (float[n] y0, float[n] y1, float[n] y2,
                                                  float[n] y3, float[n] y4)
        <float[4] scales = {1, 1, 2, 2}> {
          h = Hardmax <axis = 2> (x)
          y0 = Reshape (h, flat)
          p, q = Split <axis = 3, split = [1, 3]> (x)
          y1 = Reshape (p, flat)
          y2 = Reshape (q, flat)
          u = Upsample <mode = "linear"> (x, scales)
          y3 = Reshape (u, flat)
          r = Pad <mode = "reflect", pads = [0, 0, 1, 2, 0, 0, 2, 3]> (x)
          y4 = Reshape (r, flat)
        }""",
    10: """<ir_version: 5, opset_import: ["" : 10]>
        g (float[1,2,3,4] x) => (float[n] y0, float[n] y1, float[n] y2)
        <float[4] scales = {1, 1, 2, 2}, float[4] thirds = {1, 1, 1, 1.5},
         float[4] parts = {1, 1, 1, 0.6}> {
          u = Resize <mode = "linear"> (x, scales)
          y0 = Reshape (u, flat)
          v = Resize <mode = "nearest"> (x, thirds)
          y1 = Reshape (v, flat)
          w = Resize <mode = "nearest"> (x, parts)
          y2 = Reshape (w, flat)
        }""",
    11: """<ir_version: 6, opset_import: ["" : 11]>
        g (float[1,2,3,4] x) => (float[n] y0, float[n] y1, float[n] y2,
                                   float[12,2] y3, float[n] y4)
        <float[0] none = {}, int64[4] larger = {1, 2, 5, 7}> {
          z = Resize <coordinate_transformation_mode = "align_corners", mode = "linear">
              (x, none, none, larger)
          y4 = Reshape (z, flat)
          h = Hardmax <axis = 2> (x)
          y0 = Reshape (h, flat)
          p, q = Split <axis = -1, split = [1, 3]> (x)
          y1 = Reshape (p, flat)
          y2 = Reshape (q, flat)
          sizes = Constant <value: tensor = int64[3] {5, 12, 2}> ()
          first, last = Split <axis = 0, split = [1, 2]> (sizes)
          y3 = Reshape (x, last)
        }""",
}
FLAT = "flat = Constant <value: tensor = int64[1] {-1}> ()"


def twice_as_large(x: np.ndarray, axis: int) -> np.ndarray:
    """Linear interpolation at 0, 0.5, 1, ...; there is nothing behind the last element."""
    size = x.shape[axis]
    places = np.arange(2 * size) // 2
    after = np.minimum(places + 1, size - 1)
    weight = np.arange(2 * size) % 2 / 2
    weight = weight.reshape([-1 if one == axis else 1 for one in range(x.ndim)])
    return x.take(places, axis) * (1 - weight) + x.take(after, axis) * weight


def expected_of(opset: int, x: np.ndarray) -> list[np.ndarray]:
    rows = x.reshape(2, 12)
    hardmax = (np.arange(12) == rows.argmax(1)[:, None]).astype(np.float32)
    parts = [hardmax, x[..., :1], x[..., 1:]]
    doubled = twice_as_large(twice_as_large(x, 2), 3)
    reflected = np.pad(x, [(0, 0), (0, 0), (1, 2), (2, 3)], mode="reflect")
    stretched = x[..., (np.arange(6) / 1.5).astype(int)]
    tall = x.reshape(12, 2)
    return {
        9: [*parts, doubled, reflected],
        10: [doubled, stretched, x[..., ::2]],
        11: [*parts, tall, doubled[..., :-1, :-1]],
    }[opset]


@pytest.mark.parametrize("opset", OTHER_MEANINGS)
def test_operators_keep_the_meaning_of_their_opset(opset: int, tmp_path: Path) -> None:
    text = OTHER_MEANINGS[opset]
    at = text.index("{\n") + 1
    onnx.save(onnx.parser.parse_model(f"{text[:at]} {FLAT} {text[at:]}"), tmp_path / "net.onnx")
    built = aotc.build(tmp_path / "net.onnx", emit="shared", out=f"{tmp_path}/", chips="sm_80")
    library = aotc.load(built)
    library.set_device("cpu")
    x = np.random.default_rng(3).standard_normal((1, 2, 3, 4)).astype(np.float32)
    for got, wanted in zip(library["net"](x), expected_of(opset, x), strict=True):
        np.testing.assert_allclose(got.reshape(-1), wanted.reshape(-1), rtol=1e-6)


def test_a_resize_that_rounds_in_two_ways_is_refused(tmp_path: Path) -> None:
    """Before opset 11, nearest elements are rounded up where a dimension shrinks."""
    text = """<ir_version: 5, opset_import: ["" : 10]>
        g (float[1,2,3,4] x) => (float[n,m,k,l] y)
        <float[4] scales = {1, 1, 2, 0.6}> { y = Resize <mode = "nearest"> (x, scales) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "x.onnx")
    with pytest.raises(InputError, match="scales above 1 and below"):
        aotc.build(tmp_path / "x.onnx", emit="host-mlir", out=tmp_path / "x.mlir")


def test_axes_of_scatter_count_from_the_end() -> None:
    """torch-mlir crashes for those of the operator that ScatterElements replaced."""
    case = cases()["test_scatter_with_axis"]
    model = copy.deepcopy(case.model)
    model.graph.node[0].attribute[0].i -= 2
    made = check_apart(replace(case, model=model))
    assert (made.kind, made.text) == ("passed", "")
