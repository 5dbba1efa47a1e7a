"""Collects PyTorch's errors for a program that it rejects, and shortens them to a few lines.

PyTorch logs some errors with a traceback, and raises another error that refers to the log. It also
puts tracebacks into messages.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_LONGEST = 600


class KeptLogs(logging.Handler):
    """A logging handler that keeps the last exception that was logged, and prints nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.error = record.exc_info[1]


@contextlib.contextmanager
def kept_logs() -> Iterator[KeptLogs]:
    """Replaces the handlers of PyTorch's loggers by a `KeptLogs` while the context is active."""
    kept, before = KeptLogs(), []
    loggers = [logging.getLogger(name) for name in ("torch", *logging.root.manager.loggerDict)]
    for logger in loggers:
        if logger.name == "torch" or (logger.name.startswith("torch.") and logger.handlers):
            before.append((logger, logger.handlers, logger.propagate))
            logger.handlers, logger.propagate = [kept], False
    try:
        yield kept
    finally:
        for logger, handlers, propagates in reversed(before):
            logger.handlers, logger.propagate = handlers, propagates


def reason_of(error: BaseException) -> str:
    """The message of the error and that of its first cause, without tracebacks."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    said = _short(str(error)) or type(error).__name__
    return said if first is error else f"{said} ({type(first).__name__}: {_short(str(first))})"


def _short(text: str) -> str:
    for end in ("Original exception Traceback", "Original traceback:", "\n\nWhile executing "):
        text = text.split(end)[0]
    text = text.split("Traceback (most recent call last)")[0].strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
