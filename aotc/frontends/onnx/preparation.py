"""Prepares an ONNX model for torch-mlir: replaces operators that torch-mlir does not lower rightly,
and infers shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import numpy as np

from aotc.errors import InputError
from aotc.frontends.onnx.elements import INT16, UINT16
from aotc.frontends.onnx.ends import drop_wrong_sizes
from aotc.frontends.onnx.folding import fold
from aotc.frontends.onnx.functions import EXPANDED, all_nodes, bind_defaults, expand, kind_of
from aotc.frontends.onnx.nodes import Node, opset_of, walk
from aotc.frontends.onnx.ranks import give_computed_ranks, give_ranks
from aotc.frontends.onnx.rewrites.apply import (
    check_values,
    expand_functions,
    has_last_rewrite,
    label_nodes,
    rewrite,
)
from aotc.frontends.onnx.rewrites.convolutions import SIZED_CONVOLUTION_REWRITES
from aotc.frontends.onnx.rewrites.estimators import ESTIMATOR_REWRITES
from aotc.frontends.onnx.rewrites.fused import FUSED_REWRITES
from aotc.frontends.onnx.rewrites.implied_values import EARLY_VALUES, IMPLIED_VALUES
from aotc.frontends.onnx.rewrites.microsoft import DOMAIN as MICROSOFT_DOMAIN
from aotc.frontends.onnx.rewrites.microsoft import MICROSOFT_REWRITES
from aotc.frontends.onnx.rewrites.narrow_types import NARROW_REWRITES, widened
from aotc.frontends.onnx.rewrites.pools import EARLY_POOL_REWRITES, SIZED_POOL_REWRITES
from aotc.frontends.onnx.rewrites.runtime_values import EARLY_REWRITES
from aotc.frontends.onnx.rewrites.scores import DOMAIN as ESTIMATORS_DOMAIN
from aotc.frontends.onnx.rewrites.support_vectors import SUPPORT_VECTOR_REWRITES
from aotc.frontends.onnx.rewrites.trees import TREE_REWRITES

# Rewrites of operators that the later steps do not support or cannot analyze.
_EARLY = (*EARLY_REWRITES, *EARLY_POOL_REWRITES, *NARROW_REWRITES)
_SIZED = (*SIZED_CONVOLUTION_REWRITES, *SIZED_POOL_REWRITES)
# Rewrites of operators of other domains.
_DOMAINS = {
    ESTIMATORS_DOMAIN: (*ESTIMATOR_REWRITES, *SUPPORT_VECTOR_REWRITES, *TREE_REWRITES),
    MICROSOFT_DOMAIN: (*FUSED_REWRITES, *MICROSOFT_REWRITES),
}
# The most rounds of these rewrites. onnx can only infer the result types of such an operator after
# it was rewritten, and the next operator may need them.
_MOST_ROUNDS = 16
# Larger weights (in bytes) are removed while the model is prepared, because each step copies the
# model.
_LARGE = 1 << 20
# The most rounds of folding. Each round may use sizes inferred after the one before.
_MOST_FOLDS = 6
# Operators of ai.onnx.ml, and their names during shape inference. onnx's inference aborts the
# process if it does not know the type of their input.
_HIDDEN = {name: f"Hidden{name}" for name in ("DictVectorizer", "LabelEncoder")}
# Attributes for which onnx infers shapes by another default than that of the operator.
_WRONG_DEFAULTS = {"STFT": ("onesided", 1)}
# The opset of ONNX's operators that is added to a model without one.
_OPSET = 18
# The largest step of Slice. For some larger steps, onnx counts the elements in 32 bits.
_LARGEST_STEP = 1 << 31


def prepare(model: Any, kinds: Set[str] = frozenset()) -> Any:
    """Returns the model with operators that torch-mlir lowers rightly, and the types of its values.

    Nodes of the `kinds`, which torch-mlir refuses, are replaced by the body that ONNX defines, or
    by aotc's rewrite. Raises InputError for shapes that do not fit.
    """
    _use_one_domain(model)
    _use_raw_data(model)
    label_nodes(model)
    _drop_optional_results(model)
    bound_steps(model)
    _set_defaults(model)
    bind_defaults(model)
    give_ranks(model, lambda model: infer(model, strict=False))
    give_computed_ranks(model, lambda model: infer(model, strict=False))
    model = _without_other_domains(_with_right_sizes(model))
    drop_wrong_sizes(model, lambda model: infer(model, strict=False))
    model = _with_its_types(model, lambda inferred: check_values(inferred, EARLY_VALUES))
    model = _with_its_types(model, lambda inferred: rewrite(inferred, _EARLY))
    model = _folded(_with_its_types(model, lambda inferred: _expanded(inferred, kinds)))
    model = _folded(_with_its_types(model, lambda inferred: check_values(inferred, IMPLIED_VALUES)))
    bound_steps(model)
    model = infer(widened(model, rewrite))
    model = rewrite(model, kinds=kinds)
    # A body may use another function of ONNX's that torch-mlir refuses.
    model = _with_its_types(model, lambda inferred: _expanded(inferred, kinds))
    _drop_unread(model)
    return infer(model)


def _without_other_domains(model: Any) -> Any:
    """The model with operators of other domains rewritten."""
    domains = {node.proto.domain for node in walk(model)}
    rewrites = [one for name, some in _DOMAINS.items() if name in domains for one in some]
    for _ in range(_MOST_ROUNDS if rewrites else 0):
        made = _with_its_types(model, lambda inferred: rewrite(inferred, rewrites), strict=False)
        if made is model:
            break
        model = made
    return model


def _with_right_sizes(model: Any) -> Any:
    """The model with rewrites of the nodes for which onnx infers wrong sizes. They are rewritten
    one by one, because the sizes after such a node are wrong, too."""
    sized = ("auto_pad", "ceil_mode", "output_shape")
    attributes = [one.name for node in walk(model) for one in node.proto.attribute]
    for _ in range(sum(name in sized for name in attributes)):
        made = _with_its_types(
            model, lambda inferred: rewrite(inferred, _SIZED, most=1), strict=False
        )
        if made is model:
            break
        # The sizes of later values may have been inferred from the wrong ones.
        made.graph.ClearField("value_info")
        model = made
    return model


def _set_defaults(model: Any) -> None:
    """Gives nodes the attributes of `_WRONG_DEFAULTS` that they lack. The sizes of values that the
    file has may have been inferred without them, and are removed."""
    from onnx import helper

    for graph in (model.graph, *model.functions):
        for proto in all_nodes(graph.node):
            name, value = _WRONG_DEFAULTS.get(proto.op_type, ("", 0))
            if name and not proto.domain and all(one.name != name for one in proto.attribute):
                proto.attribute.append(helper.make_attribute(name, value))
                model.graph.ClearField("value_info")


def _drop_unread(model: Any) -> None:
    """Removes weights that no node reads any more."""
    read = {name for node in walk(model) for name in node.proto.input}
    ends = {value.name for value in (*model.graph.input, *model.graph.output)}
    kept = [one for one in model.graph.initializer if one.name in read or one.name in ends]
    if len(kept) < len(model.graph.initializer):
        copies = [type(one).FromString(one.SerializeToString()) for one in kept]
        del model.graph.initializer[:]
        model.graph.initializer.extend(copies)


def _with_its_types(model: Any, changed: Callable[[Any], Any], *, strict: bool = True) -> Any:
    """Applies `changed` to the model with inferred types, and restores the model's own types in the
    result. For calls of functions, onnx infers 0 for unknown sizes."""
    inferred = infer(model, strict=strict)
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
    """The model with calls of functions inlined. It is the same object if there are none."""
    if model.functions:
        model = infer(expand_functions(model))
    return expand(model, lambda node: _is_expanded(node, kinds), infer)


def _folded(model: Any) -> Any:
    """The model with computations on known sizes folded, from which onnx infers further sizes."""
    for _ in range(_MOST_FOLDS):
        model = infer(model)
        if not fold(model):
            break
    return model


def take_weights(model: Any) -> dict[str, bytes]:
    """Removes the data of large weights from the model, and returns it by name."""
    weights = {}
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > _LARGE:
            weights[tensor.name] = tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = tensor.EXTERNAL
    return weights


def put_weights(model: Any, weights: Mapping[str, bytes]) -> None:
    """Restores the data that `take_weights` removed, in a model derived from that one."""
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.raw_data = weights[tensor.name]
            tensor.ClearField("data_location")


def _use_one_domain(model: Any) -> None:
    """Replaces the domain "ai.onnx", a second name of ONNX's default domain, by ""."""
    if not opset_of(model):
        # The model has only operators of other domains. They are rewritten in terms of ONNX's own.
        model.opset_import.add(domain="", version=_OPSET)
    for named in (*model.opset_import, *(node.proto for node in walk(model))):
        if named.domain == "ai.onnx":
            named.domain = ""
    # A model may import both names. The newer version counts.
    newest = opset_of(model)
    kept = [one for one in model.opset_import if one.domain]
    imports = [(one.domain, one.version) for one in kept]
    del model.opset_import[:]
    for domain, version in [("", newest), *imports]:
        model.opset_import.add(domain=domain, version=version)


