"""aotc: builds native programs and libraries from MLIR, with the GPU code inside them."""

from __future__ import annotations

__version__ = "0.1.0"
