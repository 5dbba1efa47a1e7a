"""Damaged and hostile files: an error that says what is wrong, in bounded time and memory."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, Outcome, process_environment
from inspected.fuzz import fuzz, kinds_of
from inspected.hostile import HOSTILE, fatbin_of
from inspected.support import Built

from aotc.errors import InputError
from aotc.images.view import View
from aotc.inspect.report import report_of
from aotc.targets.cuda.images import lz4

KINDS = (
    "exe",
    "shared",
    "static",
    "obj",
    "fatbin",
    "fatbin (size)",
    "fatbin (speed)",
    "cubin",
    "ptx",
)
COPIES = 2000
MIB = 1 << 20


@pytest.fixture(scope="module")
def kinds(built: Built, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return kinds_of(built, tmp_path_factory.mktemp("packed"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_copies(kinds: dict[str, bytes], kind: str) -> None:
    """Each gives a report or an InputError; among them are both."""
    outcomes = fuzz(kinds[kind], seed=1, count=COPIES)
    assert outcomes.total() == COPIES
    assert outcomes["report"] > 0
    assert outcomes["error"] + outcomes["report with problems"] > COPIES / 20


def test_fuzz_finds_a_reader_without_bounds(
    kinds: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same copies, where nothing is compared with what is there."""
    monkeypatch.setattr(View, "check", lambda *_: None)
    with pytest.raises(struct.error):
        fuzz(kinds["obj"], seed=1, count=COPIES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#!/bin/sh\n", "it is no file that aotc inspects: it begins with '23 21 2f 62 69 6e 2f"),
        (b"\x7fELF\x02\x01", "it is damaged: the ELF header would be bytes 0 to 16 of 6."),
        (b"\x7fELF\x01\x01" + bytes(60), "it is an ELF file of 32 bits, little-endian: aotc reads"),
        (b"!<thin>\n", "it is a thin archive: it names files, and has nothing of them."),
        (b"!<arch>\n" + b"x" * 60, "it is damaged: no member begins at byte 8."),
    ],
)
def test_files_that_are_none(
    aotc: Callable[..., Outcome], tmp_path: Path, content: bytes, message: str
) -> None:
    place = tmp_path / "it"
    place.write_bytes(content)
    failed = aotc("inspect", place)
    assert failed.code == 2
    assert failed.stderr.startswith(f"aotc: error: {message}")


def test_no_file(aotc: Callable[..., Outcome], tmp_path: Path) -> None:
    assert aotc("inspect", tmp_path / "gone").stderr == (
        f"aotc: error: Cannot read '{tmp_path}/gone': No such file or directory.\n"
    )
    (tmp_path / "empty").touch()
    assert aotc("inspect", tmp_path / "empty").stderr == (
        f"aotc: error: '{tmp_path}/empty' is empty.\n"
    )
    assert aotc("inspect", tmp_path).stderr == (
        f"aotc: error: '{tmp_path}' is no file that can be inspected.\n"
    )


def test_rest_of_a_damaged_file(aotc: Callable[..., Outcome], built: Built, tmp_path: Path) -> None:
    """What can be read is reported; the exit code, and stderr, say what cannot."""
    place = tmp_path / "it"
    content = bytearray(built.fatbin.read_bytes())
    content[content.rindex(b"\x7fELF") + 4] = 7
    place.write_bytes(content)
    failed = aotc("inspect", place)
    assert failed.code == 2
    assert "sm_80 cubin" in failed.stdout
    assert "damaged" in failed.stdout
    assert failed.stderr == (
        "aotc: error: image 1 of the fat binary at byte 0 of it is an ELF file of 32 bits, "
        "little-endian: aotc reads those of 64 bits, little-endian.\n"
    )


def test_what_is_not_known_is_no_damage() -> None:
    """What nvcc keeps for link-time optimization, whose content is NVIDIA's own."""
    (image,) = report_of(View(fatbin_of(8, 0x8000, b"anything", 5000), "it")).images
    assert (image.kind, image.chip, image.bytes) == ("ltoir", "lto_80", 5000)
    assert image.problem is None


def test_note_of_another_aotc(aotc: Callable[..., Outcome], built: Built, tmp_path: Path) -> None:
    place = tmp_path / "it"
    content = built.object.read_bytes()
    place.write_bytes(content.replace(b'"manifest_version":2', b'"manifest_version":9'))
    failed = aotc("inspect", place)
    assert (failed.code, failed.stderr) == (
        2,
        "aotc: error: The note of aotc in it is a manifest of version 9; this aotc reads 2.\n",
    )
    assert "sm_80 cubin" in failed.stdout


def test_names_cannot_move_the_cursor(
    aotc: Callable[..., Outcome], built: Built, tmp_path: Path
) -> None:
    place = tmp_path / "it"
    place.write_bytes(built.cubin().read_bytes().replace(b"scale_kernel", b"s\x1b[2J\x07kernel"))
    assert r"s\x1b[2J\x07kernel" in aotc("inspect", place).stdout


@pytest.mark.parametrize(
    ("block", "size", "content"),
    [
        (bytes([0x10]) + b"a", 1, b"a"),
        # A match of 4 + 15 + 255 + 2 bytes at distance 1: it repeats what it makes.
        (bytes([0x1F]) + b"a" + b"\x01\x00" + b"\xff\x02" + b"\x10b", 278, b"a" * 277 + b"b"),
        (bytes([0x42]) + b"abcd" + b"\x04\x00" + b"\x10e", 11, b"abcdabcdabe"),
    ],
)
def test_lz4(block: bytes, size: int, content: bytes) -> None:
    assert lz4.decompress(block, size, "it") == content
    for wrong in (size - 1, size + 1):
        with pytest.raises(InputError, match="it is damaged"):
            lz4.decompress(block, wrong, "it")


@pytest.fixture(scope="module")
def hostile() -> dict[str, tuple[float, float]]:
    """Seconds, and the peak of memory in MiB, for each hostile file, in a process of their own."""
    script = Path(__file__).parent / "hostile.py"
    done = subprocess.run(
        [sys.executable, script],
        env=process_environment({"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}"}),
        check=True,
        capture_output=True,
        timeout=100,
    )
    found: dict[str, tuple[float, float]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files(hostile: dict[str, tuple[float, float]], what: str) -> None:
    """Small files that ask for much: neither time nor memory goes with what they say."""
    seconds, peak = hostile[what]
    assert seconds < 10
    assert peak < 450


def test_zstd_bomb() -> None:
    """A megabyte that decompresses to more than it says is given up at what it says."""
    zstd = pytest.importorskip("backports.zstd")
    bomb = zstd.compress(bytes(64 * MIB))
    tracemalloc.start()
    try:
        report = report_of(View(fatbin_of(1, 0x8000, bomb, 1000), "it"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.problems == (
        "image 0 of the fat binary at byte 0 of it is damaged: it has 1001 bytes without "
        "compression, not 1000.",
    )
    assert peak < MIB
