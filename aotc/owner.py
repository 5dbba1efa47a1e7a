"""The owner of this process: the aotc command, or a program that calls aotc."""

from __future__ import annotations

from msgspec import Struct


class Process(Struct):
    """`is_ours`: only aotc runs in the process, so it may fork while it has one thread."""

    is_ours: bool = False


PROCESS = Process()
