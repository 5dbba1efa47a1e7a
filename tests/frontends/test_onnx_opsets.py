"""Models of older opsets: the operators that aotc's rewrites insert are ones of the model's opset,
or the model is converted to a newer one."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import onnx
import onnx.version_converter
from frontends.onnx_nodes import check_apart, has_tensors_alone, node_tests

from aotc.errors import InputError
from aotc.frontends.onnx.functions import kind_of, unknown_operator
from aotc.frontends.onnx.nodes import Node, opset_of, walk
from aotc.frontends.onnx.preparation import _EARLY, _ESTIMATORS, _SIZED, prepare
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
    rewritten = {one.operator for one in (*REWRITES, *_EARLY, *_SIZED, *_ESTIMATORS)}
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
