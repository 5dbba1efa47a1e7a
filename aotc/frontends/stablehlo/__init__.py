"""StableHLO → linalg: upstream's passes, and what they leave: control flow, sort, scatter."""

from __future__ import annotations

from aotc.frontends.stablehlo.load import FRONTEND, import_module

__all__ = ["FRONTEND", "import_module"]
