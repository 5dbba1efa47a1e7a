"""Folds operators on splat tensors (all elements equal) to splats, as PyTorch computes them.

torch-mlir folds these, too, and gets many wrong: negative integers become unsigned (`torch.ones(3)
* -1` became 1.8e19), remainders and quotients are rounded as in C (`torch.full((3,), 5) % -2`
became 1), and casts to unsigned integers keep the sign.
"""

from __future__ import annotations

from typing import Any

# Operators that are elementwise, but that PyTorch does not tag so; views; and operators that make a
# splat.
_ELEMENTWISE = ("floor_divide", "where", "_to_copy", "convert_element_type")
_VIEWS = (
    *("expand", "view", "unsqueeze", "squeeze", "reshape", "_unsafe_view", "permute"),
    *("detach", "alias", "lift_fresh_copy", "view_of", "broadcast_in_dim"),
)
_FILLED = {"ones": 1, "ones_like": 1, "zeros": 0, "zeros_like": 0}


def fold_splats(program: Any) -> None:
    """Folds elementwise operators and casts whose result has known sizes. Changes the graph of a
    `torch.export.ExportedProgram` in place."""
    values = _constants(program)
    for node in list(program.graph.nodes):
        if node.op != "call_function" or not _is_known(node.meta.get("val")):
            continue
        value = _value(node, values)
        if value is None:
            continue
        is_replaced = _is_elementwise(node.target) and _is_written(value)
        made = _replace(program.graph, node, value.item()) if is_replaced else node
        values[made] = value


def _constants(program: Any) -> dict[Any, Any]:
    """Maps the nodes of inputs that are constants with one element to their values."""
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    targets = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    values = {}
    for node in program.graph.find_nodes(op="placeholder"):
        target = targets.get(node.name)
        if target is not None and target not in changed:
            tensor = program.state_dict.get(target, program.constants.get(target))
            if _is_known(tensor) and not tensor.is_meta and tensor.numel() == 1:
                values[node] = tensor.detach().cpu()
    return values


def _is_known(value: Any) -> bool:
    """Whether a value is a dense tensor of real numbers with known sizes."""
    import torch

    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and not value.is_complex()
        and not value.is_quantized
        and all(isinstance(size, int) for size in value.shape)
    )


def _is_written(value: Any) -> bool:
    """Whether torch-mlir makes the right constant of a number. It does not for unsigned integers
    whose sign bit is set."""
    import torch

    is_unsigned = value.dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
    return not is_unsigned or int(value) <= torch.iinfo(value.dtype).max // 2


def _name(target: Any) -> str:
    """The name of an operator of PyTorch without its overload (`add`). Empty for operators of other
    packages."""
    packet = str(getattr(target, "overloadpacket", ""))
    namespace, _, name = packet.partition(".")
    return name if namespace in ("aten", "prims") else ""


def _is_elementwise(target: Any) -> bool:
    import torch

    tags = getattr(target, "tags", ())
    is_random = torch.Tag.nondeterministic_seeded in tags
    return (torch.Tag.pointwise in tags and not is_random) or _name(target) in _ELEMENTWISE


def _value(node: Any, values: dict[Any, Any]) -> Any | None:
    """A tensor with one element, which all elements of the node's result are equal to. It has the
    rank of the result, because PyTorch's type promotion depends on that. None if the elements are
    not known to be equal."""
    import torch

    made, name = node.meta["val"], _name(node.target)
    of_one = [1] * made.dim()
    if name in _FILLED:
        return torch.full(of_one, _FILLED[name], dtype=made.dtype)
    if name in ("full", "full_like", "scalar_tensor"):
        fill = node.args[0 if name == "scalar_tensor" else 1]
        is_number = isinstance(fill, bool | int | float)
        return torch.full(of_one, fill, dtype=made.dtype) if is_number else None
    given = node.all_input_nodes
    if not given or any(one not in values for one in given):
        return None
    if name in _VIEWS:
        return values[given[0]].reshape(of_one)
    if not _is_elementwise(node.target):
        return None
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    try:
        found = node.target(*args, **kwargs)
    except (RuntimeError, TypeError):
        return None  # e.g. an integer division by 0, an error of the call
    is_same = isinstance(found, torch.Tensor) and found.dtype == made.dtype
    return found.reshape(of_one) if is_same and found.numel() == 1 else None


def _replace(graph: Any, node: Any, number: Any) -> Any:
    import torch

    made = node.meta["val"]
    with graph.inserting_before(node):
        full = graph.call_function(
            torch.ops.aten.full.default,
            (list(made.shape), number),
            {"dtype": made.dtype, "device": torch.device("cpu"), "pin_memory": False},
        )
    full.meta = dict(node.meta)
    node.replace_all_uses_with(full)
    graph.erase_node(node)
    return full
