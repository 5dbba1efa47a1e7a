"""aotc.toml: targets by name, which `aotc build` builds in its folder."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, SAMPLES, Outcome

from aotc.many.project import KEYS, find_project, read_project
from aotc.many.toml_lines import Lines
from aotc.request_words import make_request

Aotc = Callable[..., Outcome]

PROJECT = """\
[defaults]
chips = "sm_90"
optimization = 1

[target.texts]
inputs = ["kernels/*.mlir"]
emit = ["ptx"]

[target.packages]
inputs = ["kernels/one.mlir"]
emit = "header"
target = ["x86_64-linux-gnu.2.28", "aarch64-linux-gnu.2.28"]
out = "include/"
prefix = "my_"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernels").mkdir()
    for name in ("two", "one"):
        shutil.copy(SAMPLES / "vector_add.mlir", tmp_path / "kernels" / f"{name}.mlir")
    (tmp_path / "aotc.toml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _made(folder: Path) -> list[str]:
    given = ("kernels", "aotc.toml")
    files = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    return sorted(str(file) for file in files if file.parts[0] not in given)


TEXTS = ["build/texts/one_kernels.sm_90.ptx", "build/texts/two_kernels.sm_90.ptx"]
HEADERS = [
    "include/aarch64-linux-gnu.2.28/my_one.h",
    "include/x86_64-linux-gnu.2.28/my_one.h",
]


def test_all_targets_are_built_from_below(
    aotc: Aotc, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places are relative to the file, wherever below it the command runs."""
    monkeypatch.chdir(folder / "kernels")
    done = aotc("build", "-j", "2").succeeded()
    assert done.stderr.startswith("aotc: 4 built (")
    assert _made(folder) == [*TEXTS, *HEADERS]


def test_targets_by_name(aotc: Aotc, folder: Path) -> None:
    aotc("build", "texts").succeeded()
    assert _made(folder) == TEXTS


def test_a_file_wins_over_a_target(aotc: Aotc, folder: Path) -> None:
    shutil.copy(SAMPLES / "vector_add.mlir", folder / "texts")
    aotc("build", "texts", "--emit", "ptx", "--chip", "sm_80", "-o", "x.ptx").succeeded()
    assert ".target sm_80" in Path("x.ptx").read_text()


def test_a_folder_does_not_win_over_a_target(aotc: Aotc, folder: Path) -> None:
    """kernels/ may have the inputs of the target kernels."""
    (folder / "texts").mkdir()
    aotc("build", "texts").succeeded()
    assert _made(folder) == TEXTS


def test_the_command_line_wins_over_the_file(aotc: Aotc, folder: Path) -> None:
    """Where an option is written; what it is without being written does not count."""
    aotc("build", "texts", "--chip", "sm_80", "--target", "x86_64-linux-musl").succeeded()
    assert _made(folder) == [name.replace("90", "80") for name in TEXTS]
    aotc("build", "packages", "--target", "x86_64-linux-gnu.2.30", "-o", "other/").succeeded()
    assert _made(folder)[-1] == "other/my_one.h"


def test_every_key_is_an_option(folder: Path) -> None:
    """What the file says arrives in the request, as the option of that name would."""
    (folder / "passes").write_text("builtin.module(canonicalize)")
    (folder / "aotc.toml").write_text(
        '[target.all]\ninputs = "kernels/one.mlir"\nemit = "obj"\nchips = ["sm_80", "sm_90"]\n'
        'ptx = "compute_80"\ntarget = "x86_64-linux-musl"\noptimization = 2\ndebug = true\n'
        'entries = "add"\nwarnings = ["error"]\nweights = "w/file"\npipeline = "@passes"\n'
        'memory = "managed"\nblock = "32x8"\nprefix = "p_"\nruntime = "shared"\n'
        'frontend = "mlir"\ncpu_kernels = false\nout = "o/"\n'
        "allow_tf32 = true\nallow_3xtf32 = true\nlineinfo = true\n"
        '[target.all.frontend_options]\na = "b"\n'
    )
    project = read_project(folder / "aotc.toml")
    ((planned),) = project.plan(["all"], {}, frozenset())
    r = planned.request
    assert planned.pipeline == "@passes"
    assert [chip.name for chip in r.chips] == ["sm_80", "sm_90"]
    assert r.ptx is not None
    assert (r.ptx.compute, r.target.triple) == ("compute_80", "x86_64-linux-musl")
    assert (r.optimization, r.debug, r.entries, r.warnings.all_fatal) == (2, True, ("add",), True)
    assert (r.weights, r.pipeline) == (Path("w/file"), "builtin.module(canonicalize)")
    assert (r.memory.value, r.block, r.prefix) == ("managed", (32, 8), "p_")
    assert (r.shares_runtime, r.frontend, r.frontend_options) == (True, "mlir", (("a", "b"),))
    assert (r.cpu_kernels, r.out, r.source) == (False, "o/", Path("kernels/one.mlir"))
    assert (r.allow_tf32, r.allow_3xtf32, r.lineinfo) == (True, True, True)


def test_every_option_of_a_build_is_a_key() -> None:
    """But what Python alone gives, and where intermediates go and are printed; and the manual has
    each."""
    options = set(inspect.signature(make_request).parameters)
    others = {"source", "content", "is_module", "save_temps", "print_ir"}
    assert set(KEYS) - {"inputs"} == options - others
    manual = (REPOSITORY / "docs" / "build_systems.md").read_text()
    manual = manual.split("## aotc.toml\n")[1].split("\n## ")[0]
    assert [key for key in KEYS if f"`{key}`" not in manual] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\na = [\n", "aotc.toml:2: error: "),
        ("[target.a]\ninputs = \n", "aotc.toml:2: error: Invalid value."),
        (
            "[target.a]\ninputs = 'x.mlir'\nemitt = 'exe'\n",
            ":3: error: unknown key 'emitt'. Did",
        ),
        (
            "[default]\n[target.a]\ninputs='x'",
            ":1: error: unknown key 'default'. Did you mean",
        ),
        ("[target.a]\nemit = 'exe'\n", "aotc.toml:1: error: target 'a' has no 'inputs'."),
        ("[defaults]\n", "aotc.toml:1: error: there is no [target.NAME]."),
        ("[defaults]\ninputs = 'x'\n[target.a]\ninputs = 'x'", ":2: error: unknown key 'inputs'."),
        (
            "[target.a]\ninputs = 'x'\ndebug = 1\nemit = [1]\n",
            "aotc.toml:3: error: 'debug' is true or false, not 1.\n"
            "aotc.toml:4: error: 'emit' is a text, or a list of texts, not [1].\n",
        ),
        ("[target.a]\ninputs = 'x'\noptimization = true\n", ":3: error: 'optimization' is a numb"),
        ("[target.a]\ninputs = ['-']\n", "aotc.toml:2: error: 'inputs' names files: '-' is for"),
        ("[target.a]\ninputs = []\n", "aotc.toml:2: error: 'inputs' is empty."),
        ("[target.a]\n\ninputs = 'none/*.mlir'\n", ":3: error: no file is 'none/*.mlir'."),
        ("[target.a]\ninputs = 'x'\n\nchips = 'sm_9'\n", ":4: error: Unknown chip 'sm_9'."),
        ("[defaults]\nemit = 'ex'\n[target.a]\ninputs = 'x'\n", ":2: error: Unknown --emit 'ex'."),
        (
            "[target.'a b']\ninputs = 'x'\nemit = 'cpu-mlir'\ncpu_kernels = false\n",
            "aotc.toml:1: error: --emit cpu-mlir asks for what",
        ),
        (
            "[target.a]\ninputs = 'kernels/*.mlir'\nout = 'aotc.toml'\n",
            "aotc.toml:1: error: -o aotc.toml is a file, and there are 2 inputs",
        ),
        (
            "[target.a]\ninputs = 'x'\nout = 'aotc.toml'\n"
            "target = ['x86_64-linux-musl', 'aarch64-linux-musl']\n",
            "aotc.toml:3: error: 'out' is a file, and 'target' has several",
        ),
        (
            "[defaults]\nout = 'o/'\n[target.a]\ninputs = 'kernels/one.mlir'\n"
            "[target.b]\ninputs = 'kernels/one.mlir'\n",
            "kernels/one.mlir (a) and kernels/one.mlir (b) would both be 'o/one'.",
        ),
        ('[target.a]\ninputs = "ok\\u0000.mlir"\n', "2: error: 'inputs' has a NUL character."),
        (
            '[target.a]\ninputs = "a.mlir"\nout = "x\\u0000"\n',
            "3: error: 'out' has a NUL character.",
        ),
    ],
)
def test_what_is_wrong_has_its_place(text: str, words: str, aotc: Aotc, folder: Path) -> None:
    (folder / "aotc.toml").write_text(text)
    done = aotc("build")
    assert done.code == 2
    assert words in done.stderr
    assert _made(folder) == []


def test_words_that_are_neither(aotc: Aotc, folder: Path) -> None:
    """A near target's name is told; what looks like a file is missed as a file."""
    done = aotc("build", "text")
    assert (done.code, done.stderr) == (
        2,
        "aotc: error: 'text' is no file, and no target of aotc.toml. Did you mean texts? "
        "Targets: texts, packages.\n",
    )
    assert "Cannot read 'no.mlir'" in aotc("build", "no.mlir").stderr


def test_nothing_to_build(aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = aotc("build")
    assert done.code == 2
    assert "no input is named, and there is no aotc.toml here or above" in done.stderr


def test_the_nearest_file_is_the_one(folder: Path) -> None:
    inner = folder / "kernels" / "deeper"
    inner.mkdir()
    assert find_project(inner) == folder / "aotc.toml"
    (folder / "kernels" / "aotc.toml").touch()
    assert find_project(inner) == folder / "kernels" / "aotc.toml"


def test_lines() -> None:
    lines = Lines(
        '[a]\nx = 1\n\n[ target . "b c" ]\n"y z" = 2\nsub.key = 3\n[target."b c".t]\nx = 4\n'
    )
    assert lines.of("a", "x") == 2
    assert lines.of("target", "b c") == 4
    assert lines.of("target", "b c", "y z") == 5
    assert lines.of("target", "b c", "sub") == 6
    assert lines.of("target", "b c", "t", "x") == 8
    assert lines.of("x") is None
