"""The submission benchmark: what a call of many small kernels costs beside a CUDA graph that was
captured by hand, and what a result of unknown size costs.

    python -m bench.submission OUT

makes the folder OUT: `submission` (submission.c over a library that aotc builds), and `run`, which
prints JSON lines, and needs a GPU and nothing else. Goal: a call of 50 small kernels takes at most
1.05 of the graph's time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from aotc.toolchain import Toolchain

HERE = Path(__file__).resolve().parent
TARGET = "x86_64-linux-gnu.2.28"
LAYERS = 50


def chain(name: str, rows: str) -> str:
    """`LAYERS` matmuls of `rows` x 256 by one matrix: a kernel each."""
    type_ = f"tensor<{rows}x256xf32>"
    sizes = "%n" if rows == "?" else ""
    lines = ["%zero = arith.constant 0.0 : f32", "%c0 = arith.constant 0 : index"]
    lines += [f"%n = tensor.dim %m0, %c0 : {type_}"] if sizes else []
    for i in range(LAYERS):
        lines += [
            f"%e{i} = tensor.empty({sizes}) : {type_}",
            f"%f{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {type_}) -> {type_}",
            f"%m{i + 1} = linalg.matmul ins(%m{i}, %w : {type_}, tensor<256x256xf32>) "
            f"outs(%f{i} : {type_}) -> {type_}",
        ]
    body = "\n  ".join([*lines, f"return %m{LAYERS} : {type_}"])
    return (
        f"func.func @{name}(%m0: {type_}, %w: tensor<256x256xf32>) -> {type_}\n"
        f"    attributes {{llvm.emit_c_interface}} {{\n  {body}\n}}\n"
    )


TWICE = """\
func.func @twice(%x: tensor<?x256xf32>) -> tensor<?x256xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x256xf32>
  %e = tensor.empty(%n) : tensor<?x256xf32>
  %r = linalg.add ins(%x, %x : tensor<?x256xf32>, tensor<?x256xf32>)
                  outs(%e : tensor<?x256xf32>) -> tensor<?x256xf32>
  return %r : tensor<?x256xf32>
}
"""


def build(out: Path, chips: str = "sm_80,sm_90a") -> None:
    """Fills the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    source = out / "submission.mlir"
    source.write_text(chain("fixed", "16") + chain("any", "?") + TWICE)
    package = out / "package"
    command = [sys.executable, "-m", "aotc", "build", str(source), "--emit", "static,shared"]
    options = ["--chip", chips, "--target", TARGET, "--no-cpu-kernels", "-o", f"{package}/"]
    subprocess.run([*command, *options], check=True)
    toolchain = Toolchain(os.environ)
    command = [
        *toolchain.zig_cc.command,
        *("-target", TARGET, "-std=gnu11", "-O2", "-s", "-fno-sanitize=all"),
        *(f"-I{package}/include", f"-isystem{toolchain.tool('cuda-include').path}"),
        *(str(HERE / "submission.c"), f"{package}/lib/libsubmission.a"),
        *("-lm", "-lpthread", "-ldl", "-o", str(out / "submission")),
    ]
    subprocess.run(command, check=True)
    run = out / "run"
    run.write_text(
        "#!/bin/sh\n# Prints JSON lines: with graphs of the library's, and without.\n"
        'cd "$(dirname "$0")" || exit 2\n./submission && AOTC_GRAPHS=0 ./submission\n'
    )
    run.chmod(0o755)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
