"""A model of ONNX as torch-mlir takes it: of operators that it has right, with shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import numpy as np

from aotc.errors import InputError
from aotc.frontends.onnx.elements import INT16, UINT16
from aotc.frontends.onnx.folding import fold
from aotc.frontends.onnx.functions import EXPANDED, all_nodes, bind_defaults, expand, kind_of
from aotc.frontends.onnx.nodes import Node, opset_of, walk
from aotc.frontends.onnx.ranks import give_ranks
from aotc.frontends.onnx.rewrites.apply import (
    check_values,
    expand_functions,
    has_last_rewrite,
    label_nodes,
    rewrite,
)
from aotc.frontends.onnx.rewrites.convolutions import SIZED_CONVOLUTION_REWRITES
from aotc.frontends.onnx.rewrites.estimators import ESTIMATOR_REWRITES
from aotc.frontends.onnx.rewrites.implied_values import EARLY_VALUES, IMPLIED_VALUES
from aotc.frontends.onnx.rewrites.narrow_types import NARROW_REWRITES, widened
from aotc.frontends.onnx.rewrites.pools import SIZED_POOL_REWRITES
from aotc.frontends.onnx.rewrites.runtime_values import EARLY_REWRITES
from aotc.frontends.onnx.rewrites.scores import DOMAIN as ESTIMATORS_DOMAIN
from aotc.frontends.onnx.rewrites.support_vectors import SUPPORT_VECTOR_REWRITES
from aotc.frontends.onnx.rewrites.trees import TREE_REWRITES

# Rewrites of what the later steps do not know, or have to know more of.
_EARLY = (*EARLY_REWRITES, *NARROW_REWRITES)
_SIZED = (*SIZED_CONVOLUTION_REWRITES, *SIZED_POOL_REWRITES)
_ESTIMATORS = (*ESTIMATOR_REWRITES, *SUPPORT_VECTOR_REWRITES, *TREE_REWRITES)
# Rounds of these: onnx knows the types of what such an operator makes only when it is rewritten,
# and the next one may need them.
_MOST_ROUNDS = 16
# Weights of more bytes are set aside while the model is looked at: each step copies the model.
_LARGE = 1 << 20
# Foldings of a model, each of which has sizes from the one before.
_MOST_FOLDS = 6
# Operators of ai.onnx.ml for which onnx's inference of shapes ends the process where it does not
# know the type of the input, and what they are called while it runs.
_HIDDEN = {name: f"Hidden{name}" for name in ("DictVectorizer", "LabelEncoder")}
# ONNX's own operators for a model that has none.
_OPSET = 18
# Of Slice. onnx counts in 32 bits what some larger ones leave.
_LARGEST_STEP = 1 << 31


def prepare(model: Any, kinds: Set[str] = frozenset()) -> Any:
    """The model of operators that torch-mlir has right, with the types of values. Nodes of
    these kinds, which torch-mlir refuses, are replaced by the body that ONNX defines, or by ours.
    Raises InputError for shapes that do not fit."""
    _use_one_domain(model)
    _use_raw_data(model)
    label_nodes(model)
    _bound_steps(model)
    bind_defaults(model)
    give_ranks(model, lambda model: _infer(model, strict=False))
    model = _without_estimators(_with_right_sizes(model))
    model = _with_its_types(model, lambda inferred: check_values(inferred, EARLY_VALUES))
    model = _with_its_types(model, lambda inferred: rewrite(inferred, _EARLY))
    model = _folded(_with_its_types(model, lambda inferred: _expanded(inferred, kinds)))
    model = _folded(_with_its_types(model, lambda inferred: check_values(inferred, IMPLIED_VALUES)))
    _bound_steps(model)
    model = _infer(widened(model, rewrite))
    model = rewrite(model, kinds=kinds)
    # A body may call a function of ONNX's that torch-mlir refuses.
    model = _with_its_types(model, lambda inferred: _expanded(inferred, kinds))
    _drop_unread(model)
    return _infer(model)


def _without_estimators(model: Any) -> Any:
    """The model with others in the place of operators of ai.onnx.ml."""
    if all(one.domain != ESTIMATORS_DOMAIN for one in model.opset_import):
        return model
    for _ in range(_MOST_ROUNDS):
        made = _with_its_types(model, lambda inferred: rewrite(inferred, _ESTIMATORS), strict=False)
        if made is model:
            break
        model = made
    return model


def _with_right_sizes(model: Any) -> Any:
    """The model with others in the place of nodes of which onnx infers other sizes than they have,
    each by itself: what follows one of them has other sizes, too."""
    sized = ("auto_pad", "ceil_mode", "output_shape")
    attributes = [one.name for node in walk(model) for one in node.proto.attribute]
    for _ in range(sum(name in sized for name in attributes)):
        made = _with_its_types(
            model, lambda inferred: rewrite(inferred, _SIZED, most=1), strict=False
        )
        if made is model:
            break
        # Sizes of what follows may have been inferred by onnx.
        made.graph.ClearField("value_info")
        model = made
    return model


def _drop_unread(model: Any) -> None:
    """Takes weights out of the model that no node reads any more."""
    read = {name for node in walk(model) for name in node.proto.input}
    ends = {value.name for value in (*model.graph.input, *model.graph.output)}
    kept = [one for one in model.graph.initializer if one.name in read or one.name in ends]
    if len(kept) < len(model.graph.initializer):
        copies = [type(one).FromString(one.SerializeToString()) for one in kept]
        del model.graph.initializer[:]
        model.graph.initializer.extend(copies)


def _with_its_types(model: Any, changed: Callable[[Any], Any], *, strict: bool = True) -> Any:
    """What is made of a model with inferred types, with the types that it has itself: of a call of
    a function, onnx takes sizes that it does not know for 0."""
    inferred = _infer(model, strict=strict)
    made = changed(inferred)
    if made is inferred:
        return model
    for name in ("output", "value_info"):
        kept = [type(one).FromString(one.SerializeToString()) for one in getattr(model.graph, name)]
        made.graph.ClearField(name)
        getattr(made.graph, name).extend(kept)
    return made


def _is_expanded(node: Node, kinds: Set[str]) -> bool:
    if node.operator in EXPANDED:
        return True
    return kind_of(node) in kinds and not has_last_rewrite(node)


def _expanded(model: Any, kinds: Set[str]) -> Any:
    """The model without calls of functions; the same object where there are none."""
    if model.functions:
        model = _infer(expand_functions(model))
    return expand(model, lambda node: _is_expanded(node, kinds), _infer)


def _folded(model: Any) -> Any:
    """The model with what is known of its sizes as constants, from which onnx infers more sizes."""
    for _ in range(_MOST_FOLDS):
        model = _infer(model)
        if not fold(model):
            break
    return model


def take_weights(model: Any) -> dict[str, bytes]:
    """Takes the data of large weights out of the model, by name."""
    weights = {}
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > _LARGE:
            weights[tensor.name] = tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = tensor.EXTERNAL
    return weights


def put_weights(model: Any, weights: Mapping[str, bytes]) -> None:
    """Puts into a model what `take_weights` took out of the one that it was made of."""
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.raw_data = weights[tensor.name]
            tensor.ClearField("data_location")


def _use_one_domain(model: Any) -> None:
    """ONNX's own domain has two names."""
    if not opset_of(model):
        # Of operators of other domains alone, which are written in terms of ONNX's own.
        model.opset_import.add(domain="", version=_OPSET)
    for named in (*model.opset_import, *(node.proto for node in walk(model))):
        if named.domain == "ai.onnx":
            named.domain = ""
    # Both may stand in a model; its operators are those of the newer.
    newest = opset_of(model)
    kept = [one for one in model.opset_import if one.domain]
    imports = [(one.domain, one.version) for one in kept]
    del model.opset_import[:]
    for domain, version in [("", newest), *imports]:
        model.opset_import.add(domain=domain, version=version)


