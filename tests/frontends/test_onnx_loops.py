"""ONNX's Loop, Scan and If, as ONNX Runtime computes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")
# ONNX's own reference takes a condition that is left out for false, and has no axes of Scan.
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx  # noqa: E402
from frontends.support import call  # noqa: E402
from onnx import parser  # noqa: E402

import aotc  # noqa: E402
from aotc.errors import AotcError, InputError  # noqa: E402

ROW = np.arange(1, 5, dtype=np.float32)
ROWS = np.stack([ROW, ROW + 1, 3 * ROW, ROW * ROW, -ROW])
TRUE, FALSE = np.array(True), np.array(False)

# By name: the graph, and the inputs of each call.
GRAPHS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "a number of trips": (
        """g (int64 n, bool c, float[4] x) => (float[4] y) {
          y = Loop <body = b (int64 i, bool c0, float[4] s) => (bool c1, float[4] t) {
            c1 = Identity(c0)
            k = Cast<to = 1>(i)
            a = Add(s, k)
            t = Mul(a, x) }> (n, c, x) }""",
        [(np.array(n), c, ROW) for n in (0, 1, 3, -1) for c in (TRUE, FALSE)],
    ),
    "a condition that ends it": (
        """g (int64 n, float[4] x) => (float[4] y, float[M, 4] ys) {
          c = Constant<value = bool {1}>()
          most = Constant<value = float {20}>()
          y, ys = Loop <body = b (int64 i, bool c0, float[4] s)
              => (bool c1, float[4] t, float[4] r) {
            t = Add(s, s)
            r = Neg(t)
            m = ReduceMax<keepdims = 0>(t)
            c1 = Less(m, most) }> (n, c, x) }""",
        [(np.array(n), ROW) for n in (0, 1, 9)],
    ),
    "a condition alone": (
        """g (bool c, float[4] x) => (float[4] y) {
          most = Constant<value = float {100}>()
          y = Loop <body = b (int64 i, bool c0, float[4] s) => (bool c1, float[4] t) {
            t = Add(s, s)
            m = ReduceMax<keepdims = 0>(t)
            c1 = Less(m, most) }> (, c, x) }""",
        [(TRUE, ROW), (FALSE, ROW)],
    ),
    "rows that are stacked": (
        """g (int64[1] n, float[4] x) => (float[M, 4] ys, int64[M] places) {
          c = Constant<value = bool {1}>()
          ys, places = Loop <body = b (int64 i, bool c0) => (bool c1, float[4] r, int64 j) {
            c1 = Identity(c0)
            k = Cast<to = 1>(i)
            r = Add(x, k)
            j = Mul(i, i) }> (n, c) }""",
        [(np.array([n]), ROW) for n in (0, 5)],
    ),
    "a tensor that grows": (
        """g (int64 n, float[4] x) => (float[K] y) {
          y = Loop <body = b (int64 i, bool c0, float[L] s) => (bool c1, float[L2] t) {
            c1 = Identity(c0)
            t = Concat<axis = 0>(s, x) }> (n,, x) }""",
        [(np.array(n), ROW) for n in (0, 1, 3)],
    ),
    "tensors that exchange their sizes": (
        """g (int64 n, float[4] x) => (float[K] y, float[K2] z) {
          pair = Constant<value = float[2] {1, 2}>()
          four = Neg(x)
          y, z = Loop <body = b (int64 i, bool c0, float[L] s, float[M] w)
              => (bool c1, float[L2] t, float[M2] v) {
            c1 = Identity(c0)
            t = Abs(w)
            v = Neg(s) }> (n,, pair, four) }""",
        [(np.array(n), ROW) for n in (0, 1, 2)],
    ),
    "bodies of the same names": (
        """g (int64 n, float[4] x) => (float[K] y, float[4] z) {
          y = Loop <body = b (int64 i, bool c0, float[L] s) => (bool c1, float[L2] t) {
            c1 = Identity(c0)
            t = Concat<axis = 0>(s, x) }> (n,, x)
          z = Loop <body = b (int64 i, bool c0, float[4] s) => (bool c1, float[4] t) {
            c1 = Identity(c0)
            t = Add(s, x) }> (n,, x) }""",
        [(np.array(n), ROW) for n in (0, 3)],
    ),
    "a value that nobody reads": (
        """g (int64 n) => (int64 y, int64[M] ys) {
          c = Constant<value = bool {1}>()
          zero = Constant<value = int64 {0}>()
          one = Constant<value = int64 {1}>()
          y, z, ys = Loop <body = b (int64 i, bool c0, int64 s, int64 t)
              => (bool c1, int64 u, int64 v, int64 r) {
            c1 = Identity(c0)
            u = Identity(t)
            v = Add(s, t)
            r = Identity(s) }> (n, c, zero, one) }""",
        [(np.array(7),)],
    ),
    "a loop in a loop": (
        """g (int64 n, float[4] x) => (float[4] y) {
          c = Constant<value = bool {1}>()
          y = Loop <body = b (int64 i, bool c0, float[4] s) => (bool c1, float[4] t) {
            c1 = Identity(c0)
            t = Loop <body = d (int64 j, bool d0, float[4] u) => (bool d1, float[4] v) {
              d1 = Identity(d0)
              v = Add(u, s) }> (i, c, s) }> (n, c, x) }""",
        [(np.array(n), ROW) for n in (0, 4)],
    ),
    "a branch in a loop": (
        """g (int64 n, float[4] x) => (float[4] y) {
          two = Constant<value = int64 {2}>()
          y = Loop <body = b (int64 i, bool c0, float[4] s) => (bool c1, float[4] t) {
            c1 = Identity(c0)
            e = Less(i, two)
            t = If <then_branch = p () => (float[4] a) { a = Add(s, x) },
                    else_branch = q () => (float[4] o) { o = Mul(s, x) }> (e) }> (n,, x) }""",
        [(np.array(n), ROW) for n in (1, 4)],
    ),
    "branches of given values": (
        """g (bool c, float[N, 4] x, float[N, 4] z) => (float[N, 4] y, float[2] w) {
          y, w = If <
              then_branch = p () => (float[N, 4] a, float[2] e) {
                a = Identity(x)
                e = Constant<value = float[2] {1, 2}>() },
              else_branch = q () => (float[N, 4] o, float[2] f) {
                o = Identity(z)
                f = Constant<value = float[2] {3, 4}>() }> (c) }""",
        [(TRUE, ROWS, -ROWS), (FALSE, ROWS[:1], -ROWS[:1])],
    ),
    "a scan of any number of rows": (
        """g (float[N, 4] x, float[4] s0) => (float[4] s, float[N, 4] ys) {
          s, ys = Scan <num_scan_inputs = 1,
              body = b (float[4] t, float[4] r) => (float[4] u, float[4] o) {
            u = Add(t, r)
            o = Neg(u) }> (s0, x) }""",
        [(ROWS, ROW), (ROWS[:1], ROW)],
    ),
    "distances of rows": (
        """g (float[N, 4] x, float[P, 4] z) => (float[P, N] ys) {
          s, ys = Scan <num_scan_inputs = 1,
              body = b (float[N, 4] t, float[4] r) => (float[N, 4] u, float[N] o) {
            u = Identity(t)
            d = Sub(t, r)
            o = ReduceSumSquare<axes = [1], keepdims = 0>(d) }> (x, z) }""",
        [(ROWS, ROWS[:3] + 1), (ROWS[:1], ROWS)],
    ),
    "other axes": (
        """g (float[3, N] x, float[3] s0) => (float[3] s, float[3, N] ys) {
          s, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1],
              body = b (float[3] t, float[3] r) => (float[3] u, float[3] o) {
            u = Add(t, r)
            o = Neg(u) }> (s0, x) }""",
        [(ROWS.T[:3].copy(), ROW[:3])],
    ),
}


def build(folder: Path, graph: str, has_ranks: bool = True) -> tuple[Any, Any]:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>\n{graph}')
    for loop in [node for node in model.graph.node if node.op_type == "Loop" and not has_ranks]:
        body = next(one.g for one in loop.attribute if one.name == "body")
        for value in (*body.input[2:], *body.output[1:]):
            value.type.tensor_type.ClearField("shape")
    path = folder / "net.onnx"
    onnx.save(model, path)
    options: dict[str, Any] = {"chips": "sm_80", "optimization": 1}
    return model, aotc.build(path, emit="shared", out=f"{folder}/", **options)


# As PyTorch's exporter writes them, the bodies of loops have no shapes.
NO_RANKS = [
    *("a number of trips", "a tensor that grows", "a value that nobody reads"),
    *("bodies of the same names", "a loop in a loop"),
]


@pytest.mark.parametrize(
    ("name", "has_ranks"), [*((one, True) for one in GRAPHS), *((one, False) for one in NO_RANKS)]
)
def test_control_flow_is_what_onnx_computes(name: str, has_ranks: bool, tmp_path: Path) -> None:
    graph, calls = GRAPHS[name]
    model, artifact = build(tmp_path, graph, has_ranks)
    reference = runtime.InferenceSession(model.SerializeToString())
    names = [value.name for value in model.graph.input]
    for inputs in calls:
        expected = reference.run(None, dict(zip(names, inputs, strict=True)))
        found = call(artifact, "net", list(inputs), expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_inputs_of_several_lengths_are_an_error(tmp_path: Path) -> None:
    graph = """g (float[N, 4] x, float[P, 4] z) => (float[Q, 4] ys) {
      ys = Scan <num_scan_inputs = 2, body = b (float[4] r, float[4] t) => (float[4] o) {
        o = Add(r, t) }> (x, z) }"""
    _, artifact = build(tmp_path, graph)
    expected = [ROWS + ROWS]
    np.testing.assert_array_equal(call(artifact, "net", [ROWS, ROWS], expected)[0], ROWS + ROWS)
    with pytest.raises(AotcError, match="has another size in dimension 0"):
        call(artifact, "net", [ROWS, ROWS[:3]], expected)


def test_rows_of_sizes_that_no_input_has_are_refused(tmp_path: Path) -> None:
    graph = """g (int64 n, float[4] x) => (float[M, K] ys) {
      c = Constant<value = bool {1}>()
      ys = Loop <body = b (int64 i, bool c0) => (bool c1, float[L] r) {
        c1 = Identity(c0)
        k = Constant<value_ints = [1]>()
        j = Reshape(i, k)
        s = Constant<value_ints = [0]>()
        r = Slice(x, s, j) }> (n, c) }"""
    with pytest.raises(InputError, match=r"onnx\.Loop: stacked results of sizes that are known in"):
        build(tmp_path, graph)
