"""`aotc.torch.build`: a PyTorch module, exported, imported and built in one call.

import aotc.torch
artifact = aotc.torch.build(model, (x,), emit="shared", out="out/")
y = aotc.load(artifact).model(x)
"""

from __future__ import annotations

import re
from typing import Any

from aotc.api import Artifact
from aotc.api import build as build_module
from aotc.errors import ToolError
from aotc.frontends.torch import ALONE, FRONTEND, import_program


def build(
    module: Any,
    args: tuple[Any, ...],
    *,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    name: str | None = None,
    **options: Any,
) -> Artifact:
    """Builds what `torch.export.export(module, args, kwargs, dynamic_shapes=...)` gives, or an
    ExportedProgram that is there already.

    The entry is `name`, by default the module's class in small letters with underscores. Its
    arguments are the inputs, by their names in `forward`; a result whose shape is known is one
    more argument, which the entry writes. The weights are constants. `options` are those of
    `aotc.build`.

    Raises InputError for what torch-mlir cannot lower, ToolError without PyTorch; what
    torch.export raises is raised as it is.
    """
    missing = FRONTEND.missing()
    if missing:
        raise ToolError("PyTorch is missing.", hint=missing)
    import torch  # type: ignore[import-not-found, unused-ignore]

    program = module
    if not isinstance(module, torch.export.ExportedProgram):
        with ALONE:
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(module).__name__).lower()
    name = name or "program"
    return build_module(import_program(program, name), name=name, **options)
