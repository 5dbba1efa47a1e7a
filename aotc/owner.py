"""Whose process this is: the command's, or that of a program that calls aotc."""

from __future__ import annotations

from msgspec import Struct


class Process(Struct):
    """`is_ours`: nothing but aotc runs in it, so that it may fork while it has one thread."""

    is_ours: bool = False


PROCESS = Process()
