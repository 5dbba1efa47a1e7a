"""Checks of the input for errors that are known before it is executed, reported as named warnings.

There are no false positives: code that may be correct in some run is not reported.
"""

from __future__ import annotations

from aotc.input.source import Source
from aotc.lower.checks.bounds import check_bounds
from aotc.lower.checks.dealloc import check_deallocations
from aotc.lower.checks.host_pointers import check_host_pointers
from aotc.lower.checks.launches import check_launches
from aotc.lower.checks.operations import Operations
from aotc.lower.checks.shared_memory import check_shared_memory
from aotc.request import BuildRequest, MemoryMode
from aotc.warnings import BuildWarning


def check_input(source: Source, request: BuildRequest) -> list[BuildWarning]:
    """Warnings for the module as its author wrote it."""
    with source.module.context:
        operations = Operations(source.module)
        found = [
            *check_deallocations(source, operations),
            *check_launches(source, operations, request),
            *check_shared_memory(source, operations, request),
            *check_bounds(source, operations),
        ]
    return sorted(found, key=_order)


def _order(warning: BuildWarning) -> tuple[int, int]:
    return (warning.place.line, warning.place.column) if warning.place else (0, 0)


def check_outlined(source: Source, request: BuildRequest) -> list[BuildWarning]:
    """Warnings for the module with outlined kernels and placed memory."""
    if request.memory is not MemoryMode.EXPLICIT:
        return []
    with source.module.context:
        return sorted(check_host_pointers(source), key=_order)
