"""Constants that the runtime packs in groups of 4 bytes along K, for products of narrow elements on
the CPU device: with each instruction set that this processor has, and with emulated tile registers,
against NumPy."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from helpers.native import Library, build_library
from helpers.shared import made_once, shared_folder
from matmul.emulated_tiles import emulate_tiles, needs_avx512
from matmul.test_grouped import check_every_level, library_in
from msgspec import Struct

# Not whole vectors of columns; several steps along K, the last one of fewer than 16 groups.
N, K = 37, 1100
ROWS = (1, 8, 57)
_CHECK = """
import pathlib, sys
from matmul.test_grouped import library_in
from matmul.test_grouped_packed import check
check(library_in(pathlib.Path(sys.argv[1])))
"""


class Case(Struct, frozen=True):
    """A product with a constant B."""

    name: str
    element: str
    transposed: bool = False

    @property
    def copy(self) -> str:
        if self.transposed:
            return "words"
        return "bytes" if self.element == "i8" else "halves"

    def b(self) -> np.ndarray:
        rng = np.random.default_rng(len(self.name))
        size = (N, K) if self.transposed else (K, N)
        if self.element == "bf16":
            return rng.uniform(-1, 1, size).astype(ml_dtypes.bfloat16)
        return rng.integers(-128, 128, size).astype(np.int8)

    @property
    def text(self) -> str:
        size, kept = (f"{N}x{K}", "n, k") if self.transposed else (f"{K}x{N}", "k, n")
        wide = "f32" if self.element == "bf16" else "i32"
        a, b, c = (
            *(f"memref<?x{K}x{self.element}>", f"memref<{size}x{self.element}>"),
            f"memref<?x{N}x{wide}>",
        )
        maps = ", ".join(f"affine_map<(m, n, k) -> ({one})>" for one in ("m, k", kept, "m, n"))
        return f"""
memref.global "private" constant @of_{self.name} : {b} = dense<"0x{self.b().tobytes().hex()}">
func.func @{self.name}(%a: {a}, %c: {c}) attributes {{llvm.emit_c_interface}} {{
  %b = memref.get_global @of_{self.name} : {b}
  linalg.matmul indexing_maps = [{maps}] ins(%a, %b : {a}, {b}) outs(%c : {c})
  return
}}"""


CASES = (
    Case("halves", "bf16"),
    Case("words_of_halves", "bf16", transposed=True),
    Case("signed", "i8"),
    Case("words_of_bytes", "i8", transposed=True),
)


def check(library: Library) -> None:
    rng = np.random.default_rng(3)
    for case in CASES:
        for m in ROWS:
            b, is_float = case.b(), case.element == "bf16"
            a = rng.uniform(-1, 1, (m, K)) if is_float else rng.integers(-128, 128, (m, K))
            a, c = a.astype(b.dtype), np.ones((m, N), np.float32 if is_float else np.int32)
            library.call(case.name, a, c)
            factors = [one.astype(np.float64) for one in (a, b)]
            expected = 1 + factors[0] @ (factors[1].T if case.transposed else factors[1])
            # f32 sums of 1100 products below 1.
            assert np.abs(c - expected).max() <= (1e-4 if is_float else 0), (case.name, m)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, built once for all workers."""

    def make(folder: Path) -> None:
        text = "\n".join(case.text for case in CASES)
        build_library(text, folder, "--emit", "host-ll", name="grouped")

    return made_once(shared_folder(tmp_path_factory) / "grouped_packed", make)


def test_every_level(folder: Path) -> None:
    check_every_level(_CHECK, folder)
    text = (folder / "grouped.ll").read_text()
    for case in CASES:
        assert f"aotc_get_grouped_{case.copy}_of_{case.name}" in text
    # Tiles are read by address, which does not count as written.
    for entry in library_in(folder).manifest["entries"]:
        assert [one["is_written"] for one in entry["arguments"]] == [False, True]


@needs_avx512
def test_tiles(folder: Path, tmp_path: Path) -> None:
    """The copies of kernels for AMX, with emulated instructions."""
    constants = {f"of_{case.name}": case.b().tobytes() for case in CASES}
    emulate_tiles(folder / "grouped.ll", tmp_path / "libgrouped.so", constants)
    check(Library(tmp_path / "libgrouped.so", folder / "grouped.json"))
