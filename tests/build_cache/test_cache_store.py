"""The cache's files: results, blobs, what is taken away first, and `aotc cache`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from build_cache.support import Cached, module
from helpers.command import Outcome

from aotc.cache.report import Report
from aotc.cache.result import ActionResult, Digest, OutputFile
from aotc.cache.results import Made, Results, key_of
from aotc.cache.sizes import parse_size, size_text
from aotc.cache.store import Miss, Store
from aotc.cache.trim import clear, note_use, trim, usage
from aotc.errors import InputError

A, B = Digest.of(b"a"), Digest.of(b"b" * 300)
RESULT = ActionResult(
    (OutputFile("out/x.o", A), OutputFile("y", B, is_executable=True)), A, B, "aotc 1"
)


def test_a_result_is_the_message_of_bazels_protocol() -> None:
    """Written out by hand from remote_execution.proto: field numbers, wire types, lengths."""
    digest = bytes([0x0A, 64]) + A.hash.encode() + bytes([0x10, 1])
    file = bytes([0x0A, 1]) + b"p" + bytes([0x12, len(digest)]) + digest + bytes([0x20, 1])
    message = (
        bytes([0x12, len(file)]) + file  # output_files
        + bytes([0x32, len(digest)]) + digest  # stdout_digest
        + bytes([0x4A, 4, 0x0A, 2]) + b"me"  # execution_metadata.worker
    )  # fmt: skip
    result = ActionResult((OutputFile("p", A, is_executable=True),), stdout=A, worker="me")
    assert result.to_bytes() == message
    assert ActionResult.from_bytes(message) == result


def test_a_result_and_back() -> None:
    assert ActionResult.from_bytes(RESULT.to_bytes()) == RESULT
    assert ActionResult.from_bytes(b"") == ActionResult(())
    assert RESULT.digests == (A, B)
    # Fields of others: a number (exit code 0), 8 and 4 bytes, a message.
    others = bytes([0x20, 0, 0x79, *range(8), 0x7D, *range(4), 0x1A, 2, 1, 2])
    assert ActionResult.from_bytes(others + RESULT.to_bytes()) == RESULT


def test_bytes_that_are_no_result() -> None:
    data = RESULT.to_bytes()
    whole = 0
    for end in range(1, len(data)):
        try:
            whole += ActionResult.from_bytes(data[:end]) is not None
        except ValueError:
            continue
    # Between two fields it may end.
    assert whole == 4
    upper = data.replace(A.hash.encode(), A.hash.upper().encode())
    path = data.replace(A.hash.encode(), b"../../../../etc/passwd".ljust(64, b"x"))
    for wrong in (upper, path, b"\x20\x01", b"\xff" * 20, b"\x10\x01", b"\x13", b"<html></html>"):
        with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
            ActionResult.from_bytes(wrong)


def results(folder: Path) -> Results:
    store = Store(folder)
    return Results(store, Report(store, "test"))


def test_what_is_kept_is_found(tmp_path: Path) -> None:
    made = Made({"a": b"1", "b": b"", "c/d": b"1"}, frozenset({"b"}), b"out", b"err")
    components = {"kind": "test", "x": "1"}
    assert results(tmp_path).find("s", components) is None
    results(tmp_path).keep(components, made)
    assert results(tmp_path).find("s", components) == made
    assert results(tmp_path).find("s", components, ["c/d", "a", "b"]) == made
    assert results(tmp_path).find("s", {**components, "x": "2"}) is None
    # Equal bytes are one file; empty ones none.
    assert len(list((tmp_path / "cas").rglob("*/*"))) == 3


def test_other_files_than_expected_are_no_result(tmp_path: Path) -> None:
    results(tmp_path).keep({"x": "1"}, Made({"a": b"1"}))
    assert results(tmp_path).find("s", {"x": "1"}, ["b"]) is None


def test_a_result_under_another_key_is_none(tmp_path: Path) -> None:
    """Somebody's copy, or a mistake of a disk: each result says which one it is."""
    results(tmp_path).keep({"x": "1"}, Made({"a": b"1"}))
    one, two = key_of({"x": "1"}), key_of({"x": "2"})
    source = tmp_path / "ac" / one[:2] / one
    target = tmp_path / "ac" / two[:2] / two
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(source.read_bytes())
    assert results(tmp_path).find("s", {"x": "2"}) is None
    assert not target.exists()


