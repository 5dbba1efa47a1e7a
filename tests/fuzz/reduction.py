"""A find → a smaller or plainer input with the same ending."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

from fuzz.case import Case
from fuzz.execution import Ending

Execute = Callable[[Case], Ending]


def reduce(case: Case, ending: Ending, execute: Execute, seconds: float) -> tuple[Case, Ending]:
    """The plainest case with this ending's signature that is found in about this time."""
    deadline = time.monotonic() + seconds
    tried = {case.content}
    found = True
    while found:
        found = False
        for content in _plainer(case):
            if time.monotonic() > deadline:
                return case, ending
            if content in tried:
                continue
            tried.add(content)
            now = execute(case.with_content(content))
            if now.signature == ending.signature:
                case, ending, found = case.with_content(content), now, True
                break
    return case, ending


def _plainer(case: Case) -> Iterator[bytes]:
    """Contents to try: without some of it, for text; nearer to the original, for others."""
    if case.target.endswith((".mlir", ".toml")):
        lines = re.findall(rb"[^\n]*\n?", case.content)
        yield from _without(lines)
        if len(lines) < 40:
            yield from _without(re.findall(rb"\s*(?:[\w%@#.$]+|\W)", case.content))
        return
    if len(case.content) == len(case.original):
        yield from _restored(case.content, case.original)
    yield from _without([case.content[at : at + 1] for at in range(len(case.content))], least=8)


def _without(parts: Sequence[bytes], least: int = 1) -> Iterator[bytes]:
    """The parts without a half of them, without a quarter, and so on."""
    size = len(parts) // 2
    while size >= least:
        for at in range(0, len(parts), size):
            yield b"".join((*parts[:at], *parts[at + size :]))
        size //= 2


def _restored(content: bytes, original: bytes) -> Iterator[bytes]:
    """The content with one of the bytes in which it differs as it was."""
    for at, (new, old) in enumerate(zip(content, original, strict=True)):
        if new != old:
            yield content[:at] + bytes([old]) + content[at + 1 :]
