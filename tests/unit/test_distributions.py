"""Versions and files of installed distributions, against importlib.metadata."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from aotc.distributions import files_of, info_folder, version_of

NAMES = ("click", "torch-mlir", "Torch_MLIR", "nvidia.cuda-nvcc", "pytest")


@pytest.mark.parametrize("name", NAMES)
def test_installed(name: str) -> None:
    assert version_of(name) == importlib.metadata.version(name)
    distribution = importlib.metadata.distribution(name)
    expected = [Path(str(distribution.locate_file(file))) for file in distribution.files or []]
    assert files_of(name) == expected


def test_none() -> None:
    assert version_of("no-such-thing") is None
    assert info_folder("no-such-thing") is None
    assert files_of("no-such-thing") is None


def test_what_is_installed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two builds of a notebook. A name with a dash; a file's with a comma."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert version_of("my-thing") is None
    info = tmp_path / "My_Thing-1.2.post3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-thing\nVersion: 1.2.post3\n")
    (info / "RECORD").write_text('my/one.py,sha256=x,3\n"my/a,b.py",,\n')
    assert version_of("my.thing") == "1.2.post3"
    assert files_of("my-thing") == [tmp_path / "my/one.py", tmp_path / "my/a,b.py"]


def test_what_has_no_such_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As old installers left it."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    info = tmp_path / "old_thing.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old-thing\nVersion: 4.5\n")
    assert info_folder("old-thing") is None
    assert version_of("old-thing") == "4.5"
