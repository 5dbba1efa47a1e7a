"""Models of ai.onnx.ml: linear ones, trees, and what prepares features, as ONNX's reference and
scikit-learn compute them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.support import call

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

import aotc

X = np.array(
    [[0.5, -1, 2], [1, 0, 3], [np.nan, 2, 4], [2, np.nan, -1], [0.25, 0.25, 0.25]], np.float32
)
# Two trees, of all comparisons, of which one sends NaN to the first child.
TREES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0],
    "nodes_modes": [
        *("BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF"),
        *("BRANCH_GT", "BRANCH_NEQ", "BRANCH_EQ", "LEAF", "LEAF", "LEAF", "LEAF"),
    ],
    "nodes_values": [1.0, 0.25, 0, 0, 0, 2.0, 0.0, 0.25, 0, 0, 0, 0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 3, 5, 0, 0, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 4, 6, 0, 0, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
}
# Those of frontends/zoo/estimators.py.
ESTIMATORS = [
    "random_forest",
    "random_forest_regressor",
    "gradient_boosting",
    "gradient_boosting_regressor",
    "logistic_regression",
    "linear_regression",
    "perceptron",
    "support_vectors",
    "support_vector_regressor",
]
LEAVES = [(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (1, 5), (1, 6)]


VECTORS = {
    "support_vectors": [0.5, -1.0, 1.0, 0.0, 0.25, 2.0, 1.5, 0.5, -0.5, 0.25, 0.0, 1.0],
    "coefficients": [0.5, -1.5, 2.0, -0.25],
    "kernel_params": [0.25, 0.5, 3.0],
}


def _leaves(kind: str, ids: list[int]) -> dict[str, Any]:
    return {
        f"{kind}_treeids": [tree for tree, _ in LEAVES],
        f"{kind}_nodeids": [node for _, node in LEAVES],
        f"{kind}_ids": ids,
        f"{kind}_weights": [0.5, -1.0, 0.75, 0.25, 1.5, -0.125, 2.0],
    }


# By name: the operator, its attributes, an input, and the element types of the results.
NODES: dict[str, tuple[str, dict[str, Any], Any, list[int]]] = {
    "regression": (
        "TreeEnsembleRegressor",
        {**TREES, **_leaves("target", [0, 1, 0, 1, 0, 1, 0]), "n_targets": 2},
        X,
        [1],
    ),
    "average": (
        "TreeEnsembleRegressor",
        {
            **TREES,
            **_leaves("target", [0] * 7),
            "n_targets": 1,
            "aggregate_function": "AVERAGE",
            "base_values": [3.0],
        },
        X,
        [1],
    ),
    "least": (
        "TreeEnsembleRegressor",
        {**TREES, **_leaves("target", [0] * 7), "n_targets": 1, "aggregate_function": "MIN"},
        X,
        [1],
    ),
    "classes": (
        "TreeEnsembleClassifier",
        {
            **TREES,
            **_leaves("class", [0, 1, 2, 1, 0, 1, 2]),
            "classlabels_int64s": [7, -3, 5],
            "post_transform": "SOFTMAX",
        },
        X,
        [7, 1],
    ),
    "two classes": (
        "TreeEnsembleClassifier",
        {
            **TREES,
            **_leaves("class", [0] * 7),
            "classlabels_int64s": [4, 9],
            "post_transform": "LOGISTIC",
        },
        X,
        [7, 1],
    ),
    "linear classes": (
        "LinearClassifier",
        {
            "coefficients": [1.0, 2, 3, -1, 0, 1, 0.5, 0.5, -2],
            "intercepts": [0.5, 0, -0.5],
            "classlabels_ints": [3, 1, 2],
            "post_transform": "SOFTMAX",
        },
        X[[0, 1, 4]],
        [7, 1],
    ),
    "two linear classes": (
        "LinearClassifier",
        {
            "coefficients": [1.0, 2, 3],
            "intercepts": [-1.0],
            "classlabels_ints": [3, 1],
            "post_transform": "LOGISTIC",
        },
        X[[0, 1, 4]],
        [7, 1],
    ),
    **{
        f"{kernel} vectors": (
            "SVMRegressor",
            {**VECTORS, "kernel_type": kernel, "n_supports": 4, "rho": [0.5]},
            X[[0, 1, 4]],
            [1],
        )
        for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")
    },
    "vectors of one class": (
        "SVMRegressor",
        {**VECTORS, "kernel_type": "RBF", "n_supports": 4, "rho": [0.5], "one_class": 1},
        X[[0, 1, 4]],
        [1],
    ),
    "vectors of two classes": (
        "SVMClassifier",
        {
            **VECTORS,
            "kernel_type": "RBF",
            "rho": [0.25],
            "vectors_per_class": [1, 3],
            "classlabels_ints": [5, 2],
        },
        X[[0, 1, 4]],
        [7, 1],
    ),
    "vectors of three classes": (
        "SVMClassifier",
        {
            **VECTORS,
            "coefficients": [0.5, -1.5, 2.0, 0.25, -0.75, 1.0, -0.5, 1.25],
            "kernel_type": "POLY",
            "rho": [0.25, -0.5, 1.0],
            "vectors_per_class": [1, 2, 1],
            "classlabels_ints": [5, 2, 9],
        },
        X[[0, 1, 4]],
        [7, 1],
    ),
    "linear": (
        "LinearRegressor",
        {"coefficients": [1.0, 2, 3, 4, 5, 6], "intercepts": [1.0, 2], "targets": 2},
        X[[0, 1, 4]],
        [1],
    ),
    "scaled": ("Scaler", {"offset": [1.0, 2, 3], "scale": [2.0, 3, 4]}, X, [1]),
    "of norm 1": ("Normalizer", {"norm": "L1"}, X[[0, 1, 4]], [1]),
    "of norm 2": ("Normalizer", {"norm": "L2"}, X[[0, 1, 4]] * 0, [1]),
    "binary": ("Binarizer", {"threshold": 0.25}, X, [1]),
    "binary of integers": ("Binarizer", {"threshold": -0.5}, np.array([[-2, -1], [0, 1]]), [7]),
    "binary beyond integers": (
        "Binarizer",
        {"threshold": -1e30},
        np.array([[-(2**31), 2**31 - 1]], np.int32),
        [6],
    ),
    "imputed": (
        "Imputer",
        {"imputed_value_floats": [7.0, 8, 9], "replaced_value_float": float("nan")},
        X,
        [1],
    ),
    "one hot": (
        "OneHotEncoder",
        {"cats_int64s": [3, -1, 2], "zeros": 1},
        np.array([[3, 2], [-1, 5]]),
        [1],
    ),
    "encoded": (
        "LabelEncoder",
        {"keys_int64s": [3, -1], "values_floats": [0.5, 1.5], "default_float": -2.0},
        np.array([-1, 3, 4]),
        [1],
    ),
}


# Those that are written otherwise in terms of old operators.
OLD = ["encoded", "of norm 1", "one hot", "RBF vectors"]


def _build(model: Any, folder: Path) -> Any:
    path = folder / "net.onnx"
    onnx.save(model, path)
    options: dict[str, Any] = {"emit": "shared", "chips": "sm_80", "optimization": 1}
    library = aotc.load(aotc.build(path, out=f"{folder}/", **options))
    library.set_device("cpu")
    return library["net"]


def _results(net: Any, value: Any) -> list[Any]:
    """Results of any number of rows are returned."""
    found = net(value)
    return list(found) if isinstance(found, (list, tuple)) else [found]


@pytest.mark.parametrize(
    ("name", "opset"), [*((name, 21) for name in NODES), *((name, 9) for name in OLD)]
)
def test_a_node_is_onnx_s(name: str, opset: int, tmp_path: Path) -> None:
    """skl2onnx writes the oldest version of ONNX's own operators that a model needs."""
    operator, attributes, value, elements = NODES[name]
    names = ["y", "scores"][: len(elements)]
    node = helper.make_node(operator, ["x"], names, domain="ai.onnx.ml", **attributes)
    element = helper.np_dtype_to_tensor_dtype(value.dtype)
    rank = {"one hot": 3, "encoded": 1}.get(name, 2)
    ranks = [1, 2] if len(elements) > 1 else [rank]
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", element, ["rows", *value.shape[1:]])],
        [
            helper.make_tensor_value_info(one, type_, [None] * count)
            for one, type_, count in zip(names, elements, ranks, strict=True)
        ],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    expected = ReferenceEvaluator(model).run(None, {"x": value})
    found = _results(_build(model, tmp_path), value)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def _model(nodes: list[Any], result: Any) -> Any:
    """Nodes of [rows, 3] floats `x`, of which `y` is the result."""
    x = helper.make_tensor_value_info("x", 1, ["rows", 3])
    graph = helper.make_graph(nodes, "net", [x], [result])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    opsets.append(helper.make_opsetid("mine", 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _tree(**changed: Any) -> Any:
    """A tree of one comparison, `x[1] != 2`, with other attributes."""
    attributes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, -2, -2],
        "nodes_modes": ["BRANCH_NEQ", "LEAF", "LEAF"],
        "nodes_values": [2.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [5.0, 7.0],
        "n_targets": 1,
        **changed,
    }
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], "first", domain="ai.onnx.ml", **attributes
    )
    return _model([node], helper.make_tensor_value_info("y", 1, ["rows", 1]))


