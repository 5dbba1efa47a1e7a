"""Files are put down whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from aotc.errors import InputError
from aotc.output import NewFile, check_writable, write_file, write_files


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_new_file(tmp_path: Path) -> None:
    write_file(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"
    assert names(tmp_path / "a" / "b") == ["file"]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
@pytest.mark.parametrize("executable", [False, True])
def test_permissions_are_those_of_the_umask(mask: int, executable: bool, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_file(tmp_path / "file", b"", executable=executable)
        assert os.umask(mask) == mask  # asking for it changed nothing
    finally:
        os.umask(before)
    wanted = (0o777 if executable else 0o666) & ~mask
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == wanted


def test_a_reader_sees_the_old_file_or_the_new(tmp_path: Path) -> None:
    """The old file is replaced in one step: whoever has it open keeps it."""
    place = tmp_path / "file"
    place.write_bytes(b"old")
    with place.open("rb") as reader:
        write_file(place, b"new content")
        assert reader.read() == b"old"
    assert place.read_bytes() == b"new content"


def test_a_running_program_can_be_replaced(tmp_path: Path) -> None:
    """Writing into it would fail (text file busy); a rename does not."""
    place = tmp_path / "program"
    write_file(place, Path("/bin/sleep").read_bytes(), executable=True)
    import subprocess

    with subprocess.Popen([place, "60"]) as process:
        write_file(place, b"#!/bin/sh\n", executable=True)
        process.kill()
    assert place.read_bytes() == b"#!/bin/sh\n"


def test_nothing_is_left_of_a_write_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", fail)
    with pytest.raises(InputError, match=r"Cannot write '.*/file': No space left on device\."):
        write_file(place, b"new")
    assert place.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_nothing_is_left_of_a_write_that_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fchmod", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "file", b"new")
    assert names(tmp_path) == []


def test_a_directory_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(InputError, match=r"Cannot write '.*/file': it is a directory\."):
        write_file(tmp_path / "file", b"")
    assert names(tmp_path) == ["file"]


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(InputError, match="Cannot write"):
        write_file(tmp_path / "file" / "below", b"")


def test_a_fifo_is_written_to(tmp_path: Path) -> None:
    place = tmp_path / "fifo"
    os.mkfifo(place)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(place.read_bytes()))
    reader.start()
    write_file(place, b"content")
    reader.join()
    assert read == [b"content"]
    assert stat.S_ISFIFO(place.stat().st_mode)


def test_a_symbolic_link_stays(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "target")
    write_file(tmp_path / "link", b"content")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "target").read_bytes() == b"content"


def test_what_can_be_written(tmp_path: Path) -> None:
    check_writable(tmp_path)
    check_writable(tmp_path / "not" / "there" / "yet")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="is not a directory"):
        check_writable(tmp_path / "file")
    with pytest.raises(InputError, match=r"Cannot write into '.*/below': '.*/file' is not a dir"):
        check_writable(tmp_path / "file" / "below")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every folder")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    with pytest.raises(InputError, match="permission denied"):
        check_writable(tmp_path / "locked" / "below")


def test_several_files_are_there_or_none(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"content")
    first, second = tmp_path / "a" / "first", tmp_path / "a" / "second"
    second.mkdir(parents=True)
    new = [NewFile(first, source, executable=True), NewFile(second, b"other")]
    with pytest.raises(InputError, match=r"Cannot write '.*/second': it is a directory\."):
        write_files(new)
    assert names(tmp_path / "a") == ["second"]
    second.rmdir()
    write_files(new)
    assert (first.read_bytes(), second.read_bytes()) == (b"content", b"other")
    assert names(tmp_path / "a") == ["first", "second"]
    assert stat.S_IMODE(first.stat().st_mode) & stat.S_IXUSR


def test_a_file_from_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no second name for it, it is copied."""

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    source = tmp_path / "source"
    source.write_bytes(b"content")
    write_file(tmp_path / "file", source)
    assert (tmp_path / "file").read_bytes() == b"content"
    assert names(tmp_path) == ["file", "source"]
