"""Executables for the end-to-end tests."""

from __future__ import annotations

import pytest
from e2e.support import Programs
from helpers.shared import shared_folder


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(shared_folder(tmp_path_factory) / "programs")
