"""What a PyTorch program changes in place → arguments of its entry, and results that go into them.

A buffer that the program changes is a field of the library's state, by the name that it has in the
module: `layers.0.keys`. It begins with the value that the buffer has in the program. An input that
the program changes is an argument that the entry writes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.errors import InputError
from aotc.input.entries import INITIAL_ATTRIBUTE, INTO_ATTRIBUTE, NAME_ATTRIBUTE, STATE_ATTRIBUTE


class Change(Struct, frozen=True):
    """A result of the program, by its number, that is the new value of an input, by its name. Of a
    buffer: what the module calls it, and the tensor that it begins with."""

    result: int
    input: str
    field: str | None = None
    initial: Any = None


def name_buffers_once(program: Any) -> Any:
    """The `torch.export.ExportedProgram`, whose constants are no buffers by another name. A tensor
    that a module reaches by two ways, as transformers' static caches, is both, and then PyTorch
    cannot say which one is changed. The given program stays as it is."""
    signature = program.graph_signature
    buffers = {
        _memory(tensor): name
        for name, target in signature.inputs_to_buffers.items()
        if (tensor := program.state_dict.get(target, program.constants.get(target))) is not None
    }
    again = {
        name: buffers[memory]
        for name, target in signature.inputs_to_lifted_tensor_constants.items()
        if (memory := _memory(program.constants[target])) is not None and memory in buffers
    }
    if not again:
        return program
    module, signature = copy.deepcopy(program.graph_module), copy.deepcopy(signature)
    nodes = {node.name: node for node in module.graph.find_nodes(op="placeholder")}
    for name, buffer in again.items():
        nodes[name].replace_all_uses_with(nodes[buffer])
        module.graph.erase_node(nodes[name])
    signature.input_specs[:] = [one for one in signature.input_specs if one.arg.name not in again]
    return program._update(module, signature)


def _memory(tensor: Any) -> tuple[Any, ...] | None:
    """Where a tensor's elements are; None of what has none there."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    is_dense = isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided
    if not is_dense or tensor.data_ptr() == 0:
        return None
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def take_state(program: Any) -> tuple[Change, ...]:
    """Makes inputs of the buffers that a `torch.export.ExportedProgram` changes, in place; what it
    changes. Raises InputError for what it changes that is no strided tensor of one device."""
    from torch.export.graph_signature import (  # type: ignore[import-not-found, unused-ignore]
        InputKind,
        OutputKind,
    )

    of_module = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
    specs = program.graph_signature.input_specs
    by_target = {spec.target: spec for spec in specs if spec.target is not None}
    changes = []
    for result, output in enumerate(program.graph_signature.output_specs):
        if output.kind is OutputKind.USER_INPUT_MUTATION:
            changes.append(Change(result, output.target))
        if output.kind in of_module:
            spec = by_target[output.target]
            initial = program.state_dict[output.target]
            _check_tensor(output.target, initial)
            spec.kind, spec.target, spec.persistent = InputKind.USER_INPUT, None, None
            changes.append(Change(result, spec.arg.name, output.target, initial))
    return tuple(changes)


def _check_tensor(name: str, tensor: Any) -> None:
    import torch  # type: ignore[import-not-found, unused-ignore]

    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
        raise InputError(
            f"This program changes its buffer '{name}', a tensor of layout {tensor.layout} on "
            f"{tensor.device}: state is made of dense tensors.",
            hint="Keep it as a dense tensor.",
        )


def mark_changes(module: Any, changes: Sequence[Change], inputs: Sequence[str]) -> None:
    """Says of the arguments of a module's one entry, which are called `inputs`, which are state,
    and of its results which go where."""
    if not changes:
        return
    from torch_mlir import ir

    from aotc.frontends.torch_mlir.entry import entry_of

    with module.context, ir.Location.unknown():
        function = entry_of(module)
        type_ = ops.function_type(function)
        arguments = [
            {named.name: named.attr for named in ir.DictAttr(one)}
            for one in ir.ArrayAttr(function.attributes["arg_attrs"])
        ]
        results: list[dict[str, Any]] = [{} for _ in type_.results]
        i64 = ir.IntegerType.get_signless(64)
        for change in changes:
            number = inputs.index(change.input)
            results[change.result][INTO_ATTRIBUTE] = ir.IntegerAttr.get(i64, number)
            if change.field is None:
                continue
            arguments[number][STATE_ATTRIBUTE] = ir.StringAttr.get(change.field)
            if (initial := _elements(ir, change.initial)) is not None:
                arguments[number][INITIAL_ATTRIBUTE] = initial
            if change.field not in inputs:
                arguments[number][NAME_ATTRIBUTE] = ir.StringAttr.get(change.field)
        function.attributes["arg_attrs"] = _dictionaries(ir, arguments)
        function.attributes["res_attrs"] = _dictionaries(ir, results)


def _dictionaries(ir: Any, dictionaries: Sequence[dict[str, Any]]) -> Any:
    return ir.ArrayAttr.get([ir.DictAttr.get(dictionary) for dictionary in dictionaries])


def _elements(ir: Any, tensor: Any) -> Any:
    """The tensor as an attribute: of one element, where all have its bits. None for zeros, which is
    what a field begins with. Unlike the argument's type, its type has a sign; what are no integers
    are given by their bits."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    size = tensor.element_size()
    is_signed = tensor.dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    is_plain = is_signed or tensor.is_floating_point() or tensor.is_complex()
    if is_plain and not bool(content.any()):
        return None
    shape = "".join(f"{count}x" for count in tensor.shape)
    type_ = f"tensor<{shape}{'si' if is_signed else 'ui'}{8 * size}>"
    if len(content) == 0:
        return ir.Attribute.parse(f"dense<> : {type_}")
    rows = content.reshape(-1, size)
    if bool((rows == rows[0]).all()):
        digits = bytes(rows[0].tolist()).hex().upper()
        return ir.Attribute.parse(f'dense<"0x{digits}"> : {type_}')
    return ir.DenseResourceElementsAttr.get_from_buffer(
        content.numpy(), "initial", ir.Type.parse(type_), alignment=size
    )
