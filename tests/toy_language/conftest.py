"""samples/toy as pip leaves it: its package and its entry point on Python's path."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from helpers.command import SAMPLES

TOY = SAMPLES / "toy"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((TOY / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    metadata = tmp_path / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = project["entry-points"]["aotc.frontends"]
    lines = ["[aotc.frontends]", *(f"{key} = {value}" for key, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(metadata.parent))
    monkeypatch.syspath_prepend(str(TOY))
