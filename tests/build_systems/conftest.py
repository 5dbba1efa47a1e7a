"""Copies of the samples that are built from source, and the tools that build them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from consumers.support import CONSUMERS, find_gcc, run, zig_compiler
from helpers.command import SAMPLES

Run = Callable[..., str]


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a folder of samples/consumers, with what it reads beside it."""

    def copy(name: str) -> Path:
        shutil.copytree(CONSUMERS, tmp_path / "samples" / "consumers")
        for module in ("vector_add.mlir", "dot.mlir"):
            shutil.copy(SAMPLES / module, tmp_path / "samples")
        return tmp_path / "samples" / "consumers" / name

    return copy


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """This one, with this Python's programs in front, and without what says where others are."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("LD_", "PKG_CONFIG", "CMAKE", "MAKE", "NINJA"))
        and key not in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPATH", "LIBRARY_PATH")
    }
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{kept.get('PATH', os.defpath)}"}


@pytest.fixture
def scons(tmp_path: Path, environment: dict[str, str]) -> Run:
    """`scons(folder, *words)`: what it prints."""

    def call(folder: Path, *words: str) -> str:
        return run([sys.executable, "-m", "SCons", "-Q", *words], env=environment, cwd=folder)

    return call


@pytest.fixture
def cc(tmp_path: Path) -> dict[str, Path]:
    """CC and CXX: the system's, else zig's, as one word each."""
    found = find_gcc() or zig_compiler(tmp_path / "compilers")
    return {"CC": found.c, "CXX": found.cxx}


@pytest.fixture
def other_aotc(tmp_path: Path) -> Path:
    """A command in aotc's place: writes down how it was called, touches -o, and says the version
    that stands in the file beside it."""
    script = tmp_path / "other-aotc"
    script.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then cat "$0.version"; exit; fi\n'
        'for last; do :; done\ntouch "$last"\n'
    )
    script.chmod(0o755)
    (tmp_path / "other-aotc.version").write_text("1")
    return script
