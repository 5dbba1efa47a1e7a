"""The tools that aotc runs: where each one is, its version, and how to run it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aotc.toolchain.data import data_dir
    from aotc.toolchain.runner import Completed, RecordingRunner, Runner
    from aotc.toolchain.runtime import harness_objects, runtime_library, utilities_library
    from aotc.toolchain.tools import Tool, Toolchain
    from aotc.toolchain.version import Version

__all__ = [
    "Completed",
    "RecordingRunner",
    "Runner",
    "Tool",
    "Toolchain",
    "Version",
    "data_dir",
    "harness_objects",
    "runtime_library",
    "utilities_library",
]

# Imported on access: a fully cached build needs few of them.
_MODULES = {
    "data": ("data_dir",),
    "runner": ("Completed", "RecordingRunner", "Runner"),
    "runtime": ("harness_objects", "runtime_library", "utilities_library"),
    "tools": ("Tool", "Toolchain"),
    "version": ("Version",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(importlib.import_module(f"aotc.toolchain.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'aotc.toolchain' has no attribute '{name}'")
