"""What PyTorch says of a program that it does not take, in a few lines.

It logs some errors, with a traceback, and raises another that sends its reader to the log; it puts
tracebacks into messages, too.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_LONGEST = 600


class KeptLogs(logging.Handler):
    """Keeps the last error that was logged, and prints nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.error = record.exc_info[1]


@contextlib.contextmanager
def kept_logs() -> Iterator[KeptLogs]:
    """Takes what PyTorch logs, in place of its own handlers, which some of its loggers have."""
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
    """The error's message, and that of the error which it comes from, without tracebacks."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    said = _short(str(error)) or type(error).__name__
    return said if first is error else f"{said} ({type(first).__name__}: {_short(str(first))})"


def _short(text: str) -> str:
    text = text.split("Original exception Traceback")[0]
    text = text.split("Traceback (most recent call last)")[0].strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
