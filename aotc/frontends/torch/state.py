"""Makes the inputs and buffers that a PyTorch program mutates arguments of its entry, which results
are written back to.

A buffer that the program mutates is a field of the library's state. The field has the name of the
buffer in the module, such as `layers.0.keys`, and its initial value. An input that the program
mutates is an argument that the entry writes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.attributes import INITIAL_ATTRIBUTE, INTO_ATTRIBUTE, NAME_ATTRIBUTE, STATE_ATTRIBUTE
from aotc.errors import InputError


class Change(Struct, frozen=True):
    """A result of the program (by index) that is the new value of an input (by name). For a buffer,
    `field` is its name in the module, and `initial` the tensor that it begins with."""

    result: int
    input: str
    field: str | None = None
    initial: Any = None


def name_buffers_once(program: Any) -> Any:
    """Returns the `torch.export.ExportedProgram` without constants that alias a buffer. The given
    program is not changed.

    A tensor that a module reaches by two paths, as in transformers' static caches, is both a buffer
    and a constant. PyTorch then cannot tell which one is mutated.
    """
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
    """Identifies the memory of a tensor's elements. None if the tensor has no such memory."""
    import torch

    is_dense = isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided
    if not is_dense or tensor.data_ptr() == 0:
        return None
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def take_state(program: Any) -> tuple[Change, ...]:
    """Makes the buffers that a `torch.export.ExportedProgram` mutates inputs, in place, and returns
    the mutations. Raises InputError for a buffer that is not a dense tensor with elements."""
    from torch.export.graph_signature import (
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
    import torch

    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
        raise InputError(
            f"This program changes its buffer '{name}', a tensor of layout {tensor.layout} on "
            f"{tensor.device}: state is made of dense tensors.",
            hint="Keep it as a dense tensor.",
        )


def mark_changes(module: Any, changes: Sequence[Change], inputs: Sequence[str]) -> None:
    """Sets attributes of the module's one entry: which arguments are state, and which argument each
    result is written to. `inputs` are the names of the arguments."""
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
    """The tensor as an attribute, which is a splat if all elements have the same bits. None if all
    are zero, because a field begins as zero.

    Unlike the type of the argument, the attribute's type has a signedness. Elements that are not
    integers are given by their bits.
    """
    import torch

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
