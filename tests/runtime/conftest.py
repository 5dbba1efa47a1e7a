"""Fixtures of the runtime's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime.support import FAKE_DRIVER, STRICT_FLAGS, compile_c, include_flags


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with a libcuda.so.1: `new`, `old`, and `none`, where it is no library."""
    folder = tmp_path_factory.mktemp("drivers")
    for name, defines in {"new": [], "old": ["-DFAKE_OLD_DRIVER"]}.items():
        (folder / name).mkdir()
        compile_c(
            [
                *STRICT_FLAGS,
                *include_flags(),
                *defines,
                *("-shared", "-Wl,-soname,libcuda.so.1", *FAKE_DRIVER, "-pthread"),
                *("-o", folder / name / "libcuda.so.1"),
            ],
            making=f"the {name} fake driver",
        )
    # Found first, and refused: a real driver on this machine is not looked for.
    (folder / "none").mkdir()
    (folder / "none" / "libcuda.so.1").write_text("no library\n")
    return folder
