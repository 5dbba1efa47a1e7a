"""The sparse benchmark: products of a sparse matrix by rows and a vector, beside cuSPARSE.

    python -m bench.sparse OUT

makes the folder OUT: a library for each type, and `run`, which prints a line for each matrix, and
needs a GPU, PyTorch and cuSPARSE. Goal: no more than cuSPARSE takes.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import aotc

HERE = Path(__file__).resolve().parent
ROWS = 262144
SOURCE = """\
#CSR = #sparse_tensor.encoding<{{
  map = (i, j) -> (i : dense, j : compressed), posWidth = 32, crdWidth = 32
}}>
func.func @matvec(%a: tensor<{rows}x{rows}x{type}, #CSR>, %x: tensor<{rows}x{type}>)
    -> tensor<{rows}x{type}> attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : {type}
  %empty = tensor.empty() : tensor<{rows}x{type}>
  %zeros = linalg.fill ins(%zero : {type}) outs(%empty : tensor<{rows}x{type}>)
    -> tensor<{rows}x{type}>
  %y = linalg.matvec ins(%a, %x : tensor<{rows}x{rows}x{type}, #CSR>, tensor<{rows}x{type}>)
    outs(%zeros : tensor<{rows}x{type}>) -> tensor<{rows}x{type}>
  return %y : tensor<{rows}x{type}>
}}
"""


def build(out: Path) -> None:
    """Fills the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for type_ in ("f32", "f64"):
        source = out / f"{type_}.mlir"
        source.write_text(SOURCE.format(rows=ROWS, type=type_))
        aotc.build(source, emit="shared", out=f"{out / type_}/", chips="sm_80,sm_90a")
        shutil.copyfile(out / type_ / "lib" / f"lib{type_}.so", out / f"{type_}.so")
    shutil.copyfile(HERE / "measure.py", out / "measure.py")
    run = out / "run"
    run.write_text('#!/bin/sh\ncd "$(dirname "$0")" && exec python3 measure.py "$@"\n')
    run.chmod(0o755)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="the folder")
    build(parser.parse_args().out)
