"""The documentation as a site, and what of it is generated and kept: manual pages, the picture."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))
import man
import session

# What pages of the site have, of sources that are not in docs/.
SHOWN = {
    "reference/cli.html": "GPU architectures to compile for, such as sm_80,sm_90a",
    "reference/python.html": "Builds a module, as aotc build does",
    "reference/c.html": "int32_t vector_add(const float *x",
    "reference/manifest.html": "The host: x86_64-linux-gnu.2.28.",
    "readme.html": "Five minutes",
    "samples/index.html": "A tour",
    "runtime_c/include/aotc_runtime.h.html": "Nothing happens before it is asked for.",
}


def test_the_site(tmp_path: Path) -> None:
    """It builds as in `make docs`, with no link to nothing, and loads nothing from elsewhere."""
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    pages = {page.relative_to(tmp_path).as_posix(): page for page in tmp_path.rglob("*.html")}
    for name, page in pages.items():
        loaded = re.findall(
            r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"?((?:https?:)?//[^\s\">]+)",
            page.read_text(),
        )
        assert loaded == [], name
    for name, text in SHOWN.items():
        shown = html.unescape(re.sub(r"<[^>]+>", "", pages[name].read_text()))
        assert text in " ".join(shown.split()), name


def test_the_index_lists_every_page() -> None:
    index = (REPOSITORY / "docs" / "index.md").read_text()
    links = re.findall(r"^ +- \[.*\]\((.*\.md)\)$", index, re.MULTILINE)
    pages = {
        path.relative_to(REPOSITORY / "docs").as_posix()
        for path in (REPOSITORY / "docs").rglob("*.md")
    }
    assert pages - {*links} == {"index.md"}


def test_manual_pages_are_those_of_the_command_line(request: pytest.FixtureRequest) -> None:
    """`make docs`, or --update-golden, writes them again."""
    if request.config.getoption("--update-golden"):
        man.main([])
    kept = {path.name: path.read_text() for path in man.PAGES.iterdir()}
    assert kept == man.pages()


@pytest.mark.skipif(not Path("/usr/bin/groff").exists(), reason="there is no groff")
def test_manual_pages_are_roff() -> None:
    pages = sorted(man.PAGES.iterdir())
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", *map(str, pages)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


def test_the_picture_shows_what_the_commands_print(tmp_path: Path) -> None:
    """Sizes and counts of registers may have changed; `make docs` records them again."""
    picture = session.PICTURE.read_text()
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
    assert _shown(picture) == _shown(session.picture(session.record(tmp_path)))


def _shown(picture: str) -> str:
    texts = re.findall(r"<text[^>]*>(.*?)</text>", picture, re.DOTALL)
    shown = html.unescape("".join(texts)).replace("\xa0", " ")
    return re.sub(r"[\d.]+", "0", re.sub(r"\s+", " ", shown))
