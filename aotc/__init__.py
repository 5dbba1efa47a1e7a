"""aotc builds native programs and libraries from MLIR, with the GPU code embedded in them.

    artifact = aotc.build("matmul.mlir", emit="shared", out="out/")
    library = aotc.load(artifact)
    library.matmul(A, B, C)

Errors are `InputError` (the caller's), `ToolError` and `InternalError` (aotc's), all `AotcError`.
"""

from __future__ import annotations

from aotc.version import __version__

# A constant instead of typing.TYPE_CHECKING: the command loads this before it handles interrupts.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aotc.api import Artifact, build
    from aotc.errors import AotcError, InputError, InternalError, ToolError
    from aotc.library.opened import Library, LibraryError, load

__all__ = [
    "AotcError",
    "Artifact",
    "InputError",
    "InternalError",
    "Library",
    "LibraryError",
    "ToolError",
    "__version__",
    "build",
    "load",
]

# Loaded on first access: some names import the MLIR bindings, which takes a sixth of a second.
_LATE = {
    **dict.fromkeys(("AotcError", "InputError", "InternalError", "ToolError"), "aotc.errors"),
    "Artifact": "aotc.api",
    "build": "aotc.api",
    "Library": "aotc.library.opened",
    "LibraryError": "aotc.library.opened",
    "load": "aotc.library.opened",
    # SCons accepts the package as a tool, tools=["default", "aotc"], and calls these functions.
    "generate": "aotc.scons",
    "exists": "aotc.scons",
}


# Type checkers see only the names above.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LATE:
            raise AttributeError(f"module 'aotc' has no attribute '{name}'")
        import importlib

        value = getattr(importlib.import_module(_LATE[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
