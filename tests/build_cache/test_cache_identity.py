"""What a build is made with: the same text for the same contents, another one for others."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from aotc.cache import identity
from aotc.cache.identity import Identities
from aotc.cache.store import Store

LIST = "ziglang/zig,sha256=AAA,3\nziglang/lib/x.h,sha256=BBB,3\n"


def identities(folder: Path) -> Identities:
    """Those of a new process."""
    return Identities(Store(folder / "cache"), {}, {})


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """ziglang, as pip installs it."""
    site = tmp_path / "lib" / "site-packages"
    (site / "ziglang").mkdir(parents=True)
    (site / "ziglang" / "zig").write_text("zig")
    record = site / "ziglang-0.17.1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(LIST + "ziglang/x.pyc,sha256=CCC,1\n../../bin/y,sha256=DDD,1\n")
    return site


def test_a_tool_of_a_package_is_its_packages_list(package: Path, tmp_path: Path) -> None:
    tool = package / "ziglang" / "zig"
    first = identities(tmp_path).of_program(tool)
    assert first.startswith("ziglang 0.17.1 #")
    # In another place, installed by another tool, which lists other things of its own.
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "lib").rename(elsewhere)
    record = elsewhere / "site-packages" / "ziglang-0.17.1.dist-info" / "RECORD"
    lines = LIST.splitlines()
    record.write_text(f"{lines[1]}\n{lines[0]}\nziglang-0.17.1.dist-info/UV,sha256=E,1\n")
    tool = elsewhere / "site-packages" / "ziglang" / "zig"
    assert identities(tmp_path).of_program(tool) == first
    # Another file of the package is another package.
    record.write_text(LIST.replace("BBB", "XXX"))
    os.utime(tool, (time.time(),) * 2)  # as an installation has it
    assert identities(tmp_path).of_program(tool) not in (first, "")


def test_a_tool_that_was_changed_is_not_its_packages(package: Path, tmp_path: Path) -> None:
    tool = package / "ziglang" / "zig"
    first = identities(tmp_path).of_program(tool)
    tool.write_text("my")
    later = time.time() + 1000
    os.utime(tool, (later, later))
    second = identities(tmp_path).of_program(tool)
    assert second.startswith("#")
    tool.write_text("me")
    os.utime(tool, (later + 1, later + 1))
    assert len({first, second, identities(tmp_path).of_program(tool)}) == 3


def test_a_tool_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "tool"
    tool.write_text("tool")
    first = identities(tmp_path).of_program(tool)

    def read(path: Path) -> str:
        raise AssertionError(path)

    monkeypatch.setattr(identity, "content_digest", read)
    assert identities(tmp_path).of_program(tool) == first


def test_aotcs_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "aotc"
    (folder / "lower" / "__pycache__").mkdir(parents=True)
    (folder / "lower" / "pass.py").write_text("a")
    (folder / "data.toml").write_text("b")
    monkeypatch.setattr(identity, "_PACKAGE", folder)
    monkeypatch.setattr(identity, "_data_folders", list)
    first = identities(tmp_path).aotc
    (folder / "lower" / "__pycache__" / "pass.pyc").write_text("compiled")
    (folder / "lower" / "pass.py").touch()
    assert identities(tmp_path).aotc == first
    seen = {first}
    for name, text in (("lower/pass.py", "A"), ("data.toml", "B"), ("new.py", "")):
        (folder / name).write_text(text)
        seen.add(identities(tmp_path).aotc)
    assert len(seen) == 4
    (folder / "new.py").rename(folder / "old.py")
    assert identities(tmp_path).aotc not in seen
    # The same in another place.
    now = identities(tmp_path).aotc
    folder.rename(tmp_path / "moved")
    monkeypatch.setattr(identity, "_PACKAGE", tmp_path / "moved")
    assert identities(tmp_path).aotc == now


def test_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = identities(tmp_path).installed
    assert installed["torch_mlir"].startswith("torch_mlir 2")
    assert installed["numpy"].startswith("numpy 2")
    assert installed["clang"] == installed["zig"]
    assert {"ptxas", "fatbinary", "libdevice", "cuda-include"} < set(installed)
    assert "none" not in {name: one for name, one in installed.items() if name != "mlir"}.values()
    # Remembered: nothing of it is looked for again.
    monkeypatch.setattr(Identities, "_find_installed", None)
    assert identities(tmp_path).installed == installed
    # A folder of sources that happens to be called so is no package.
    (tmp_path / "here" / "mlir" / "lib").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "here"), *sys.path])
    assert identities(tmp_path).installed == installed
    (tmp_path / "here" / "mlir" / "_mlir_libs").mkdir()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "here"), *sys.path])
    assert identities(tmp_path).installed["mlir"].startswith("#")


def test_bindings_that_were_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site-packages"
    library = site / "torch_mlir" / "_mlir_libs" / "lib.so"
    library.parent.mkdir(parents=True)
    library.write_text("library")
    record = site / "torch_mlir-1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("torch_mlir/_mlir_libs/lib.so,sha256=AAA,7\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    first = identities(tmp_path).installed["torch_mlir"]
    assert first.startswith("torch_mlir 1 #")
    library.write_text("another")
    later = time.time() + 1000
    os.utime(library, (later, later))
    assert identities(tmp_path).installed["torch_mlir"].startswith(f"{first} #")
    # A package that comes: its folder's time tells.
    assert identities(tmp_path).installed["numpy"].startswith("numpy")


def test_a_tool_that_is_not_there(tmp_path: Path) -> None:
    tools = Identities(Store(tmp_path), {"AOTC_PTXAS": "/nowhere"}, {}).installed
    assert tools["ptxas"] == "none"
