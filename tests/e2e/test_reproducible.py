"""The same input gives the same bytes: wherever, whoever, whenever, however many cores."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from gpu import weights_programs
from helpers.command import REPOSITORY, SAMPLES, build_here, process_environment

from aotc.artifacts import named_kinds

KINDS = ",".join(kind.name for kind in named_kinds())
NOBODY = 65534

# What should not matter, but the user and the time of the file.
OTHERWISE = {
    "PYTHONHASHSEED": "2",
    "TZ": "Asia/Tokyo",
    "LC_ALL": "C.UTF-8",
    "LANG": "tr_TR",
    "USER": "somebody",
    "LOGNAME": "somebody",
    "COLUMNS": "31",
    "CFLAGS": "-DEVIL",
    "SOURCE_DATE_EPOCH": "7",
}
# One core, so that what runs side by side elsewhere comes one after the other; another umask.
CONFINED = (
    "import os, sys; os.umask(0o027); os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


def another_user() -> list[str]:
    """The words that run a command as nobody, who may read what root may. Skips the test where
    that cannot be."""
    setpriv = shutil.which("setpriv")
    words = [
        *(setpriv or "setpriv", "--clear-groups", f"--reuid={NOBODY}", f"--regid={NOBODY}"),
        *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
    ]
    if setpriv is None or os.getuid() != 0:
        pytest.skip("only root can be another user, by setpriv")
    tried = subprocess.run(
        [*words, sys.executable, "-m", "aotc", "--version"],
        env=process_environment({"HOME": "/nonexistent"}),
        capture_output=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip("another user cannot use what is installed here")
    return words


def build(
    source: Path,
    folder: Path,
    options: Sequence[str],
    *,
    environment: dict[str, str],
    words: Sequence[str] = (),
) -> dict[str, bytes]:
    """The files that `aotc build` makes of a copy of `source` in `folder`, by name; `words` come
    before the command."""
    place = folder / source.name
    shutil.copyfile(source, place)
    arguments = ["-m", "aotc", "build", place.name, "--emit", KINDS, *options, "-o", "out/"]
    subprocess.run(
        [*words, sys.executable, *arguments],
        env=process_environment({"TMPDIR": str(folder), **environment}),
        cwd=folder,
        check=True,
    )
    out = folder / "out"
    files = [file for file in sorted(out.rglob("*")) if file.is_file()]
    made = {str(file.relative_to(out)): file.read_bytes() for file in files}
    for name, content in made.items():
        for path in (folder, REPOSITORY):
            assert str(path).encode() not in content, f"{name} names {path}"
    return made


def assert_same(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    kinds = {Path(file).suffix for file in first}
    assert {"", ".a", ".so", ".o", ".s", ".ll", ".ptx", ".cubin", ".fatbin"} <= kinds
    assert {".h", ".json", ".mlir", ".pc", ".cmake"} <= kinds
    assert list(first) == list(second)
    assert [file for file, content in first.items() if second[file] != content] == []


@pytest.mark.parametrize("options", [(), ("-g", "--runtime", "shared", "-O1")], ids=["-O3", "-g"])
def test_two_builds_give_the_same_bytes(options: Sequence[str], tmp_path: Path) -> None:
    """In two folders, two environments, on two and on one core."""
    source = tmp_path / f"{weights_programs.PROGRAM}.mlir"
    source.write_text(weights_programs.TEXT)
    folders = [tmp_path / "one", tmp_path / "another folder" / "deeper"]
    for folder in folders:
        folder.mkdir(parents=True)
    first = build(source, folders[0], options, environment={"PYTHONHASHSEED": "1"})
    os.utime(source, (86400, 86400))
    words = [sys.executable, "-c", CONFINED]
    second = build(source, folders[1], options, environment=OTHERWISE, words=words)
    assert_same(first, second)


def test_a_weights_file_is_the_same_too(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        source = folder / f"{weights_programs.PROGRAM}.mlir"
        source.write_text(weights_programs.TEXT)
        build_here(source, "--chip", "sm_90", "--weights", folder / "w", "-o", folder / "program")
        made.append([(folder / file).read_bytes() for file in ("program", "w")])
    assert made[0] == made[1]


@pytest.mark.exhaustive
def test_two_users_get_the_same_bytes(tmp_path: Path) -> None:
    """The second one's runtime is compiled anew, too, into a cache of its own."""
    words = another_user()
    source = SAMPLES / "softmax.mlir"
    mine = build(source, tmp_path, (), environment={})
    # Not beside the first one's: a linker asks by access(2), which knows no capability.
    with tempfile.TemporaryDirectory() as place:
        os.chown(place, NOBODY, NOBODY)
        environment = {**OTHERWISE, "HOME": place, "XDG_CACHE_HOME": ""}
        theirs = build(source, Path(place), (), environment=environment, words=words)
    assert_same(mine, theirs)
