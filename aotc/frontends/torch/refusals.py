"""Refuses PyTorch's operators that have no lowering. The error has the operator's name, the line,
and what to do."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.torch.places import place_of_node
from aotc.input.source import find_place

# The hint for operators whose name matches a pattern. The first match counts.
_HINTS = {
    r"linalg|cholesky|triangular|svd|eigh?|lu_|qr|inverse|logdet|lstsq|det": (
        "leave linear algebra to the caller, and give its result as an input."
    ),
    r"rand|bernoulli|multinomial|normal|dropout|exponential|poisson": (
        "draw the random numbers in the caller, and give them as an input."
    ),
    r"": "write it in terms of other operators, or leave it to the caller.",
}
# MLIR's diagnostic for an operation that no conversion pattern matches.
_LEFT = re.compile(
    r"^(.*: error: |error: )?failed to legalize operation 'torch\.((?:aten|prims)\.[\w.]+)'",
    re.MULTILINE,
)

# Names of functions that remain in the graph when torch.export traces torch.func.grad, vjp and jvp.
_DERIVATIVES = ("_unwrap_for_grad", "_make_dual", "_unpack_dual")


def check_bags(program: Any) -> None:
    """Raises InputError if the program uses the results of embedding_bag that exist for gradients.
    They differ between devices, and some of them are unspecified."""
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        bag, number = node.args
        name = str(bag.target).removesuffix(".default")
        if "embedding_bag" in name and number > 0 and node.users:
            message = f"{place_of_node(node)}result {number} of {name} has no lowering."
            raise InputError(message, hint="the first result is that of the bags; use it alone.")


def check_derivatives(program: Any) -> None:
    """Raises InputError for derivatives by torch.func in a traced program. Their operands are
    constants without elements, or None. If gradients were disabled, part of a derivative is in a
    nested graph."""
    for node in _nodes(program):
        if getattr(node.target, "__name__", "") in _DERIVATIVES:
            raise InputError(
                f"{place_of_node(node)}torch.export loses what torch.func.grad, vjp or jvp takes "
                "the derivatives of.",
                hint="trace the function first, and build the module which that gives: "
                "torch.fx.experimental.proxy_tensor.make_fx(function)(*args).",
            )


def _nodes(program: Any) -> Iterator[Any]:
    """The nodes of a program and of its nested graphs."""
    import torch

    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def check_effects(program: Any) -> None:
    """Raises InputError for operators that PyTorch orders by effect tokens because they may raise
    errors. The importer does not support these."""
    for node in program.graph.nodes:
        if node.op == "call_function" and getattr(node.target, "name", str)() == "with_effects":
            name = str(node.args[1]).removesuffix(".default")
            raise _refusal(place_of_node(node), name)


def check_element_types(program: Any) -> None:
    """Raises InputError for tensors of element types that the importer does not have."""
    import torch
    from torch_mlir.extras import (  # type: ignore[import-not-found, unused-ignore]
        fx_importer,
    )

    for node in program.graph.nodes:
        values = node.meta.get("val")
        for value in values if isinstance(values, list | tuple) else [values]:
            if not isinstance(value, torch.Tensor):
                continue
            if value.dtype not in fx_importer.TORCH_DTYPE_TO_MLIR_TYPE:
                is_given = node.op == "placeholder"
                name = node.name if is_given else str(node.target).removesuffix(".default")
                raise InputError(
                    f"{place_of_node(node)}{name} has elements of {value.dtype}, which have no "
                    "lowering.",
                    hint="use a signed type, such as torch.int64, or leave it to the caller.",
                )


def check_operators(module: Any) -> None:
    """Raises InputError for PyTorch's operators that torch-mlir's torch dialect does not have."""
    for operation in ops.find(module.operation, "torch.operator"):
        name = str(operation.attributes["name"]).strip('"').removeprefix("torch.")
        if name.startswith(("aten.", "prims.")):
            place = find_place(str(operation.location), "")
            raise _refusal(f"{place}: error: " if place else "", name)


@contextlib.contextmanager
def named_refusals() -> Iterator[None]:
    """Rewrites the error if torch-mlir's passes fail to legalize one of PyTorch's operators: it
    begins like the other refusals, and then has torch-mlir's reasons."""
    try:
        yield
    except InputError as error:
        found = _LEFT.search(error.message)
        if found is None:
            raise
        refusal = _refusal(found[1] or "", found[2], " for these operands")
        reasons = error.message.partition("\n")[2]
        raise InputError(f"{refusal.message}\n{reasons}", hint=refusal.hint) from None


def _refusal(place: str, name: str, where: str = "") -> InputError:
    hint = next(hint for pattern, hint in _HINTS.items() if re.search(pattern, name))
    return InputError(f"{place}{name} has no lowering{where}.", hint=hint)
