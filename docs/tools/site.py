"""What `mkdocs build` needs to know of this repository: a hook, which mkdocs.yml names.

- The navigation is the list in docs/index.md.
- Pages link to files outside of docs/, as one reads them in the repository. Markdown among these
  are pages of the site, and so are other texts, with their content.
- `<!-- generated: SOURCE -->` is replaced by what a header or a schema has (`generated`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from generated import generated

REPOSITORY = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"(?<=\]\()([^()\s#:]+)((?:#[^()\s]*)?)(?=\))")
# What is quoted has no links.
_QUOTED = re.compile(r"^```.*?^```$|``.*?``|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)
# What has to be installed, for the tests; the highlighter has no use for it.
_NEEDS = re.compile(r"^(```console) \w+$", re.MULTILINE)
# Not all of them are in the navigation.
_UNLISTED = InclusionLevel.NOT_IN_NAV
_PICTURES = (".svg", ".png")
_LANGUAGES = {".h": "c", ".c": "c", ".mlir": "mlir", ".py": "python", ".json": "json"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    text = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
    config.nav = _navigation(text.split("<!-- nav -->")[1])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files outside of docs/ that its pages link to, and those that these link to."""
    waiting = [REPOSITORY / "docs" / file.src_uri for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        for target in _targets(waiting.pop()):
            if target in seen:
                continue
            seen.add(target)
            if files.get_file_from_path(_uri(target)) is None:
                files.append(_file(target, config))
            if target.suffix == ".md":
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    place = _place(page.file.src_uri)

    def target(match: re.Match[str]) -> str:
        path, anchor = match.groups()
        found = _found(place, path)
        if found is None:
            return match[0]  # mkdocs warns
        here = PurePosixPath(page.file.src_uri).parent
        return os.path.relpath(_uri(found), here) + anchor

    text = "".join(
        part if is_quoted else _LINK.sub(target, part) for part, is_quoted in _parts(markdown)
    )
    text = _GENERATED.sub(lambda match: generated(match[1]), text)
    return _NEEDS.sub(r"\1", text)


def _navigation(text: str) -> list[Any]:
    """The list of pages and of sections with pages, as mkdocs.yml would have it."""
    navigation: list[Any] = []
    for line in text.splitlines():
        match = re.fullmatch(r"( *)- (?:\[(.+)\]\((.+)\)|(.+))", line)
        if match is None:
            continue
        indent, title, link, section = match.groups()
        if section:
            navigation.append({section: []})
            continue
        found = _found(REPOSITORY / "docs" / "index.md", link)
        page = {title: _uri(found) if found else link}
        if indent:
            (pages,) = navigation[-1].values()
            pages.append(page)
        else:
            navigation.append(page)
    return navigation


def _targets(page: Path) -> Iterator[Path]:
    """The files of the repository that a page links to."""
    for part, is_quoted in _parts(page.read_text(encoding="utf-8")):
        if is_quoted:
            continue
        for link in _LINK.finditer(part):
            target = _found(page, link[1])
            if target is not None:
                yield target


def _found(page: Path, link: str) -> Path | None:
    """The file that a link of a page leads to; of a folder, its README."""
    target = (page.parent / link).resolve()
    if target.is_dir():
        target /= "README.md"
    return target if target.is_relative_to(REPOSITORY) and target.is_file() else None


def _uri(target: Path) -> str:
    """The path within the site's sources."""
    path = target.relative_to(REPOSITORY)
    if path.parts[0] == "docs":
        return path.relative_to("docs").as_posix()
    if path.as_posix() == "README.md":
        return "readme.md"  # README.md would be the site's index, which docs/index.md is
    return path.as_posix() if path.suffix in (".md", *_PICTURES) else f"{path.as_posix()}.md"


def _place(uri: str) -> Path:
    """The file of a page, by its path within the site's sources."""
    if uri == "readme.md":
        return REPOSITORY / "README.md"
    inside = REPOSITORY / "docs" / uri
    return inside if inside.exists() else REPOSITORY / uri


def _file(target: Path, config: MkDocsConfig) -> File:
    uri = _uri(target)
    if target.suffix in (".md", *_PICTURES):
        return File.generated(config, uri, abs_src_path=str(target), inclusion=_UNLISTED)
    language = _LANGUAGES.get(target.suffix, "text")
    text = target.read_text(encoding="utf-8")
    content = f"# {target.relative_to(REPOSITORY)}\n\n````{language}\n{text}\n````\n"
    return File.generated(config, uri, content=content, inclusion=_UNLISTED)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, and of each whether it is quoted code."""
    at = 0
    for quoted in _QUOTED.finditer(text):
        yield text[at : quoted.start()], False
        yield quoted[0], True
        at = quoted.end()
    yield text[at:], False
