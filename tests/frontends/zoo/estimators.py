"""scikit-learn's estimators, which skl2onnx exports."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from frontends.zoo.catalogue import Case, model


class Estimator(torch.nn.Module):
    """A fitted estimator, called as modules are: what its methods give, floats as the features have
    them, in columns."""

    def __init__(self, estimator: Any, methods: tuple[str, ...]) -> None:
        super().__init__()
        self.estimator, self.methods = estimator, methods

    def forward(self, x: Any) -> Any:
        found = [
            torch.from_numpy(getattr(self.estimator, name)(x.numpy())) for name in self.methods
        ]
        return tuple(
            one.reshape(len(x), -1).to(x.dtype) if one.is_floating_point() else one for one in found
        )


def _to_onnx(module: Any, inputs: dict[str, Any], shapes: Any, folder: Path) -> tuple[Any, None]:
    import onnx
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    import aotc

    rows, features = inputs["x"].shape
    types = [("x", FloatTensorType([rows if shapes is None else None, features]))]
    is_classifier = len(module.methods) > 1
    options = {id(module.estimator): {"zipmap": False}} if is_classifier else None
    path = folder / "model.onnx"
    onnx.save(to_onnx(module.estimator, initial_types=types, options=options), path)
    return partial(aotc.build, path), None


def _case(estimator: Any, *methods: str) -> Case:
    """An estimator of flowers, fitted."""
    from sklearn.datasets import load_iris

    features, labels = load_iris(return_X_y=True)
    features = features.astype("f")
    module = Estimator(estimator.fit(features, labels), methods)

    def inputs(batch: int, _: int) -> dict[str, Any]:
        return {"x": torch.from_numpy(features[:: max(1, 7 // batch)].copy())}

    return Case(module, inputs, exporters={"onnx": _to_onnx})


_CLASSIFIER = ("predict", "predict_proba")
_model = partial(model, "scikit-learn", "skl2onnx", formats=("onnx",))


@_model()
def random_forest() -> Case:
    from sklearn.ensemble import RandomForestClassifier

    return _case(RandomForestClassifier(5, max_depth=4, random_state=0), *_CLASSIFIER)


@_model()
def random_forest_regressor() -> Case:
    from sklearn.ensemble import RandomForestRegressor

    return _case(RandomForestRegressor(5, max_depth=4, random_state=0), "predict")


@_model()
def gradient_boosting() -> Case:
    from sklearn.ensemble import GradientBoostingClassifier

    return _case(GradientBoostingClassifier(n_estimators=5, random_state=0), *_CLASSIFIER)


@_model()
def gradient_boosting_regressor() -> Case:
    from sklearn.ensemble import GradientBoostingRegressor

    return _case(GradientBoostingRegressor(n_estimators=5, random_state=0), "predict")


@_model()
def logistic_regression() -> Case:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return _case(make_pipeline(StandardScaler(), LogisticRegression()), *_CLASSIFIER)


@_model()
def linear_regression() -> Case:
    """Of lengths that are scaled, and of one that is rounded to a kind."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

    features = make_column_transformer(
        (StandardScaler(), [0, 1, 2]),
        (KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"), [3]),
    )
    return _case(make_pipeline(features, LinearRegression()), "predict")


@_model()
def support_vectors() -> Case:
    from sklearn.svm import SVC

    return _case(SVC(), "predict", "decision_function")


@_model()
def support_vector_regressor() -> Case:
    from sklearn.svm import SVR

    return _case(SVR(), "predict")


@_model()
def perceptron() -> Case:
    from sklearn.neural_network import MLPClassifier

    return _case(MLPClassifier((8,), max_iter=50, random_state=0), *_CLASSIFIER)
