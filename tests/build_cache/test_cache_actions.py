"""Commands by way of the cache: what makes one another command, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotc.cache.actions import ToolCache
from aotc.cache.identity import Identities
from aotc.cache.report import Report
from aotc.cache.results import Results
from aotc.cache.store import Store
from aotc.errors import ToolError
from aotc.toolchain import Runner

TOOL = """#!/bin/sh
# Writes its arguments and what is in its inputs; counts its runs.
echo run >> {count}
echo out; echo err >&2
if [ "$1" = fail ]; then exit 3; fi
output=$1; shift
echo "$@" > $output
cat "$@" >> $output
chmod 755 $output
"""


class Place:
    """A tool, and folders in which builds run it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tool = folder / "tool"
        self.tool.write_text(TOOL.format(count=folder / "count"))
        self.tool.chmod(0o755)
        self.report = Report(Store(folder / "cache"), "test")
        self.said = ""

    @property
    def runs(self) -> int:
        count = self.folder / "count"
        return len(count.read_text().splitlines()) if count.exists() else 0

    def run(
        self,
        work: str,
        *inputs: str | Path,
        output: str = "made",
        env: dict[str, str] | None = None,
        reads: list[Path] | None = None,
    ) -> bytes:
        folder = self.folder / work
        store = Store(self.folder / "cache")
        cache = ToolCache(Results(store, self.report), Identities(store, {}, {}))
        runner = Runner({"HOME": str(self.folder)}, cache=cache)
        done = runner.run(
            [str(self.tool), output, *map(str, inputs)],
            making="it",
            cwd=folder,
            env=env,
            reads=inputs if reads is None else reads,
            writes=[output],
        )
        self.said = done.stdout + done.stderr
        return (folder / output).read_bytes()

    def write(self, work: str, **files: str) -> None:
        (self.folder / work).mkdir(exist_ok=True)
        for name, text in files.items():
            (self.folder / work / name).write_text(text)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_same_elsewhere_is_not_run(place: Place) -> None:
    place.write("one", a="A\n", b="B\n")
    place.write("two", a="A\n", b="B\n", made="old")
    first = place.run("one", "a", "b")
    assert first == b"a b\nA\nB\n"
    assert place.run("two", "a", "b") == first
    assert place.runs == 1
    assert place.said == "out\nerr\n"
    assert (place.folder / "two" / "made").stat().st_mode & 0o111


def test_what_makes_it_another(place: Place) -> None:
    place.write("one", a="A\n", b="B\n")
    place.run("one", "a", "b")
    place.run("one", "b", "a")
    place.run("one", "a", "b", output="other")
    place.run("one", "a", "b", env={"X": "1"})
    place.write("one", b="other\n")
    assert place.run("one", "a", "b") == b"a b\nA\nother\n"
    place.tool.write_text(place.tool.read_text() + "# More.\n")
    place.run("one", "a", "b")
    assert place.runs == 6
    place.run("one", "a", "b")
    assert place.runs == 6


def test_a_file_outside_counts_by_its_contents(place: Place) -> None:
    place.write("one", a="A\n")
    place.write("here", lib="L\n")
    place.write("there", lib="L\n")
    place.write("elsewhere", lib="other\n")
    place.run("one", "a", place.folder / "here" / "lib")
    place.run("one", "a", place.folder / "there" / "lib")
    assert place.runs == 1
    place.run("one", "a", place.folder / "elsewhere" / "lib")
    assert place.runs == 2


def test_two_files_of_one_name(place: Place) -> None:
    """Which of them is which counts."""
    place.write("one", a="A\n")
    place.write("here", lib="1\n")
    place.write("there", lib="2\n")
    here, there = place.folder / "here" / "lib", place.folder / "there" / "lib"
    place.run("one", here, there)
    place.run("one", there, here)
    assert place.runs == 2
    place.run("one", here, there, reads=[there, here])
    assert place.runs == 3


def test_what_it_gives_is_not_the_caches_own(place: Place) -> None:
    place.write("one", a="A\n")
    first = place.run("one", "a")
    for _ in range(2):
        with (place.folder / "one" / "made").open("r+b") as file:
            file.write(b"something")
        assert place.run("one", "a") == first
    assert place.runs == 1


def test_a_link_to_what_was_made_before_stays_as_it_is(place: Place) -> None:
    """Outputs are delivered by a link, where that can be: they are the user's then."""
    place.write("one", a="A\n")
    place.run("one", "a")
    delivered = place.folder / "delivered"
    delivered.hardlink_to(place.folder / "one" / "made")
    before = delivered.read_bytes()
    place.write("one", a="other\n")
    place.write("two", a="other\n")
    place.run("two", "a")
    place.run("one", "a")
    assert place.runs == 2
    assert delivered.read_bytes() == before


def test_a_failure_is_not_kept(place: Place) -> None:
    place.write("one", a="A\n")
    for _ in range(2):
        with pytest.raises(ToolError, match="tool could not make it: exit code 3"):
            place.run("one", "a", output="fail")
    assert place.runs == 2


def test_the_report(place: Place) -> None:
    place.write("one", a="A\n")
    place.run("one", "a")
    place.run("one", "a")
    place.write("one", a="B\n")
    place.report.save()
    place.report = Report(Store(place.folder / "cache"), "test")
    place.run("one", "a")
    assert [line.text() for line in place.report.lines] == ["made: missed (a changed)"]
    assert (place.report.found, place.report.missed) == (0, 1)
