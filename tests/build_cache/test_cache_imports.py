"""Inputs of front ends, which are found before a front end is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from build_cache.support import steps
from helpers.command import Outcome

from aotc.cache.identity import Identities
from aotc.cache.imports import ImportedInput

Aotc = Callable[..., Outcome]

TEXT = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


class Built:
    """Builds of `net.stablehlo` with a cache of its own."""

    def __init__(self, aotc: Aotc, folder: Path) -> None:
        self._aotc, self.folder, self.source = aotc, folder, folder / "net.stablehlo"
        self.source.write_text(TEXT)

    def build(self, *options: str) -> dict[str, str]:
        command = ("build", self.source, "--emit", "host-mlir", "--chip", "sm_90", *options)
        place = ("--cache", self.folder / "cache", "--explain-cache", "-o", self.folder / "out")
        return steps(self._aotc(*command, *place).succeeded().stderr)


@pytest.fixture
def built(aotc: Aotc, tmp_path: Path) -> Built:
    return Built(aotc, tmp_path)


def test_a_second_build_is_found_as_a_whole(built: Built) -> None:
    assert built.build()["import"].startswith("missed")
    made = (built.folder / "out").read_bytes()
    assert built.build() == {"import": "found", "build": "found"}
    assert (built.folder / "out").read_bytes() == made


def test_another_input_or_option_is_another_build(built: Built) -> None:
    built.build()
    built.source.write_text(TEXT.replace("add", "multiply"))
    assert built.build()["import"].startswith("missed")
    assert built.build("--frontend-option", "entry=f")["import"].startswith("missed")
    assert "@f(" in (built.folder / "out").read_text()


def test_other_packages_are_another_build(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a front end is made of may make another module of the same file."""
    built.build()
    monkeypatch.setattr(Identities, "packages", "#others")
    assert built.build()["import"].startswith("missed")


def test_a_framework_from_its_sources_is_asked_again(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is under development changes without another version."""
    sources = tmp_path / "sources" / "torch"
    sources.mkdir(parents=True)
    (sources / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(sources.parent))
    for _ in range(2):
        said = built.build()
        assert said["build"] == "passed by (a framework is imported from a folder of sources)"


def test_a_front_end_of_others_is_asked_again(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which files it reads, and what it is made of, it alone knows."""
    monkeypatch.setattr("aotc.frontends.registry.Frontend.is_own", False)
    for _ in range(2):
        said = built.build()
        assert said["import"].startswith("missed")
        assert not re.match("found", said.get("build", ""))


def test_files_beside_the_input_count(tmp_path: Path) -> None:
    path, weights = tmp_path / "net.onnx", tmp_path / "weights"
    path.write_bytes(b"net")
    weights.write_bytes(b"one")
    read = ImportedInput.of(path, 100)
    known = read.with_files([weights])
    assert known is not None
    document = known.document()
    assert read.matching(document) == known
    weights.write_bytes(b"two")
    assert read.matching(document) is None
    weights.unlink()
    assert read.matching(document) is None


def test_an_input_that_changes_meanwhile_is_not_noted(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"net")
    read = ImportedInput.of(path, 100)
    path.write_bytes(b"another")
    assert read.with_files([]) is None


def test_large_inputs_are_passed_by(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"n" * 11)
    with pytest.raises(ValueError, match="11 bytes"):
        ImportedInput.of(path, 10)
