"""Refusals of PyTorch's operators that have no lowering: by name, with the line and what to do."""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.torch.places import place_of_node
from aotc.input.source import find_place

# By a pattern of the operator's name.
_HINTS = {
    r"linalg|cholesky|triangular|svd|eigh?|lu_|qr|inverse|logdet|lstsq|det": (
        "leave linear algebra to the caller, and give its result as an input."
    ),
    r"rand|bernoulli|multinomial|normal|dropout|exponential|poisson": (
        "draw the random numbers in the caller, and give them as an input."
    ),
    r"": "write it in terms of other operators, or leave it to the caller.",
}


def check_effects(program: Any) -> None:
    """Raises InputError for operators that PyTorch orders by tokens, as they raise errors: the
    importer does not know these."""
    for node in program.graph.nodes:
        if node.op == "call_function" and getattr(node.target, "name", str)() == "with_effects":
            name = str(node.args[1]).removesuffix(".default")
            raise _refusal(place_of_node(node), name)


def check_operators(module: Any) -> None:
    """Raises InputError for operators of PyTorch's that a module of torch-mlir's torch dialect has,
    and the dialect has not."""
    for operation in ops.find(module.operation, "torch.operator"):
        name = str(operation.attributes["name"]).strip('"').removeprefix("torch.")
        if name.startswith(("aten.", "prims.")):
            place = find_place(str(operation.location), "")
            raise _refusal(f"{place}: error: " if place else "", name)


def _refusal(place: str, name: str) -> InputError:
    hint = next(hint for pattern, hint in _HINTS.items() if re.search(pattern, name))
    return InputError(f"{place}{name} has no lowering.", hint=hint)
