"""Whatever happens to the cache, builds give the same files."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from build_cache.support import Cached, module
from helpers.command import SAMPLES, aotc_command, process_environment

from aotc.cache.store import Miss, Store
from aotc.cache.trim import trim


def damage(file: Path, how: str) -> None:
    content = bytearray(file.read_bytes())
    if how == "emptied":
        content.clear()
    else:
        content[len(content) // 2] ^= 4
    file.write_bytes(content)


@pytest.mark.parametrize("how", ["flipped", "emptied", "removed"])
def test_each_file_of_the_cache_may_be_damaged(cached: Cached, how: str, tmp_path: Path) -> None:
    """One by one: what is damaged is built again, what is not is found."""
    cached.build((SAMPLES / "vector_add.mlir").read_text(), emit="fatbin")
    made = cached.out.read_bytes()
    whole = tmp_path / "whole"
    shutil.copytree(cached.cache, whole)
    outcomes = []
    for file in cached.files("ac", "cas", "identity", "last"):
        if how == "removed":
            file.unlink()
        else:
            damage(file, how)
        cached.out.unlink()
        outcomes.append(cached.build(emit="fatbin")["build"])
        assert cached.out.read_bytes() == made, file
        if how == "flipped":
            # What the tools made, too: without the build and the module.
            for result in cached.files("ac"):
                if b"0/" in result.read_bytes():
                    result.unlink()
            cached.out.unlink()
            cached.build(emit="fatbin")
            assert cached.out.read_bytes() == made, file
        shutil.rmtree(cached.cache)
        shutil.copytree(whole, cached.cache)
    hits = outcomes.count("found")
    assert 0 < hits < len(outcomes)
    assert hits > len(outcomes) // 2
    if how != "removed":
        assert "missed (damaged: its hash was wrong)" in outcomes
        assert "missed (a file of it was damaged: its hash was wrong)" in outcomes
    if how == "removed":
        assert "missed (removed since)" in outcomes
        assert "missed (a file of it was not there)" in outcomes


@pytest.mark.exhaustive
def test_what_is_made_once_may_be_damaged(
    cached: Cached, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime, the harness, the utilities and zig's start-up code are not linked then: they
    are made again, and the executable is the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    cached.build((SAMPLES / "saxpy.mlir").read_text())
    made = cached.out.read_bytes()
    shared = tmp_path / "shared" / "aotc"
    names = (
        "runtime/*/*/*.a",
        "harness/*/*/compare.o",
        "utilities/*/*/*.a",
        "zig/*/*/o/*/libcompiler_rt.a",
    )
    for name in names:
        (file,) = shared.glob(name)
        damage(file, "flipped")
    shutil.rmtree(cached.cache)
    cached.out.unlink()
    outcomes = cached.build()
    assert cached.out.read_bytes() == made
    again = {step: why for step, why in outcomes.items() if why.startswith("made again")}
    assert len(again) == 4
    assert again["the harness for x86_64-linux-gnu.2.28"] == (
        "made again (compare.o is damaged: its hash was wrong)"
    )
    cached.out.unlink()
    shutil.rmtree(cached.cache)
    assert "made again" not in " ".join(cached.build().values())
    assert cached.out.read_bytes() == made


def test_what_is_in_the_way(tmp_path: Path) -> None:
    """A folder where a file belongs: it is not read, and nothing can be kept there."""
    store = Store(tmp_path)
    digest = store.write_blob(b"content")
    place = tmp_path / "cas" / digest.hash[:2] / digest.hash
    place.unlink()
    place.mkdir()
    with pytest.raises(Miss, match="cannot be read: Is a directory"):
        store.read_blob(digest)
    store.write_blob(b"content")
    assert store.trouble == "Is a directory"


def test_a_pipe_in_the_way(tmp_path: Path) -> None:
    """It is a damaged file, which nobody waits for."""
    store = Store(tmp_path)
    digest = store.write_blob(b"content")
    place = tmp_path / "cas" / digest.hash[:2] / digest.hash
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(Miss, match="damaged"):
        store.read_blob(digest)
    store.write_blob(b"content")
    assert store.read_blob(digest) == b"content"


def start(cached: Cached, out: Path, source: Path | None = None) -> subprocess.Popen[str]:
    command = [str(word) for word in cached.command()]
    command[command.index("-o") + 1] = str(out)
    command[1] = str(source or cached.source)
    return subprocess.Popen(
        aotc_command(*command),
        env=process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_several_processes_at_once(cached: Cached, tmp_path: Path) -> None:
    """Three build the same, three others other things."""
    expected = []
    for i in range(3):
        cached.build(module(threads=32 * (i + 1)), "--no-cache")
        expected.append(cached.out.read_bytes())
        (tmp_path / f"{i}").mkdir()
        (tmp_path / f"{i}" / "input.mlir").write_text(cached.source.read_text())
    numbers = [0, 1, 2, 0, 0, 0]
    running = [
        start(cached, tmp_path / f"out{n}", tmp_path / f"{number}" / "input.mlir")
        for n, number in enumerate(numbers)
    ]
    for n, (process, number) in enumerate(zip(running, numbers, strict=True)):
        _, said = process.communicate(timeout=100)
        assert process.returncode == 0, said
        assert (tmp_path / f"out{n}").read_bytes() == expected[number]
    assert cached.files("tmp") == []
    for n in range(3):
        cached.source = tmp_path / f"{n}" / "input.mlir"
        assert cached.build() == {"build": "found"}
        assert cached.out.read_bytes() == expected[n]


def test_a_kill_at_any_moment(cached: Cached, tmp_path: Path) -> None:
    """What is there afterwards is whole, or is not taken."""
    cached.source.write_text(module())
    cached.build(None, "--no-cache")
    made = cached.out.read_bytes()
    moments = random.Random(7)
    for _ in range(6):
        process = start(cached, tmp_path / "killed")
        time.sleep(moments.uniform(0.15, 1.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        cached.build()
        assert cached.out.read_bytes() == made
        # As if there were no more than what the killed one left.
        for file in cached.files("ac"):
            if moments.random() < 0.5:
                file.unlink()


def test_drafts_of_the_killed_are_swept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = store.write_blob(b"content")
    old, new, other = (
        tmp_path / "tmp" / name for name in ("1-" + "0" * 16, "2-" + "a" * 16, "somebody's")
    )
    for file in (old, new, other):
        file.write_bytes(b"half")
    for file in (old, other):
        os.utime(file, (time.time() - 7200,) * 2)
    trim(store, 1000)
    assert not old.exists()
    assert new.exists()
    assert other.exists()
    # Somebody may be about to write the result that needs it.
    assert store.read_blob(digest) == b"content"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes a disk of a size, where one can be had."""
    place = tmp_path / "disk"

    def make(size: str) -> Path:
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            pytest.skip("mount: not allowed here")
        return place

    yield make
    subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)


