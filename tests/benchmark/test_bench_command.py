"""`aotc bench` on real programs, on the CPU device."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome, build_here

from aotc.benchmark.ceilings import measure_ceilings
from aotc.benchmark.results import parse_results

Aotc = Callable[..., Outcome]

TWO = """
func.func @double(%x: memref<64xf32>) attributes {llvm.emit_c_interface} {
  affine.parallel (%i) = (0) to (64) {
    %v = affine.load %x[%i] : memref<64xf32>
    %w = arith.addf %v, %v : f32
    affine.store %w, %x[%i] : memref<64xf32>
  }
  return
}
func.func @sized(%x: memref<?xf32>, %n: index) attributes {llvm.emit_c_interface} { return }
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "two.mlir").write_text(TWO)
    for source in (SAMPLES / "saxpy.mlir", folder / "two.mlir"):
        build_here(source, "--chip", "sm_80", "-o", folder / source.stem)
    return folder


FEW = ("--rounds", "2", "--repeat", "2", "--device", "cpu")


def test_sizes_and_results(aotc: Aotc, programs: Path, tmp_path: Path) -> None:
    """A line for each size; bytes are what saxpy reads and writes, y twice."""
    file = tmp_path / "r.json"
    options = ("--sizes", "64,4K", "--args", "--dim x={n} --dim y={n}", "--flops", "2*n")
    done = aotc("bench", programs / "saxpy", *options, *FEW, "--json", file).succeeded()
    results = parse_results(file.read_bytes(), file)
    assert [(row.size, row.bytes, row.flops) for row in results.rows] == [
        (64, 64 * 4 * 3, 128.0),
        (4096, 4096 * 4 * 3, 8192.0),
    ]
    assert all(len(row.device_ms) == 2 and min(row.device_ms) > 0 for row in results.rows)
    assert results.device.startswith("cpu (")
    assert len(done.stdout.splitlines()) == 4
    # The file is tabulated again, and compared, without the programs.
    assert aotc("bench", file).succeeded().stdout == done.stdout
    assert "ratio" in aotc("bench", file, file).succeeded().stdout


def test_every_entry_or_those_asked_for(aotc: Aotc, programs: Path) -> None:
    """One that cannot be called has the program's own words, and the exit code tells."""
    done = aotc("bench", programs / "two", *FEW)
    assert done.code == 3
    assert "failed: two: error: " in done.stdout
    done = aotc("bench", programs / "two", "--entry", "double", *FEW).succeeded()
    assert [line.split()[1] for line in done.stdout.splitlines()[2:]] == ["double"]
    done = aotc("bench", programs / "two", "--entry", "triple", *FEW)
    assert done.code == 2
    assert "has no entry triple. It has: double, sized." in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("nothing",), "'nothing' is no program that aotc made: No such file or directory."),
        (("/bin/sh",), "'/bin/sh' is no program that aotc made: it does not describe itself."),
        (("{two}", "--args", "--dim x={n}"), "{n} stands for a size: say which with --sizes."),
        (("{two}", "--flops", "2*n"), "'2*n' is no expression"),
        (("{two}", "--plot", "p.gif"), "'p.gif' is no picture: end it in .png, .svg, .pdf."),
        (("{json}", "{json}", "{json}"), "Give programs, or one or two files of results."),
        ((SAMPLES / "dot.mlir",), "dot.mlir' is no program that aotc made: it is not executable."),
        (("{two}", "{json}"), "Give programs, or one or two files of results."),
    ],
)
def test_what_cannot_be(
    aotc: Aotc, programs: Path, tmp_path: Path, options: tuple[str | Path, ...], message: str
) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    words = [
        str(word).replace("{two}", str(programs / "two")).replace("{json}", str(file))
        for word in options
    ]
    done = aotc("bench", *words, *FEW)
    assert done.code == 2
    assert message in done.stderr


def test_programs_of_one_name(aotc: Aotc, programs: Path, tmp_path: Path) -> None:
    """They have their places for names, in the results, too."""
    other, file = tmp_path / "two", tmp_path / "r.json"
    other.symlink_to(programs / "two")
    options = ("--entry", "double", "--json", file)
    aotc("bench", programs / "two", other, *options, *FEW).succeeded()
    names = [row.program for row in parse_results(file.read_bytes(), file).rows]
    assert names == [str(programs / "two"), str(other)]


def test_what_the_device_can() -> None:
    """Both programs are built and run; the numbers are those of some computer."""
    ceilings = measure_ceilings("cpu", on_cpu=True)
    assert 0.1 < ceilings.gigabytes_per_second < 2000
    assert 0.1 < ceilings.gigaflops < 20000


def _has_matplotlib() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def _results(tmp_path: Path) -> Path:
    file = tmp_path / "r.json"
    rows = [
        {
            "program": "saxpy",
            "entry": "saxpy",
            "size": size,
            "bytes": 12 * size,
            "device_ms": [size / 1e6] * 5,
            "wall_ms": [size / 1e6] * 5,
            "flops": 2.0 * size,
            "failure": None,
        }
        for size in (1000, 1000000)
    ]
    document = {
        "format": "aotc-bench",
        "version": 1,
        "aotc": "0.1.0",
        "device": "H200",
        "repeat": 20,
        "rounds": 5,
        "rows": rows,
        "ceilings": {"gigabytes_per_second": 4000.0, "gigaflops": 60000.0},
    }
    file.write_text(json.dumps(document))
    return file


@pytest.mark.skipif(not _has_matplotlib(), reason="needs matplotlib: pip install 'aotc[plot]'")
def test_plots(aotc: Aotc, tmp_path: Path) -> None:
    """The same results give the same picture; PNG, too."""
    file = _results(tmp_path)
    pictures = []
    for name in ("a", "b"):
        sizes, roof = tmp_path / f"{name}.svg", tmp_path / f"{name}-roof.svg"
        aotc("bench", file, "--plot", sizes, "--roofline", roof).succeeded()
        pictures.append((sizes.read_bytes(), roof.read_bytes()))
    assert pictures[0] == pictures[1]
    assert all(picture.startswith(b"<?xml") and len(picture) > 5000 for picture in pictures[0])
    png = tmp_path / "a.png"
    aotc("bench", file, "--plot", png).succeeded()
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(_has_matplotlib(), reason="matplotlib is installed")
def test_without_matplotlib(aotc: Aotc, tmp_path: Path) -> None:
    done = aotc("bench", _results(tmp_path), "--plot", tmp_path / "a.svg")
    assert done.code == 3
    assert "pip install 'aotc[plot]'" in done.stderr
