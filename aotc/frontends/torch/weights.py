"""Imports the weights of a PyTorch program as constants of the module, from their bytes.

torch-mlir's importer converts each tensor to a Python list first, which takes a second and a
gigabyte for ten million numbers.

Large weights get their bytes only when the module is finished. Tasks that run passes would copy
them several times, and a context keeps the bytes of each module that it has parsed. No pass reads
them.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.input.blobs import name_of_weight, named_resource, resource_name

# The size in bytes from which a weight is set late. For smaller ones this saves nothing.
_LARGE = 1 << 20
_NO_BYTES = bytes(64)
# Names that MLIR prints without escapes.
_PLAIN = re.compile(r"[\w.]+", re.ASCII)


def weights_hook(program: Any, late: LateWeights) -> Any:
    """The hook for `fx.export_and_import(program, ..., hooks=...)`. Needs PyTorch and
    torch-mlir."""
    import torch
    from torch_mlir import ir
    from torch_mlir.extras import fx_importer  # type: ignore[import-not-found, unused-ignore]

    class Weights(fx_importer.FxImporterHooks):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            # Attributes by the id of their tensor, which is kept alive. Two layers may share one.
            self._attributes: dict[int, tuple[Any, Any]] = {}
            # A shared tensor has its first name in the state_dict.
            self._names: dict[int, str] = {}
            for name, tensor in program.state_dict.items():
                self._names.setdefault(id(tensor), name)

        def resolve_literal(self, importer: Any, literal: Any, info: Any) -> Any:
            """Returns None to use the importer's own conversion. That makes a splat of a single
            number, which can be folded."""
            if type(literal) not in (torch.Tensor, torch.nn.Parameter) or literal.numel() <= 1:
                return None
            if literal.layout != torch.strided or literal.is_meta:
                return None
            element = fx_importer.TORCH_DTYPE_TO_MLIR_TYPE_ASM.get(literal.dtype)
            if element is None:
                return None
            _, attribute = self._attributes.setdefault(
                id(literal), (literal, self._attribute(literal))
            )
            sizes = ",".join(map(str, literal.shape))
            return ir.Operation.create(
                "torch.vtensor.literal",
                results=[ir.Type.parse(f"!torch.vtensor<[{sizes}],{element}>")],
                attributes={"value": attribute},
            ).result

        def _attribute(self, tensor: Any) -> Any:
            element = fx_importer.TORCH_DTYPE_TO_MLIR_TYPE[tensor.dtype]()
            type_ = ir.RankedTensorType.get(list(tensor.shape), element)
            name = self._names.get(id(tensor))
            if name is not None and late.takes(name, tensor):
                return ir.DenseResourceElementsAttr.get_from_buffer(
                    _NO_BYTES, named_resource(name), type_
                )
            return _resource(tensor, name, type_)

    return Weights()


class LateWeights:
    """The weights whose bytes are set only when the module is finished."""

    def __init__(self) -> None:
        self._tensors: dict[str, Any] = {}

    def takes(self, name: str, tensor: Any) -> bool:
        # Passes may read integers.
        is_late = tensor.is_floating_point() and tensor.nbytes >= _LARGE
        if is_late and _PLAIN.fullmatch(name):
            self._tensors[name] = tensor
        return name in self._tensors

    def give_back(self, module: Any) -> None:
        """Sets the bytes of the constants of a finished module."""
        from torch_mlir import ir

        made: dict[tuple[str, str], Any] = {}
        with module.context, ir.Location.unknown():
            for constant in ops.find(module.operation, "arith.constant"):
                value = constant.attributes["value"]
                resource = resource_name(value)
                name = None if resource is None else name_of_weight(resource)
                if name is None or name not in self._tensors:
                    continue
                type_ = ir.ShapedType(value.type)
                key = name, str(type_)
                if key not in made:
                    made[key] = _resource(self._tensors[name], name, type_)
                constant.attributes["value"] = made[key]


def _resource(tensor: Any, name: str | None, type_: Any) -> Any:
    """The tensor as an attribute, in the context of the type."""
    import torch
    from torch_mlir import ir

    # As bytes, because NumPy has no bf16.
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return ir.DenseResourceElementsAttr.get_from_buffer(
        content,
        "aotc_weight" if name is None else named_resource(name),
        type_,
        alignment=tensor.element_size(),
    )
