"""The comparison of recorded artifacts finds each difference, and ignores names when asked to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fuzz.corpus import PROGRAM

from artifacts import compare, record

OPTIONS = ("--chip", "sm_90", "--emit", "mlir,ptx,header")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module that builds, a kernel, and a module that does not parse."""
    folder = tmp_path_factory.mktemp("recorded")
    for module in (
        record.Module("samples", "double", PROGRAM, OPTIONS),
        record.Module("kernels", "a", PROGRAM, OPTIONS),
        record.Module("tests", "wrong", "func.func", OPTIONS),
    ):
        record.record(module, folder / module.group / module.name)
    return folder


def changed(recorded: Path, folder: Path, name: str, old: str, new: str) -> Path:
    """A copy of the folder in which a text of one file differs."""
    shutil.copytree(recorded, folder)
    file = folder / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return folder


def test_a_folder_is_equal_to_itself(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([str(recorded), str(recorded)]) == 0
    assert capsys.readouterr().out.startswith("7 artifacts before, 7 after; 0 differ")


def test_an_instruction_that_changed_is_found(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(recorded.glob("samples/double/*.ptx")).relative_to(recorded)
    after = changed(recorded, tmp_path / "after", str(name), "add.rn.f32", "sub.rn.f32")
    assert compare.main([str(recorded), str(after), "--but-for-names"]) == 1
    said = capsys.readouterr().out
    assert "sm_90.ptx: 1 differ" in said
    assert "sub.rn.f32" in said


def test_a_message_that_changed_is_found(recorded: Path, tmp_path: Path) -> None:
    after = changed(recorded, tmp_path / "after", "tests/wrong/refused.txt", "error:", "note:")
    assert compare.main([str(recorded), str(after)]) == 1


@pytest.mark.parametrize("group", ["samples/double", "kernels/a"])
def test_names_of_kernels_may_differ_if_asked(recorded: Path, tmp_path: Path, group: str) -> None:
    name = next(recorded.glob(f"{group}/*.ptx")).relative_to(recorded)
    after = changed(recorded, tmp_path / "after", str(name), "double_kernel", "add_f32")
    assert compare.main([str(recorded), str(after)]) == 1
    assert compare.main([str(recorded), str(after), "--but-for-names"]) == 0


def test_a_kernel_is_found_under_another_folder(recorded: Path, tmp_path: Path) -> None:
    after = tmp_path / "after"
    shutil.copytree(recorded, after)
    (after / "kernels" / "a").rename(after / "kernels" / "b")
    assert compare.main([str(recorded), str(after)]) == 0


def test_a_group_of_refusals_alone_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is refused before and after would be found to be equal."""
    wrong = record.Module("kernels", "wrong", "func.func", OPTIONS)
    right = record.Module("samples", "double", PROGRAM, OPTIONS)
    monkeypatch.setattr(record, "modules", lambda: iter([wrong, right]))
    assert record.main([str(tmp_path / "both"), "--only", "kernels,samples"]) == 1
    assert "every module was refused of: kernels" in capsys.readouterr().err
    assert record.main([str(tmp_path / "right"), "--only", "samples"]) == 0
