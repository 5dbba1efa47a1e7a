"""What is shown while a build runs."""

from __future__ import annotations

import os
import pty
import sys
import time

import pytest

from aotc import observers
from aotc.observers import Progress


def test_it_names_the_stage_and_counts_tasks() -> None:
    progress = Progress(lambda: (2, 6))
    progress.stage_started("cubin")
    progress.close()
    assert progress.__rich__() == "aotc: cubin (2 of 6) ..."
    assert Progress(lambda: None).__rich__() == "aotc:  ..."


def test_a_terminal_shows_it_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that ends before shows nothing."""
    monkeypatch.setattr(observers, "_PROGRESS_DELAY", 0.1)
    own, other = pty.openpty()
    with os.fdopen(other, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        short = Progress(lambda: None)
        short.stage_started("load")
        short.close()
        progress = Progress(lambda: (1, 4))
        progress.stage_started("ptx")
        shown = b""
        deadline = time.monotonic() + 20
        while b"ptx (1 of 4)" not in shown and time.monotonic() < deadline:
            shown += os.read(own, 4096)
        progress.close()
    os.close(own)
    assert b"aotc: ptx (1 of 4) ..." in shown
    assert b"load" not in shown
