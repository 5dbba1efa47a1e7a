"""`aotc new`: projects that build and test a kernel, by the commands of their README."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from consumers.support import run
from helpers.command import Outcome, process_environment

from aotc.new_project import KINDS

Aotc = Callable[..., Outcome]


@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_of_the_readme(
    kind: str,
    aotc: Aotc,
    environment: dict[str, str],
    cc: dict[str, Path],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """They build the kernel and run its test, which passes; a wrong kernel fails it."""
    if kind == "make" and shutil.which("make") is None:
        pytest.skip("there is no make")
    for tool in {"cmake": ("cmake", "ninja")}.get(kind, ()):
        pytest.importorskip(tool)
    project = tmp_path / "my_axpy"
    aotc("new", project, f"--{kind}").succeeded()
    readme = (project / "README.md").read_text()
    found = re.search(r"```\n(.*?)\n```", readme, re.DOTALL)
    assert found is not None
    # The table has every file, and none of them the template's name.
    named = {line.split("`")[1] for line in readme.splitlines() if line.startswith("| `")}
    assert {".gitignore", "README.md", *named} == {file.name for file in project.iterdir()}
    assert not any(re.search("(?i)kernel_?name", file.read_text()) for file in project.iterdir())
    own = process_environment(
        {
            **environment,
            **{key: str(path) for key, path in cc.items()},
            "AOTC_DEVICE": "cpu",
            # Four projects have one kernel.
            "AOTC_CACHE": str(tmp_path_factory.getbasetemp() / "cache_of_new"),
            "CMAKE_GENERATOR": "Ninja",
        }
    )
    script = f"set -e\n{found[1]}\n"
    run(["sh", "-c", script], env=own, cwd=project)
    source = project / "my_axpy.mlir"
    source.write_text(source.read_text().replace("arith.addf", "arith.subf"))
    with pytest.raises(AssertionError, match=r"y\[0\] is -0.5, expected 0.5|Mismatched elements"):
        run(["sh", "-c", script], env=own, cwd=project)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1st"], "A project cannot be called '1st': its kernel is called so, too. Expected a let"),
        (["my-axpy"], "A project cannot be called 'my-axpy': its kernel is called so, too. Expec"),
        (["main"], "A project cannot be called 'main': its kernel is called so, too, and the name"),
        (["double"], "A project cannot be called 'double': its kernel is called so, too, and the"),
        (["json", "--python"], "A project cannot be called 'json': its kernel is called so, too,"),
        (["full"], "'full' is there already, and is no empty folder."),
    ],
)
def test_what_cannot_be(
    words: list[str],
    message: str,
    aotc: Aotc,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/file").touch()
    done = aotc("new", *words)
    assert done.code == 2
    assert done.stderr.startswith(f"aotc: error: {message}")
    assert [str(file) for file in Path().rglob("*")] == ["full", "full/file"]
