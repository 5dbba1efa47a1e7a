"""`aotc.torch.build`: exports, imports and builds a PyTorch module in one call; the result is
called like the module.

import aotc.torch
model = aotc.torch.build(model, (x,), out="out/")
y = model(x)
model = aotc.torch.load("out/")     # later, elsewhere: needs PyTorch, but no compiler
"""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, Any

from aotc.api import Artifact
from aotc.api import build as build_module
from aotc.errors import InputError, ToolError
from aotc.library.opened import load as load_library
from aotc.library.torch_module import Module

if TYPE_CHECKING:
    from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, register

__all__ = ["ModuleArtifact", "OperatorCall", "OperatorLowering", "build", "load", "register"]


def __getattr__(name: str) -> Any:
    # Imported on access: loading a library needs no compiler.
    if name in ("OperatorCall", "OperatorLowering", "register"):
        from aotc.frontends.torch import operators

        return getattr(operators, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class ModuleArtifact(Artifact, frozen=True, dict=True):
    """The result of building a module. If it includes a shared library, it can be called with the
    module's own signature (see `Module`). `structures` describe its arguments and results."""

    structures: tuple[Any, Any]

    @functools.cached_property
    def module(self) -> Module:
        """The library's entry as a function. Raises InputError if no library was built."""
        if "shared" not in self.paths:
            raise InputError(
                f"Only a shared library can be called, and '{self.path}' is none.",
                hint='build it with emit="shared".',
            )
        library = load_library(self)
        (entry,) = library
        return Module(library[entry], self.structures)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


def build(
    module: Any,
    args: tuple[Any, ...],
    *,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    name: str | None = None,
    emit: Any = "shared",
    **options: Any,
) -> ModuleArtifact:
    """Builds the result of `torch.export.export(module, args, kwargs, dynamic_shapes=...)`, or an
    existing ExportedProgram.

    The entry is called `name`, by default the module's class name in snake case. Its arguments are
    the inputs, with their names in `forward`. A result of known shape is an additional argument,
    which the entry writes. The weights are constants. `options` are those of `aotc.build`. The
    result is called with the arguments of `forward`.

    Raises InputError for operations that torch-mlir cannot lower, ToolError without PyTorch, and
    the exceptions of torch.export unchanged.
    """
    from aotc.frontends.torch import ALONE, FRONTEND, import_program

    missing = FRONTEND.missing()
    if missing:
        raise ToolError("PyTorch is missing.", hint=missing)
    import torch

    program = module
    if not isinstance(module, torch.export.ExportedProgram):
        with ALONE:
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(module).__name__).lower()
    name = name or "program"
    built = build_module(import_program(program, name), name=name, emit=emit, **options)
    spec = program.call_spec
    fields = {field: getattr(built, field) for field in Artifact.__struct_fields__}
    return ModuleArtifact(**fields, structures=(spec.in_spec, spec.out_spec))


def load(path: str | os.PathLike[str], entry: str | None = None) -> Module:
    """Opens a library that was built from a PyTorch module, as a function with its signature.

    `path` is the same as for `aotc.load`. `entry` is required if the library has several entries.
    Raises InputError if the path or entry does not exist, or if the entry is not a PyTorch module.
    """
    library = load_library(path)
    names = [name for name in library if library[name].entry.call is not None]
    if entry is None and len(names) == 1:
        (entry,) = names
    if entry not in names:
        known = ", ".join(names) or "none"
        raise InputError(
            f"'{path}' has no entry '{entry}' that was a module of PyTorch's. It has: {known}."
            if entry is not None
            else f"'{path}' does not have one entry that was a module of PyTorch's, but: {known}.",
            hint="aotc.load opens any library.",
        )
    return Module(library[entry])
