"""The weights of a PyTorch program, as constants of the module: by their bytes.

torch-mlir's importer makes a Python list of each tensor first, which takes a second and a gigabyte
for ten million numbers.
"""

from __future__ import annotations

from typing import Any

from aotc.input.blobs import named_resource


def weights_hook(program: Any) -> Any:
    """For `fx.export_and_import(program, ..., hooks=...)`. Needs PyTorch and torch-mlir."""
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch_mlir import ir
    from torch_mlir.extras import fx_importer  # type: ignore[import-not-found, unused-ignore]

    class Weights(fx_importer.FxImporterHooks):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            # By the tensor that they are of, which must live as long: two layers may share one.
            self._attributes: dict[int, tuple[Any, Any]] = {}
            # What is shared has the name that the module's state_dict has first.
            self._names: dict[int, str] = {}
            for name, tensor in program.state_dict.items():
                self._names.setdefault(id(tensor), name)

        def resolve_literal(self, importer: Any, literal: Any, info: Any) -> Any:
            """None: the importer's own way. A single number becomes a splat there, which can be
            folded."""
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
            # Bytes: NumPy has no bf16.
            name = self._names.get(id(tensor))
            content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
            return ir.DenseResourceElementsAttr.get_from_buffer(
                content,
                "aotc_weight" if name is None else named_resource(name),
                ir.RankedTensorType.get(list(tensor.shape), element),
                alignment=tensor.element_size(),
            )

    return Weights()
