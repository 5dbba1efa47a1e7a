"""The front end for PyTorch programs saved by torch.export (`.pt2`), built on torch-mlir's
importer.

Weights become constants of the module. No code of the file is executed: see archive.py. The modules
of this package work on PyTorch's graph, except sizes.py, which works on the imported module.
`aotc.frontends.torch_mlir` has what works on torch-mlir's dialects.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aotc.errors import AotcError, InputError
from aotc.frontends.registry import Frontend
from aotc.frontends.torch.archive import check_archive
from aotc.frontends.torch.importer import ALONE, import_program
from aotc.frontends.torch.logs import kept_logs, reason_of
from aotc.frontends.torch.operators import has_packages, lowerings
from aotc.frontends.torch.quantized import quantized_decompositions

_HINT = "pip install 'aotc[torch]'"

__all__ = ["ALONE", "FRONTEND", "import_program"]


def _read(path: Path) -> Any:
    import torch

    with ALONE, warnings.catch_warnings(), kept_logs() as logs:
        warnings.simplefilter("ignore")
        try:
            check_archive(path)
            # These calls define custom operators that a file may use, so they come before the load.
            lowerings()
            quantized_decompositions()
            return torch.export.load(path)
        except AotcError:
            raise
        except Exception as error:
            reason = reason_of(logs.error or error)
            raise InputError(f"torch.export cannot load '{path}': {reason}") from error


def _load(path: Path, options: Mapping[str, str]) -> Any:
    program = _read(path)
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
    is_extended=has_packages,
)
