"""Patterns of files find what Python's `glob` finds."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest

from aotc.errors import InputError
from aotc.many.patterns import find_files

FILES = ("a.mlir", "b.txt", ".hidden.mlir", "k/a.mlir", "k/deep/er/c.mlir", ".git/d.mlir", "l/x[1]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.mlir", "**/*.mlir", "**", "k/**", "**/**/*.mlir", "**/er/*", "*/*.mlir", ".*", ".*/*"),
        *("[ab].*", "k/?.mlir", "k//a.*", "./*.mlir", "k/../*.mlir", "none/*", "*/", "**/", "l/x*"),
        *("**.mlir", "l/x[[]1]", "**/deep/**", "*/a.mlir", "a.mlir/*"),
    ],
)
def test_as_glob_has_it(pattern: str, folder: Path) -> None:
    for words in (pattern, f"{folder}/{pattern}"):
        known = glob.glob(words, root_dir=folder, recursive=True)  # noqa: PTH207
        files = {one.replace("//", "/") for one in known if (folder / one).is_file()}
        assert find_files(words, folder) == sorted(files)


def test_links_in_a_circle(folder: Path) -> None:
    """`**` passes by links to folders; names and `*` follow them."""
    (folder / "k" / "up").symlink_to("..")
    (folder / "k" / "self").symlink_to("self")
    assert find_files("**/a.mlir", folder) == ["a.mlir", "k/a.mlir"]
    assert find_files("k/*/a.mlir", folder) == ["k/up/a.mlir"]


def test_a_folder_of_more_than_are_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aotc.many.patterns.MOST", 6)
    assert find_files("*.mlir", folder) == ["a.mlir"]
    with pytest.raises(InputError, match=r"'\*\*' has more than 6 files and folders to look at"):
        find_files("**", folder)
