"""What `mkdocs build` needs to know of this repository (a hook, which mkdocs.yml names).

- The navigation is the list in docs/index.md.
- Pages link to files outside of docs/, as one reads them in the repository. Markdown among these
  become pages, and other text pages with that text.
- `<!-- generated: SOURCE -->` is replaced by what a C header or a JSON schema says.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from generated import generated  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
_DOCS = REPOSITORY / "docs"
_LINK = re.compile(r"(\]\()([^()\s#:]+)((?:#[^()\s]*)?\))")
# What is quoted has no links.
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".h": "c", ".mlir": "mlir", ".py": "python", ".json": "json", ".toml": "toml"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    text = (_DOCS / "index.md").read_text().split("<!-- nav -->")[1]
    config.nav = _nav(text)
    return config


def _nav(text: str) -> list[dict[str, Any]]:
    """The list of pages, of two levels, as mkdocs.yml has it."""
    nav: list[dict[str, Any]] = []
    for indent, title, link in re.findall(
        r"^( *)- (?:\[(.+?)\]\((.+?)\)|.+)$|^- (.+)$", text, re.MULTILINE
    ):
        print(indent, title, link)
    return nav