def _use_raw_data(model: Any) -> None:
    """Converts 16-bit constants that are stored as 32-bit integers to raw data, because torch-mlir
    does not read the former."""
    from onnx import numpy_helper

    attributes = (one for node in walk(model) for one in node.proto.attribute)
    constants = [one.t for one in attributes if one.HasField("t")]
    for tensor in (*model.graph.initializer, *constants):
        if tensor.data_type in (UINT16, INT16) and tensor.int32_data:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))


def _drop_optional_results(model: Any) -> None:
    """Removes the last results that are optional and that nothing reads, such as the mask of a
    Dropout or the statistics of a BatchNormalization. For old opsets, onnx does not infer their
    types."""
    from onnx import defs

    optional = defs.OpSchema.FormalParameterOption.Optional
    read = {name for node in walk(model) for name in node.proto.input}
    read |= {value.name for graph in _graphs(model.graph) for value in graph.output}
    for node in list(walk(model)):
        try:
            schema = defs.get_schema(node.operator, node.opset, node.proto.domain)
        except defs.SchemaError:
            continue
        names = node.proto.output
        while 1 < len(names) <= len(schema.outputs) and names[-1] not in read:
            if schema.outputs[len(names) - 1].option != optional:
                break
            names.pop()


def _graphs(graph: Any) -> Iterator[Any]:
    """The graph and its nested graphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for nested in (attribute.g, *attribute.graphs):
                yield from _graphs(nested)


def bound_steps(model: Any) -> None:
    """Clamps the steps of Slice to the size of the dimension, which does not change the result. If
    the size is not known, they are clamped to the largest step. With larger ones, sums and
    negations in onnx and torch-mlir overflow."""
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


def infer(model: Any, *, strict: bool = True) -> Any:
    """The model with the shapes that onnx infers. If `strict`, raises InputError for shapes that do
    not fit."""
    import onnx

    try:
        with _hidden_estimators(model):
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=strict, data_prop=True)
    # ValueError, IndexError and RuntimeError come from exceptions of the C++ library, for
    # attributes with invalid numbers.
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
    """Renames the operators of `_HIDDEN` while the context is active, so that onnx does not infer
    their types."""
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
    """Removes the results of nested graphs from their value_info, in which onnx lists them without
    their sizes."""
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
