"""What the tests of the cache use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from build_cache.support import Cached
from helpers.command import Outcome


@pytest.fixture
def cached(aotc: Callable[..., Outcome], tmp_path: Path) -> Cached:
    return Cached(aotc, tmp_path)