def test_what_is_no_number_is_different(tmp_path: Path) -> None:
    """NaN goes to the first child of BRANCH_NEQ."""
    net = _build(_tree(), tmp_path)
    (found,) = _results(net, np.array([[0, np.nan, 0], [0, 2, 0], [0, 1, 0]], np.float32))
    np.testing.assert_array_equal(found, [[5], [7], [5]])


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes_treeids": [0, 0]},
        {"nodes_nodeids": [0, 1, 1]},
        {"nodes_featureids": [3, 0, 0]},
        {"nodes_featureids": [0]},
        {"nodes_values": [2.0]},
        {"nodes_truenodeids": [9, 0, 0]},
        {"nodes_missing_value_tracks_true": [1]},
        {"target_nodeids": [1, 9]},
        {"target_ids": [0, 1]},
        {"target_weights": [5.0]},
        {"base_values": [1.0, 2.0]},
    ],
)
def test_what_is_no_tree_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    onnx.save(_tree(**changed), tmp_path / "net.onnx")
    message = "TreeEnsembleRegressor 'first': its attributes describe no trees"
    with pytest.raises(aotc.InputError, match=message):
        aotc.build(tmp_path / "net.onnx", out=tmp_path / "x")


@pytest.mark.parametrize(
    "changed",
    [
        {"tree_roots": [9]},
        {"nodes_trueleafs": [1, 1]},
        {"nodes_falsenodeids": [-2]},
        {"leaf_targetids": [0, 1]},
        {"leaf_targetids": [0]},
    ],
)
def test_what_is_no_numbered_tree_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    """Those of TreeEnsemble, which has leaves of their own."""
    tensors = {
        "nodes_modes": np.array([0], np.uint8),
        "nodes_splits": np.array([2.0], np.float32),
        "leaf_weights": np.array([5.0, 7.0], np.float32),
    }
    attributes: dict[str, Any] = {
        "tree_roots": [0],
        "nodes_featureids": [1],
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0],
        **{name: onnx.numpy_helper.from_array(value) for name, value in tensors.items()},
        **changed,
    }
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], "first", domain="ai.onnx.ml", **attributes
    )
    model = _model([node], helper.make_tensor_value_info("y", 1, ["rows", 1]))
    model.opset_import[1].version = 5
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(aotc.InputError, match="TreeEnsemble 'first': its attributes describe no"):
        aotc.build(tmp_path / "net.onnx", out=tmp_path / "x")


