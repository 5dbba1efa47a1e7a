"""Front ends: importers of formats other than MLIR, found by entry points.

A package that installs the entry point

    [project.entry-points."aotc.frontends"]
    toy = "toy.frontend:FRONTEND"

where `FRONTEND` is a `Frontend`, makes `aotc build program.toy` work as it does for MLIR.
`samples/toy` is a complete example.
"""

from __future__ import annotations

from aotc.frontends.places import Problem, input_error
from aotc.frontends.registry import Frontend, frontends

__all__ = ["Frontend", "Problem", "frontends", "input_error"]
