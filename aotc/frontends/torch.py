"""PyTorch: programs that torch.export saved (`.pt2`), by torch-mlir's importer.

The weights become constants of the module. What is loaded is what `torch.export.load` loads, by its
own rules of what may be in such a file.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aotc.errors import InputError
from aotc.frontends.registry import Frontend
from aotc.frontends.torch_mlir import make_entry

_HINT = "pip install 'aotc[torch]'"


def import_program(program: Any, name: str) -> Any:
    """A `torch.export.ExportedProgram` as an `ir.Module` with one entry, `name`: linalg on tensors.

    Arguments are called as the program's inputs are. Raises InputError for operations that
    torch-mlir does not lower.
    """
    from torch_mlir import fx  # type: ignore[import-not-found, unused-ignore]
    from torch_mlir.compiler_utils import OutputType  # type: ignore[import-not-found, unused-ignore]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = fx.export_and_import(
                program, output_type=OutputType.LINALG_ON_TENSORS, func_name=name
            )
    except Exception as error:
        raise InputError(
            f"torch-mlir cannot lower this program: {type(error).__name__}: {error}"
        ) from error
    return make_entry(module, name, list(program.graph_signature.user_inputs))


def _load(path: Path, options: Mapping[str, str]) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.load(path)
    except Exception as error:
        raise InputError(f"torch.export cannot load '{path}': {error}") from error
    return import_program(program, options.get("entry", path.name.split(".")[0]))


def _missing() -> str | None:
    packages = ("torch", "torch_mlir")
    return None if all(map(importlib.util.find_spec, packages)) else _HINT


FRONTEND = Frontend(
    "torch",
    (".pt2",),
    _load,
    "what torch.export saved",
    {"entry": "the entry's name (default: the file's)"},
    _missing,
)