def test_a_full_disk(cached: Cached, disk: Callable[[str], Path]) -> None:
    cached.build(module(), "--no-cache")
    made = cached.out.read_bytes()
    cached.cache = disk("64k") / "cache"
    for _ in range(2):
        cached.out.unlink()
        cached.build()
        assert cached.out.read_bytes() == made
        note = f"aotc: note: nothing is kept in the cache {cached.cache}: No space left on device\n"
        assert cached.outcome.stderr.count(note) == 1
    assert cached.files("tmp") == []
    cached.build(None, "-q")
    assert "note" not in cached.outcome.stderr


def test_a_folder_that_cannot_be_written(cached: Cached, disk: Callable[[str], Path]) -> None:
    """What is there is found; what is not there is built, and that it is not kept is said."""
    cached.build(module(), emit="manifest")
    place = disk("4m")
    shutil.copytree(cached.cache, place / "cache")
    cached.cache = place / "cache"
    remount = ["mount", "-o", "remount,ro", str(place)]
    subprocess.run(remount, check=True)
    assert cached.build(emit="mlir")["build"].startswith("missed")
    note = f"aotc: note: nothing is kept in the cache {cached.cache}: Read-only file system\n"
    assert cached.outcome.stderr.count(note) == 1
    before = [file.read_bytes() for file in cached.files()]
    assert cached.build(emit="manifest") == {"build": "found"}
    assert "note" not in cached.outcome.stderr
    assert [file.read_bytes() for file in cached.files()] == before


def test_no_folder_can_be_made(cached: Cached, tmp_path: Path) -> None:
    """As with a disk that is not there: for whom a mount is not allowed, too."""
    (tmp_path / "file").write_text("")
    cached.cache = tmp_path / "file" / "cache"
    for _ in range(2):
        assert cached.build(module(), emit="host-mlir")["build"] == "missed (never built)"
        assert "nothing is kept in the cache" in cached.outcome.stderr
        assert cached.outcome.stderr.count("aotc: note:") == 1


def test_a_disk_that_is_full_all_of_a_sudden(tmp_path: Path) -> None:
    """Every write may be the one that fails; then what is there is whole."""
    blobs = [bytes([i]) * 1000 for i in range(5)]
    for fails in range(12):
        store = _FailingStore(tmp_path / f"{fails}", fails)
        digests = [store.write_blob(blob) for blob in blobs]
        store.write_result("ab" * 32, b"result")
        reader = Store(store.root)
        assert not list(store.root.glob("tmp/*"))
        for digest, blob in zip(digests, blobs, strict=True):
            place = store.root / "cas" / digest.hash[:2] / digest.hash
            assert not place.exists() or reader.read_blob(digest) == blob
        assert (store.trouble is None) == (fails >= 6)


class _FailingStore(Store):
    """One whose disk is full after some files."""

    def __init__(self, root: Path, writes: int) -> None:
        super().__init__(root)
        self._writes = writes

    def _write(self, place: Path, data: bytes) -> None:
        self._writes -= 1
        if self._writes < 0:
            raise OSError(28, "No space left on device")
        super()._write(place, data)
