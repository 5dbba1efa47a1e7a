"""Every command that README.md, docs/ and the samples show works, and prints what they say.

`blocks` tells how a page says what is run.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documentation.blocks import LANGUAGES, PAGES, Block, blocks, pattern, wrong_words
from helpers.command import REPOSITORY, SAMPLES

# Between the outputs of two commands.
_MARK = "\x1e"


def _runs(block: Block) -> bool:
    return block.not_run is None and all(map(_is_there, block.needs))


def _is_there(name: str) -> bool:
    return (
        importlib.util.find_spec(name) is not None or shutil.which(name, path=_path()) is not None
    )


def _path(*folders: Path) -> str:
    """PATH, with the programs of this Python's environment."""
    return os.pathsep.join(map(str, (*folders, Path(sys.executable).parent, os.environ["PATH"])))


BLOCKS = {page: blocks(page) for page in PAGES}
RUN = [
    page
    for page in PAGES
    if page != SAMPLES / "README.md"  # tests/e2e/test_tour.py runs it
    and any(block.commands() and _runs(block) for block in BLOCKS[page])
]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages build the same modules; those of other processes, too."""
    return tmp_path_factory.getbasetemp().parent / "cache_of_pages"


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands(page: Path, cache: Path, tmp_path: Path) -> None:
    if not shutil.which("cc") or not shutil.which("bash"):
        pytest.skip("there is no cc or no bash")
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "samples").symlink_to(SAMPLES)
    environment = _environment(tmp_path, cache, BLOCKS[page])
    for block in BLOCKS[page]:
        if block.file is not None:
            place = folder / block.file
            place.parent.mkdir(exist_ok=True)
            place.write_text(block.text)
        elif block.commands() and _runs(block):
            _check(block, folder, environment)


def _environment(folder: Path, cache: Path, of_page: list[Block]) -> dict[str, str]:
    programs = folder / "bin"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    for name, words in {"aotc": "-m aotc", "python": "", "pip": "-m pip"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {python} {words} "$@"\n')
        (programs / name).chmod(0o755)
    # What a page takes away is its own.
    clears = any("aotc cache" in block.text for block in of_page)
    return {
        **os.environ,
        "PATH": _path(programs),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(folder / "page" / "packages")]),
        "PYTHONWARNINGS": "ignore",
        "AOTC_CACHE": str(folder / "cache" if clears else cache),
        "AOTC_DEVICE": "cpu",
    }


def _check(block: Block, folder: Path, environment: dict[str, str]) -> None:
    commands = block.commands()
    lines = ["set -e", *block.before]
    for command in commands:
        lines += [f"printf '{_MARK}'", command.text]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{block.place}: {done.stdout}{done.stderr}"
    _, *outputs = done.stdout.split(_MARK)
    for command, printed in zip(commands, outputs, strict=True):
        if command.expected is not None:
            is_as_said = re.fullmatch(pattern(command.expected), printed)
            assert is_as_said, f"{block.place}: $ {command.text}\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_what_is_not_run_is_checked(page: Path) -> None:
    """Each block has a language, so that none of them hides commands; options and files exist."""
    files = {block.file for block in BLOCKS[page] if block.file}
    for block in BLOCKS[page]:
        assert block.language in LANGUAGES, f"{block.place}: ```{block.language}"
        if block.language == "text":
            assert not re.search(r"^(\$|make|pip|python) |^\./", block.text, re.MULTILINE), (
                block.place
            )
        if not _runs(block):
            for command in block.commands():
                assert wrong_words(command.text, files) == [], f"{block.place}: {command.text}"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("aotc build a.mlir -O2 -Wno-host-only --chip=sm_80 -- --any", []),
        (
            "aotc build a.mlir --chop sm_80 && aotc biuld b.mlir",
            ["aotc build --chop", "aotc biuld"],
        ),
        ("AOTC_DEVICE=cpu aotc cache trim --sizes 1G | sort", ["aotc cache trim --sizes"]),
        ("make demo JOBS=4    # with four", []),
        ("make dmeo", ["make dmeo"]),
        ("python -m bench.builds --rounds 1; python -m bench.nothing", ["python -m bench.nothing"]),
        ("pip install 'aotc[torch]'", []),
        ("env/bin/pip install 'aotc[trch]'", ["aotc[trch]"]),
    ],
)
def test_wrong_words_are_found(line: str, wrong: list[str]) -> None:
    assert wrong_words(line) == wrong
