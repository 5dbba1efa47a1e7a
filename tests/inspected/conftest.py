"""What is inspected."""

from __future__ import annotations

import pytest
from inspected.support import Built, build_small


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_small(tmp_path_factory.mktemp("inspected"))
