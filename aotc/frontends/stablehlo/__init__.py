"""The front end of StableHLO: text and portable artifacts."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aotc.frontends.registry import Frontend

_HINT = "pip install torch-mlir"


def _load(path: Path, options: Mapping[str, str]) -> Any:
    # The bindings take longer to load than a build that is in the cache.
    from aotc.frontends.stablehlo.load import import_module
    from aotc.input.source import read_source

    entry = options.get("entry", path.name.split(".")[0])
    return import_module(read_source(path), str(path), entry)


def _missing() -> str | None:
    return None if importlib.util.find_spec("torch_mlir") is not None else _HINT


FRONTEND = Frontend(
    "stablehlo",
    (".stablehlo", ".stablehlo.bc"),
    _load,
    "StableHLO text and portable artifacts, as JAX exports them",
    {"entry": "the entry's name (default: the file's)"},
    _missing,
)
