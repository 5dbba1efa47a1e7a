"""`aotc tune` and `aotc build --tune`: what is built to be timed, and what is said."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import Outcome

from aotc.commands import tune
from aotc.errors import ToolError
from aotc.request import Chip
from aotc.targets import native
from aotc.tuning.measure import text_of

Aotc = Callable[..., Outcome]
# A part of a wider matrix, in a batch whose size is not known, times one that lies transposed.
PRODUCT = """
func.func @product(%A: memref<?x256x128xf32, strided<[65536, 256, 1], offset: ?>>,
    %B: memref<?x64x128xf32>, %C: memref<?x256x64xf32>) attributes {llvm.emit_c_interface} {
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
      affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%A, %B : memref<?x256x128xf32, strided<[65536, 256, 1], offset: ?>>,
                   memref<?x64x128xf32>)
      outs(%C : memref<?x256x64xf32>)
  return
}
"""
NO_PRODUCT = """
func.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) attributes {llvm.emit_c_interface} {
  linalg.copy ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  return
}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("product.mlir").write_text(PRODUCT)
    Path("copy.mlir").write_text(NO_PRODUCT)
    return tmp_path


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> None:
        raise native.NoGpuError("the driver lists none")

    monkeypatch.setattr(native, "found_chips", find)


def test_a_bundle_has_all_that_another_machine_needs(aotc: Aotc, here: Path) -> None:
    said = aotc("tune", "product.mlir", "--bundle", "there", "--chip", "sm_80").succeeded()
    (product,) = json.loads(Path("there/candidates.json").read_text())
    count = len(product["candidates"])
    assert said.stdout == f"there: {count} kernels; time them there with there/run FILE\n"
    assert product["problem"] == (
        "f32 nt 256x64x128 -> f32, sums f32, rows at 16/16/16 bytes, pitches 256/-/-, in batches, "
        "added to C"
    )
    assert (product["chip"], product["capability"], product["batches"]) == ("sm_80", 80, 8)
    a, b, c = product["operands"]
    assert (a["elements"], a["strides"], a["passed"]) == (8 * 256 * 256, [65536, 256], [8])
    assert (b["elements"], b["strides"], b["transposed"]) == (8 * 64 * 128, [8192, 128], True)
    assert (c["elements"], c["strides"], c["passed"]) == (8 * 256 * 64, [16384, 64], [8])
    for candidate in product["candidates"]:
        library = ctypes.CDLL(str(here / "there" / candidate["library"]))
        assert library[candidate["function"]] is not None
        assert library[candidate["last_error"]] is not None
    environment = {**os.environ, "LD_LIBRARY_PATH": ""}
    done = subprocess.run(["there/run"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 or done.stderr.startswith("run: "), done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("copy.mlir", "--bundle", "x", "--chip", "sm_80"), "There is nothing to time: copy.mlir"),
        (("product.mlir", "--bundle", "x"), "say which, as --chip sm_90a"),
        (("missing.mlir", "--bundle", "x", "--chip", "sm_80"), "missing.mlir"),
    ],
)
def test_a_bundle_that_cannot_be(words: tuple[str, ...], reason: str, aotc: Aotc) -> None:
    done = aotc("tune", *words)
    assert done.code == 2
    assert reason in done.stderr
    assert not Path("x").exists()


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("words", [("tune", "product.mlir"), ("build", "product.mlir", "--tune")])
def test_without_a_gpu_it_says_so(words: tuple[str, ...], aotc: Aotc) -> None:
    done = aotc(*words)
    assert (done.code, done.stderr) == (
        2,
        "aotc: error: Kernels are timed on this machine's GPU, and there is none: the driver lists "
        "none.\naotc: hint: aotc tune --bundle DIR --chip sm_90a makes a folder to run on another "
        "machine.\n",
    )
    assert sorted(path.name for path in Path().iterdir()) == ["copy.mlir", "product.mlir"]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A GPU on which the last candidate is the fastest; the files that were written."""
    files: list[Path] = []

    def time(command: list[str], tell: Any) -> None:
        place = Path(command[1]).with_name("candidates.json")
        files.append(Path(command[2]))
        entries = []
        for product in json.loads(place.read_text()):
            last = product["candidates"][-1]
            entries.append(
                {key: product[key] for key in ("chip", "problem", "sizes")}
                | {key: last[key] for key in ("kernel", "variant")}
                | {"microseconds": 1.0, "candidates": 2, "gpu": "a GPU"}
            )
        files[-1].write_text(text_of(entries))

    monkeypatch.setattr(native, "found_chips", lambda: (Chip("sm_80"),))
    monkeypatch.setattr(tune, "_run", time)
    return files


QUICK = ("--chip", "sm_80", "--emit", "mlir", "--no-cpu-kernels", "-q")


def test_a_build_takes_what_it_has_just_measured(aotc: Aotc, gpu: list[Path]) -> None:
    aotc("build", "product.mlir", *QUICK, "--tune", "-o", "a.mlir").succeeded()
    assert gpu == [Path("product.tune.json")]
    aotc("build", "product.mlir", *QUICK, "-o", "b.mlir").succeeded()
    words = ("--tuned", "product.tune.json", "-o", "c.mlir")
    aotc("build", "product.mlir", *QUICK, *words).succeeded()
    tuned, plain, again = (Path(f"{letter}.mlir").read_text() for letter in "abc")
    assert plain != tuned == again


def test_the_file_is_where_it_is_asked_for(aotc: Aotc, gpu: list[Path]) -> None:
    aotc("tune", "product.mlir", "--tuned", "x.json", "-q").succeeded()
    assert gpu == [Path("x.json")]
    assert aotc("tune", "-", "-q").code == 2


def test_a_file_of_something_else_is_not_written_over(aotc: Aotc, gpu: list[Path]) -> None:
    done = aotc("tune", "product.mlir", "--tuned", "copy.mlir")
    assert done.code == 2
    assert "'copy.mlir' is not what aotc tune writes" in done.stderr
    assert gpu == []


def test_a_failure_of_timing_is_told() -> None:
    said: list[str] = []
    words = "import sys; print('timing', file=sys.stderr); sys.exit('run: no memory')"
    with pytest.raises(ToolError, match="Timing kernels failed: no memory"):
        tune._run([tune.sys.executable, "-c", words], said.append)
    assert said == ["timing"]
