"""The tools that aotc runs: where each one is, its version, and how to run it."""

from __future__ import annotations

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
