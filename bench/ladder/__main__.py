"""The matmul ladder (samples/cuda_matmul) against cuBLAS, step by step.

    python -m bench.ladder OUT

makes the folder OUT: libraries of the ladder, of what its step `tuned` was chosen from, and of the
products of every shape, and `run`. That needs a GPU and PyTorch, whose matmul is cuBLAS's; it holds
the results against f64's, and prints a line of JSON for each kernel and size. `bench.ladder.plot`
makes a table and a plot of them. Goals at 4096, as parts of cuBLAS: warp tiles 0.8, the last step
0.9, and no step slower than the one before.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "samples" / "cuda_matmul" / "build.py"


def build(out: Path, chip: str = "sm_90a") -> None:
    """Fills the folder `out`."""
    for what in ("ladder", "candidates", "gemm"):
        command = [sys.executable, str(BUILD), what, "--emit", "shared", "--chip", chip]
        subprocess.run([*command, "--no-cpu-kernels", "-o", f"{out}/{what}/"], check=True)
    shutil.copyfile(HERE / "measure.py", out / "measure.py")
    run = out / "run"
    run.write_text(
        "#!/bin/sh\n# Prints a line of JSON for each kernel and size; 1: a result is wrong.\n"
        'cd "$(dirname "$0")" && exec python3 measure.py "$@"\n'
    )
    run.chmod(0o755)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
