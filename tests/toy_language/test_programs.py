"""Toy programs, built by aotc and run on the CPU device: what they print, to the byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, SAMPLES, Outcome
from helpers.tour import check, steps
from toy_language.evaluate import output
from toy_language.random_programs import program

import aotc

TOY = SAMPLES / "toy"
Aotc = Callable[..., Outcome]


def _printed(source: Path | str, tmp_path: Path, **options: object) -> str:
    made = aotc.build(
        source, frontend="toy", chips="sm_80", ptx="none", out=tmp_path / "program", **options
    )
    done = subprocess.run(
        [made.path], env={"AOTC_DEVICE": "cpu"}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


EXAMPLES = sorted((TOY / "examples").glob("*.toy"))


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_what_numpy_says(source: Path, tmp_path: Path) -> None:
    assert _printed(source, tmp_path) == output(source.read_text())


def test_the_paragraph_of_the_tour(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """samples/README.md: what it says that two_products prints."""
    monkeypatch.chdir(tmp_path)
    (block,) = steps("toy")
    check(block, tmp_path, aotc)


# Each rank that there is, all of the syntax, and functions that print. Operators go from left to
# right, which the two numbers with 16 digits show.
EVERYTHING = """\
# A comment, and an empty function.
def nothing() {;;}
def five() { return 5; }
def show(x) {
  print(x); ;
  print(transpose(x));
}
def first(x) { return x; var y = unknown; }  # nobody looks behind a return
def main() {
  print(five() + 1 * 2); print(9007199254740992 + 1 + 1);
  print(.1 * 3 * 10000000000000000); print([1, 2.5, .5, 3.]);
  print([[10]]);
  nothing(); show([[1, 2, 3], [4, 5, 6]]);
  var c<2, 2, 1> = [1, 2, 3, 4]; print(c);
  var d<1> = 7; print(d + d * d);
  var e<4> = transpose(c); print((e + e) * first(e));
  first(e); e + e;
  return;
}
"""
# Behind scalars and vectors no line ends; behind a matrix of a larger tensor is an empty line.
PRINTED = (
    "7.000000 9007199254740992.000000 3000000000000000.500000 "
    "1.000000 2.500000 0.500000 3.000000 10.000000 \n"
    "1.000000 2.000000 3.000000 \n"
    "4.000000 5.000000 6.000000 \n"
    "1.000000 4.000000 \n"
    "2.000000 5.000000 \n"
    "3.000000 6.000000 \n"
    "1.000000 \n"
    "2.000000 \n"
    "\n"
    "3.000000 \n"
    "4.000000 \n"
    "\n"
    "56.000000 2.000000 18.000000 8.000000 32.000000 "
)


def test_output_to_the_byte(tmp_path: Path) -> None:
    assert _printed(EVERYTHING, tmp_path) == PRINTED
    assert output(EVERYTHING) == PRINTED


# A product of transposes of two equal matrices is what the tutorial computes, once or of its own
# results. What its JIT prints is known.
PRODUCT = """\
def product(x, y) { return transpose(x) * transpose(y); }
def main() {
  var a = [[1, 2, 3], [4, 5, 6]];
  var b<2, 3> = [1, 2, 3, 4, 5, 6];
  print(RESULT);
}
"""


@pytest.mark.parametrize(
    ("result", "printed"),
    [
        (
            "product(a, b)",
            "1.000000 16.000000 \n4.000000 25.000000 \n9.000000 36.000000 \n",
        ),
        (
            "product(product(a, b), product(b, a))",
            "1.000000 16.000000 81.000000 \n256.000000 625.000000 1296.000000 \n",
        ),
    ],
)
def test_what_the_tutorial_prints(result: str, printed: str, tmp_path: Path) -> None:
    assert _printed(PRODUCT.replace("RESULT", result), tmp_path) == printed


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    text = program(seed)
    assert _printed(text, tmp_path, optimization=0 if seed else 3) == output(text), text


def test_the_work_is_in_kernels(aotc: Aotc, tmp_path: Path) -> None:
    """With their place in the program, and what only they use in the device's memory."""
    source = tmp_path / "chain.toy"
    source.write_text(
        "def main() {\n"
        "  var a = [[1, 2, 3], [4, 5, 6]];\n"
        "  var b = transpose(a) * transpose(a);\n"
        "  print(a * transpose(b + b));\n"
        "  print(transpose(b));\n"
        "}\n"
    )
    said = aotc("build", source, "--explain", "-o", tmp_path / "program").succeeded().stdout
    assert re.search(rf"{source}:3:\d+: a kernel with blocks of", said)
    assert re.search(rf"{source}:4:\d+: a kernel with blocks of", said)
    assert re.search(rf"{source}:3:\d+: memref<3x2xf64>: device memory: only kernels use it", said)
    assert "host also accesses it (memref.load at " + str(source) + ":4:" in said


def test_installed_by_pip(tmp_path: Path) -> None:
    """The package is whole: the grammar and the entry point come with it."""
    site = tmp_path / "packages"
    pip = f"{sys.executable} -m pip --disable-pip-version-check install --quiet --no-index"
    pip += " --no-deps --no-build-isolation"
    subprocess.run([*pip.split(), "--target", site, TOY], check=True)
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    places = [str(site), str(REPOSITORY), *(place for place in others if place)]
    done = subprocess.run(
        [sys.executable, "-m", "aotc", "build", EXAMPLES[0], "--emit", "mlir", "-o", "-"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "gpu.launch_func" in done.stdout
