"""The calling convention of a PyTorch program: the structure of its arguments and of its results.

Leaves that are tensors or sizes become the arguments and results of the entry. Leaves that are
constants of the program are only in the `Call`.
"""

from __future__ import annotations

from typing import Any

from aotc.manifest import Call, Leaf

_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def call_of(program: Any) -> Call:
    """The `Call` of a `torch.export.ExportedProgram`. Its graph must not have been changed."""
    signature = program.graph_signature
    given = [spec.arg for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    returned = [spec.arg for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    spec = program.call_spec
    return Call(
        inputs=_written(spec.in_spec),
        outputs=_written(spec.out_spec),
        names=_names(program),
        given=tuple(_leaf(arg, values) for arg in given),
        returned=tuple(_leaf(arg, values) for arg in returned),
    )


def drop_constant_outputs(program: Any) -> None:
    """Removes results that are constants from the graph's outputs. The importer would turn some
    into numbers, and fails for None."""
    from torch.export.graph_signature import (
        ConstantArgument,
    )

    output = program.graph.output_node()
    specs = program.graph_signature.output_specs
    kept = [not isinstance(spec.arg, ConstantArgument) for spec in specs]
    if all(kept):
        return
    output.args = (
        tuple(one for one, is_kept in zip(output.args[0], kept, strict=True) if is_kept),
    )
    specs[:] = [spec for spec, is_kept in zip(specs, kept, strict=True) if is_kept]


def unsigned_arguments(program: Any) -> list[int]:
    """The indices of the user's inputs whose element type is unsigned."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    dtypes = [
        str(getattr(values.get(name), "dtype", None)).removeprefix("torch.")
        for name in program.graph_signature.user_inputs
    ]
    return [number for number, dtype in enumerate(dtypes) if dtype in _UNSIGNED]


def unsigned_results(call: Call) -> list[int]:
    """The indices of the entry's results whose element type is unsigned."""
    values = [leaf for leaf in call.returned if leaf.constant is None]
    return [number for number, leaf in enumerate(values) if leaf.dtype in _UNSIGNED]


def _leaf(arg: Any, values: dict[str, Any]) -> Leaf:
    if not hasattr(arg, "value"):
        dtype = getattr(values.get(arg.name), "dtype", None)
        return Leaf(None if dtype is None else str(dtype).removeprefix("torch."))
    return Leaf(constant=repr(arg.value))


def _names(program: Any) -> tuple[str, ...]:
    """The names of the positional parameters. Empty if torch.export did not record them."""
    positional, _ = program.call_spec.in_spec.children()
    names = program.module_call_graph[0].signature.forward_arg_names or ()
    return tuple(names[: positional.num_children])


def _written(spec: Any) -> str | None:
    from torch.utils import _pytree

    try:
        return str(_pytree.treespec_dumps(spec))
    except (NotImplementedError, TypeError, ValueError):
        return None  # it has a class that is registered without a name