@pytest.mark.parametrize("first", ["Scaler", "Foo"])
def test_labels_of_values_without_a_type(first: str, tmp_path: Path) -> None:
    """onnx knows no type of what other operators of ai.onnx.ml make, and its inference of types
    ends the process for a LabelEncoder of such a value."""
    is_known = first == "Scaler"
    domain = "ai.onnx.ml" if is_known else "mine"
    options: dict[str, Any] = {"offset": [1.0], "scale": [2.0]} if is_known else {}
    tables: dict[str, Any] = {"keys_floats": [2.0, 4.0], "values_floats": [0.5, 1.5]}
    nodes = [
        helper.make_node(first, ["x"], ["a"], "first", domain=domain, **options),
        helper.make_node("LabelEncoder", ["a"], ["b"], domain="ai.onnx.ml", **tables),
        helper.make_node("Binarizer", ["b"], ["y"], domain="ai.onnx.ml", threshold=1.0),
    ]
    model = _model(nodes, helper.make_tensor_value_info("y", 1, ["rows", 3]))
    if is_known:
        (found,) = _results(_build(model, tmp_path), np.array([[2, 3, 4]], np.float32))
        np.testing.assert_array_equal(found, [[0, 1, 0]])
        return
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(aotc.InputError, match="Foo 'first': operators of the domain 'mine'"):
        aotc.build(tmp_path / "net.onnx", out=tmp_path / "x")


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore")
def test_an_estimator_is_scikit_learn_s(name: str, tmp_path: Path) -> None:
    for package in ("torch", "sklearn", "skl2onnx"):
        pytest.importorskip(package, reason="pip install torch skl2onnx scikit-learn")
    from frontends.zoo.catalogue import MODELS, VARIANTS, load
    from frontends.zoo.judge import judge

    load()
    verdict = judge(MODELS[name], tmp_path, VARIANTS["onnx_any"])
    assert verdict.kind == "right", verdict


@pytest.mark.parametrize("rows", ["n", ""])
def test_one_label_is_declared_for_each_row(rows: str, tmp_path: Path) -> None:
    """As LightGBM's converter does it. The nodes determine how many there are, and the number of
    columns, too."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 15]>
        labels (float[n, 3] x)
            => (int64[1] first, int64[1] second, int64[1, 3] third, float[n, 2] fourth,
                float[n] fifth)
        {
            first = ArgMax <axis = 1, keepdims = 0> (x)
            any = Constant <value_ints = [-1]> ()
            column = ArgMax <axis = 1> (x)
            second = Reshape (column, any)
            third = Cast <to = 7> (x)
            fourth = Abs (x)
            fifth = Neg (x)
        }""")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = rows
    path = tmp_path / "labels.onnx"
    path.write_bytes(model.SerializeToString())
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips="sm_90")
    for count in (1, 5):
        x = np.random.default_rng(0).standard_normal((count, 3)).astype(np.float32)
        expected = [x.argmax(1), x.argmax(1), x.astype(np.int64), abs(x), -x]
        for got, wanted in zip(call(built, "labels", [x], expected), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
