"""What tests of several workers use, made once a session."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """The session's own folder: under xdist each worker has another one in it."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """`folder`, which `make` fills: by whichever worker asks first; the others wait for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            draft = folder.with_name(f"{folder.name}.draft")
            draft.mkdir(exist_ok=True)
            make(draft)
            draft.rename(folder)
    return folder