def test_keys_tell_names_from_values() -> None:
    keys = [
        {"a": "b", "c": "d"},
        {"a": "b"},
        {"ab": ""},
        {"a": 'b", "c": "d'},
        {"c": "d", "a": "b"},
    ]
    assert len({key_of(components) for components in keys}) == len(keys)


def fill(folder: Path, count: int, size: int) -> list[dict[str, str]]:
    """Results of one blob each, which were used one after the other, a minute apart."""
    everything = []
    for i in range(count):
        components = {"x": str(i)}
        results(folder).keep(components, Made({"a": bytes([i]) * size}))
        key = key_of(components)
        then = 1_000_000_000 + 60 * i
        os.utime(folder / "ac" / key[:2] / key, (then, then))
        everything.append(components)
    return everything


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    everything = fill(tmp_path, 5, 1000)
    assert results(tmp_path).find("s", everything[0]) is not None  # now it is the newest
    trim(Store(tmp_path), 4000)
    here = [results(tmp_path).find("s", one) is not None for one in everything]
    assert here == [True, False, False, True, True]
    assert usage(Store(tmp_path)).blobs == 3
    trim(Store(tmp_path), 0)
    assert usage(Store(tmp_path)).results == usage(Store(tmp_path)).blobs == 0


def test_a_blob_of_two_results_counts_once(tmp_path: Path) -> None:
    for i in range(4):
        results(tmp_path).keep({"x": str(i)}, Made({f"{i}": b"z" * 10_000}))
    trim(Store(tmp_path), 12_000)
    assert usage(Store(tmp_path)).results == 4


def test_results_without_their_blobs_go(tmp_path: Path) -> None:
    fill(tmp_path, 3, 1000)
    next((tmp_path / "cas").rglob("*/*")).unlink()
    trim(Store(tmp_path), 1 << 20)
    assert usage(Store(tmp_path)).results == 2


