"""Changes of ONNX models: of the fields of their messages, or of bytes."""

from __future__ import annotations

from random import Random
from typing import Any

from fuzz.mutators import mutate_bytes, number, several

_NAMES = ("", "x", "y", "a b", 'a"b', "é", "%0", "long" * 2000, "\n")


def mutate_model(data: bytes, others: tuple[bytes, ...], random: Random) -> bytes:
    """`data`, a serialized ModelProto, with some changes."""
    import onnx
    from google.protobuf.message import DecodeError

    if random.random() < 0.2:
        return mutate_bytes(data, random)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return mutate_bytes(data, random)
    if random.random() < 0.15:
        other = onnx.ModelProto()
        other.ParseFromString(random.choice(others))
        model.graph.node.extend(other.graph.node)
    return several(model, _CHANGES, random).SerializeToString()


def _messages(message: Any) -> list[tuple[Any, Any]]:
    """The message and all those in it, each with one of its fields that is set."""
    found = []
    for field, value in message.ListFields():
        found.append((message, field))
        if field.type == field.TYPE_MESSAGE:
            for inner in value if hasattr(value, "add") else [value]:
                found += _messages(inner)
    return found


def _scalar(field: Any, old: Any, random: Random) -> Any:
    """Another value of the field's type."""
    if field.type == field.TYPE_STRING:
        return random.choice(_NAMES)
    if field.type == field.TYPE_BYTES:
        return mutate_bytes(old, random)
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return random.choice((0.0, -1.0, 1e38, float("nan"), float("inf")))
    if field.type == field.TYPE_ENUM:
        return random.randrange(30)
    size = 31 if field.type == field.TYPE_INT32 else 63
    value = random.choice((old + 1, old - 1, -old, 2 * old, number(random)))
    return min(max(value, -(2**size)), 2**size - 1)


def _change_field(model: Any, random: Random) -> Any:
    """A number, a text or bytes, in whatever message."""
    places = [place for place in _messages(model) if place[1].type != place[1].TYPE_MESSAGE]
    if not places:
        return model
    message, field = random.choice(places)
    value = getattr(message, field.name)
    try:
        if hasattr(value, "append"):
            at = random.randrange(len(value))
            value[at] = _scalar(field, value[at], random)
        else:
            setattr(message, field.name, _scalar(field, value, random))
    except (ValueError, TypeError):
        return model  # a number that the field does not hold
    return model


def _change_list(model: Any, random: Random) -> Any:
    """Something that repeats is left out, comes twice or comes elsewhere."""
    places = [
        (message, field)
        for message, field in _messages(model)
        if hasattr(getattr(message, field.name), "append")
    ]
    if not places:
        return model
    message, field = random.choice(places)
    items = getattr(message, field.name)
    at = random.randrange(len(items))
    some = list(items)
    how = random.randrange(3)
    if how == 0:
        del some[at]
    elif how == 1:
        some.insert(random.randrange(len(some) + 1), some[at])
    else:
        random.shuffle(some)
    copies = (
        [one.__class__.FromString(one.SerializeToString()) for one in some]
        if (field.type == field.TYPE_MESSAGE)
        else some
    )
    message.ClearField(field.name)
    getattr(message, field.name).extend(copies)
    return model


def _clear(model: Any, random: Random) -> Any:
    places = _messages(model)
    if places:
        message, field = random.choice(places)
        message.ClearField(field.name)
    return model


def _change_shape(model: Any, random: Random) -> Any:
    """A size of an argument, a result or a value between: another, a symbol, or none."""
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    dimensions = [d for value in values for d in value.type.tensor_type.shape.dim]
    if not dimensions:
        return model
    dimension = random.choice(dimensions)
    how = random.randrange(3)
    if how == 0:
        dimension.dim_value = min(max(number(random), -(2**63)), 2**63 - 1)
    elif how == 1:
        dimension.dim_param = random.choice(("n", "N", "", "a b", *_NAMES))
    else:
        dimension.Clear()
    return model


def _change_attribute(model: Any, random: Random) -> Any:
    """An attribute of a node is added, or has another kind."""
    import onnx

    if not model.graph.node:
        return model
    node = random.choice(model.graph.node)
    names = (
        "axis",
        "axes",
        "perm",
        "to",
        "pads",
        "strides",
        "group",
        "kernel_shape",
        "mode",
        "value",
    )
    value = random.choice(
        (0, -1, 2**63 - 1, 1.5, "x", "", [1, 2], [-1, 0], [2**62], [0.5], ["a", "b"], [0] * 9)
    )
    if node.attribute and random.random() < 0.6:
        old = random.choice(node.attribute)
        new = onnx.helper.make_attribute(old.name, value)
        old.CopyFrom(new)
    else:
        node.attribute.append(onnx.helper.make_attribute(random.choice(names), value))
    return model


def _change_node(model: Any, random: Random) -> Any:
    """A node is another operation, or takes another value."""
    if not model.graph.node:
        return model
    node = random.choice(model.graph.node)
    operations = (
        *(
            "Add",
            "Reshape",
            "Slice",
            "Gather",
            "Conv",
            "MatMul",
            "Pad",
            "Concat",
            "Split",
            "Resize",
        ),
        *(
            "If",
            "Loop",
            "Scan",
            "Constant",
            "Shape",
            "Expand",
            "Tile",
            "Cast",
            "LSTM",
            "Nothing",
            "",
        ),
    )
    names = [name for one in model.graph.node for name in (*one.input, *one.output)]
    how = random.randrange(3)
    if how == 0:
        node.op_type = random.choice(operations)
    elif how == 1 and node.input:
        node.input[random.randrange(len(node.input))] = random.choice([*names, "nowhere", ""])
    elif how == 2 and node.output:
        node.output[random.randrange(len(node.output))] = random.choice([*names, "nowhere", ""])
    return model


def _make_constant(model: Any, random: Random) -> Any:
    """An input has a value: sizes and axes become known, rightly or not."""
    import onnx

    if not model.graph.input:
        return model
    value = random.choice(model.graph.input)
    numbers = [random.choice((0, 1, -1, 2, 3, 2**31, 2**62)) for _ in range(random.randrange(4))]
    kind = random.choice((onnx.TensorProto.INT64, onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL))
    if kind != onnx.TensorProto.INT64:
        numbers = [abs(one) % 2 for one in numbers]
    tensor = onnx.helper.make_tensor(value.name, kind, [len(numbers)], numbers)
    model.graph.initializer.append(tensor)
    return model


_CHANGES = (
    *(_change_field, _change_field, _change_field, _change_list, _clear, _change_shape),
    *(_change_shape, _change_attribute, _change_attribute, _change_node, _change_node),
    _make_constant,
)