def _use_raw_data(model: Any) -> None:
    """Writes constants of 16 bits as their bytes: torch-mlir does not read those that stand as
    integers of 32 bits."""
    from onnx import numpy_helper

    attributes = (one for node in walk(model) for one in node.proto.attribute)
    constants = [one.t for one in attributes if one.HasField("t")]
    for tensor in (*model.graph.initializer, *constants):
        if tensor.data_type in (UINT16, INT16) and tensor.int32_data:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))


def _bound_steps(model: Any) -> None:
    """Gives the steps of Slice that are larger than the dimension its size, with the same result,
    or, where that is not known, the largest step: with larger ones, onnx and torch-mlir compute
    sums and opposites that wrap."""
    from onnx import numpy_helper

    for node in list(walk(model)):
        steps = node.constant(4) if node.operator == "Slice" else None
        shape = node.shape(0)
        axes = node.constant(3) if node.has(3) else range(len(shape or ()))
        if steps is None or axes is None or len(axes) != len(steps):
            continue
        sizes = [shape[axis] if shape else None for axis in axes]
        limits = [_LARGEST_STEP if size is None else max(1, size) for size in sizes]
        bounded = np.clip(steps.astype(np.int64), -np.array(limits), np.array(limits))
        if (bounded == steps).all():
            continue
        name = f"{node.proto.output[0]}_aotc_steps_{len(model.graph.initializer)}"
        model.graph.initializer.append(numpy_helper.from_array(bounded, name))
        node.proto.input[4] = name


def _infer(model: Any, *, strict: bool = True) -> Any:
    """The model with the shapes that onnx infers. Raises InputError for shapes that do not fit, if
    `strict`."""
    import onnx

    try:
        with _hidden_estimators(model):
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=strict, data_prop=True)
    # The others are what C++'s library throws: for attributes that are no number of anything.
    except (onnx.shape_inference.InferenceError, ValueError, IndexError, RuntimeError) as error:
        raise InputError(f"The shapes of this model do not fit: {str(error).strip()}") from None
    _rename_estimators(inferred, {hidden: name for name, hidden in _HIDDEN.items()})
    for node in inferred.graph.node:
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                _forget_twice_known(graph)
    return inferred


@contextmanager
def _hidden_estimators(model: Any) -> Iterator[None]:
    """Gives the operators of `_HIDDEN` names that onnx does not know."""
    _rename_estimators(model, _HIDDEN)
    try:
        yield
    finally:
        _rename_estimators(model, {hidden: name for name, hidden in _HIDDEN.items()})


def _rename_estimators(model: Any, names: Mapping[str, str]) -> None:
    for graph in (model.graph, *model.functions):
        for proto in all_nodes(graph.node):
            if proto.domain == ESTIMATORS_DOMAIN and proto.op_type in names:
                proto.op_type = names[proto.op_type]


def _forget_twice_known(graph: Any) -> None:
    """onnx has the results of a nested graph among its values, too, without their sizes."""
    results = {value.name for value in graph.output}
    kept = [value for value in graph.value_info if value.name not in results]
    if len(kept) < len(graph.value_info):
        copies = [type(value).FromString(value.SerializeToString()) for value in kept]
        del graph.value_info[:]
        graph.value_info.extend(copies)
    for node in graph.node:
        for attribute in node.attribute:
            for nested in (attribute.g, *attribute.graphs):
                _forget_twice_known(nested)