def test_only_one_trims(tmp_path: Path) -> None:
    import fcntl

    fill(tmp_path, 3, 1000)
    with (tmp_path / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert trim(Store(tmp_path), 0).results == 0
    assert trim(Store(tmp_path), 0).results == 3


def test_the_size_stays_under_the_limit(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each build trims what it added, if that is much; the last build's files stay."""
    limit = 70_000
    monkeypatch.setenv("AOTC_CACHE_SIZE", str(limit))
    for threads in range(1, 7):
        cached.build(module(threads=threads), emit="obj")
        assert sum(file.stat().st_size for file in cached.files("ac", "cas")) < limit
    assert cached.build(emit="obj") == {"build": "found"}
    assert cached.build(module(threads=1), emit="obj")["build"].startswith("missed")


def test_uses_are_counted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_blob(b"x")
    for _ in range(3):
        note_use(store, 2, 1, 1 << 20)
    with (tmp_path / "journal").open("ab") as file:
        file.write(b"half a li")
    found = usage(store)
    assert (found.found, found.missed) == (6, 3)
    trim(store, 0)
    assert (usage(store).found, usage(store).missed) == (6, 3)
    with (tmp_path / "journal").open("ab") as file:
        file.write(b"1 1 0\n" * 20_000)
    note_use(store, 0, 1, 1 << 20)
    assert (tmp_path / "journal").stat().st_size < 100
    assert (usage(store).found, usage(store).missed) == (20_006, 20_004)


def test_a_damaged_blob_is_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = store.write_blob(b"content")
    place = tmp_path / "cas" / digest.hash[:2] / digest.hash
    assert place.read_bytes() == b"content"
    assert hashlib.sha256(b"content").hexdigest() == place.name
    place.write_bytes(b"CONTENT")
    with pytest.raises(Miss, match="damaged"):
        store.read_blob(digest)
    assert not place.exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("100", 100), ("1K", 1024), ("1.5k", 1536), ("2MiB", 2 << 20), ("4GB", 4 << 30)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--size") == size


def test_sizes_that_are_none() -> None:
    for text in ("", "x", "-1", "1P", "1 2", "1e3"):
        with pytest.raises(InputError, match="is not a size"):
            parse_size(text, "AOTC_CACHE_SIZE")
    assert [size_text(size) for size in (0, 1023, 1024, 1536 << 10, 5 << 40)] == [
        *("0 B", "1023 B", "1.0 KiB", "1.5 MiB", "5120.0 GiB")
    ]


def test_the_command(
    cached: Cached, aotc: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached.build(module(), emit="host-ll")
    cached.build(emit="host-ll")
    said = aotc("cache", "info", "--cache", cached.cache).succeeded().stdout
    assert re.search(r"^results +\d+, of \d+ files$", said, re.MULTILINE)
    assert re.search(r"^found +1 of \d+ \(\d+ %\)$", said, re.MULTILINE)
    as_json = aotc("cache", "info", "--json", "--cache", cached.cache).succeeded().stdout
    document = json.loads(as_json)
    assert document["folder"] == str(cached.cache)
    assert document["found"] == 1
    assert document["results"] == len(cached.files("ac"))
    assert document["blobs"] == len(cached.files("cas"))
    assert document["limit"] == 4 << 30
    said = aotc("cache", "trim", "--size", "1K", "--cache", cached.cache).succeeded().stdout
    assert said.startswith(f"took away {document['results']} results, ")
    assert cached.files("ac", "cas") == []
    cached.build(emit="host-ll")
    (cached.cache / "tmp" / "mine").write_text("mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    library = tmp_path / "xdg" / "aotc" / "runtime" / "x" / "lib.a"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"x" * 5000)
    said = aotc("cache", "info", "--cache", cached.cache).succeeded().stdout
    assert "\nruntime  4.9 KiB, built once for each host target\n" in said
    aotc("cache", "clear", "--cache", cached.cache).succeeded()
    left = [file.name for file in cached.files("ac", "cas", "tmp", "last", "identity")]
    assert left == ["mine"]
    assert not (cached.cache / "ac").exists()
    assert library.exists()
    assert cached.build(emit="host-ll")["build"] == "missed (never built)"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    aotc("cache", "clear", "--runtime", "--cache", cached.cache).succeeded()
    assert not library.exists()


def test_what_cannot_be_removed_is_not_said_to_be(
    cached: Cached, aotc: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of another user, say."""
    cached.build(module(), emit="host-ll")
    monkeypatch.setattr("aotc.cache.trim._unlink", lambda path: None)
    for words in (("clear",), ("trim", "--size", "1")):
        done = aotc("cache", *words, "--cache", cached.cache)
        assert (done.code, done.stdout) == (2, "took away 0 results, 0 B\n")
        assert f"may you write to '{cached.cache}'?" in done.stderr


def test_a_folder_of_something_else_is_not_cleared(
    aotc: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "mine").write_text("mine")
    for command in ("clear", "trim"):
        done = aotc("cache", command, "--cache", tmp_path)
        assert done.code == 2
        assert done.stderr == (
            f"aotc: error: '{tmp_path}' is no cache of aotc's: nothing was removed.\n"
        )
    assert (tmp_path / "tmp" / "mine").exists()


def test_a_cache_that_is_off_or_nowhere(
    aotc: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = aotc("cache", "info")
    assert (done.code, done.stderr) == (
        2,
        "aotc: error: There is no cache: AOTC_CACHE is 'off'.\naotc: hint: --cache DIR\n",
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("AOTC_CACHE", str(tmp_path / "none"))
    assert "results  0, of 0 files\n" in aotc("cache", "info").succeeded().stdout
    assert aotc("cache", "clear").succeeded().stdout == "took away 0 results, 0 B\n"
    monkeypatch.setenv("AOTC_CACHE_SIZE", "much")
    assert "AOTC_CACHE_SIZE 'much' is not a size" in aotc("cache", "info").stderr


def test_backups_pass_it_by(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    store.write_blob(b"x")
    tag = (tmp_path / "cache" / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    clear(store)
    assert store.is_ours
