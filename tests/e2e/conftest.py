"""Executables for the end-to-end tests."""

from __future__ import annotations

import os

import pytest
from e2e.support import Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    base = tmp_path_factory.getbasetemp()
    # Under xdist each worker has a folder of its own in the session's.
    return Programs((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "programs")
