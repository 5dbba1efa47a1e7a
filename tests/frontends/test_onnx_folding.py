"""Models with constants folded and branches inlined, which compute what they did before."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import onnx
from onnx.reference import ReferenceEvaluator

from aotc.frontends.onnx.folding import fold
from aotc.frontends.onnx.functions import inlined

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
BRANCHES = {
    "a constant, then a value": (
        "then_a () => (int64[2] t) { t = Constant <value_ints = [1, 1]> () }",
        "then_b () => (int64[2] t) { t = Neg (k) }",
    ),
    "a size, then another": (
        "then_a () => (int64[2] s) { t = Concat <axis = 0> (k, k) s = Shape (t) }",
        "then_b () => (int64[2] s) { t = Identity (k) s = Neg (t) }",
    ),
    "a branch in a branch": (
        "then_a () => (int64[2] t) { t = Constant <value_ints = [1, 1]> () }",
        """then_b () => (int64[2] u)
        { u = If <then_branch = inner () => (int64[2] t) { t = Neg (k) },
                  else_branch = last () => (int64[2] t) { t = Abs (k) }> (maybe) }""",
    ),
    "an outer value": (
        "then_a () => (int64[2] k) { t = Identity (k) }",
        "then_b () => (int64[2] t) { t = Add (k, k) }",
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_that_use_the_same_names(name: str) -> None:
    """Two inlined branches may each have a value of one name."""
    first, second = BRANCHES[name]
    other = "other () => (int64[2] o) { o = Identity (k) }"
    text = f"""net (int64[2] k, bool maybe) => (int64[m] y, int64[n] z)
    <bool yes = {{1}}>
    {{ y = If <then_branch = {first}, else_branch = {other}> (yes)
       z = If <then_branch = {second}, else_branch = {other}> (yes) }}"""
    model = onnx.parser.parse_model(HEAD + text)
    given = {"k": np.array([3, -4]), "maybe": np.array(True)}
    expected = ReferenceEvaluator(model).run(None, given)
    assert fold(model)
    onnx.checker.check_model(model)
    assert "yes" not in {name for node in model.graph.node for name in node.input}
    for ours, theirs in zip(ReferenceEvaluator(model).run(None, given), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_body_that_returns_its_input() -> None:
    """The result of the call is a copy of the input."""
    body = onnx.parser.parse_function(
        '<domain: "mine", opset_import: ["" : 17]> f (a, b) => (a, c, c) { c = Neg (b) }'
    )
    call = onnx.helper.make_node("f", ["p", "q"], ["x", "y", "z"], domain="mine")
    found = [(one.op_type, *one.input, *one.output) for one in inlined(body, call, "aotc_0_")]
    assert found == [("Neg", "q", "y"), ("Identity", "p", "x"), ("Identity", "y", "z")]
