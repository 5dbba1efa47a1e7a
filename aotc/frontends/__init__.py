"""Other input than MLIR: what makes a module of it, found by entry points.

A package that installs the entry point

    [project.entry-points."aotc.frontends"]
    toy = "toy.frontend:FRONTEND"

where `FRONTEND` is a `Frontend`, has `aotc build program.toy` do what it does with MLIR.
`samples/toy` is a whole one.
"""

from __future__ import annotations

from aotc.frontends.places import Problem, input_error
from aotc.frontends.registry import Frontend, frontends

__all__ = ["Frontend", "Problem", "frontends", "input_error"]
