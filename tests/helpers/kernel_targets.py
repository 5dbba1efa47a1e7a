"""What the kernels of an artifact are launched on, by the names of their gpu.modules."""

from __future__ import annotations

import re

from aotc import Artifact


def kernel_targets(artifact: Artifact) -> dict[str, tuple[str, ...]]:
    """What they were built for, by what they are launched on: a chip, `gpu`, `cpu`, or `any` for
    those of loops."""
    found = {}
    for kernel in artifact.manifest.kernels:
        target = re.search(r"_(cpu|gpu|sm_\d+a?)(_\d+)?$", kernel.module)
        found[target[1] if target else "any"] = kernel.built_for
    return found
