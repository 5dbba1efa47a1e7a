"""The launch benchmark: calls of a library against the CUDA driver by itself, in one run.

    python -m bench.launch OUT

makes the folder OUT: `launch` (launch.c over a library that aotc builds of kernels.mlir), the
same kernel's cubin, and `run`, which prints a line of JSON for each variant, and needs a GPU and
nothing else. Goals: `matmul` and `matmul_async` at most 1.05 times what they are compared with,
also as a process's first call.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from aotc.toolchain import Toolchain

HERE = Path(__file__).resolve().parent
CHIPS = "sm_80,sm_90"


def build(out: Path, chips: str = CHIPS, target: str = "x86_64-linux-gnu.2.28") -> None:
    """Fills the folder `out`."""
    toolchain = Toolchain(os.environ)
    package = out / "package"
    for kinds, place in (("static", f"{package}/"), ("cubin", f"{out}/")):
        command = [sys.executable, "-m", "aotc", "build", str(HERE / "kernels.mlir")]
        options = ["--emit", kinds, "--chip", chips, "--target", target, "-o", place]
        subprocess.run([*command, *options], check=True)
    command = [
        *toolchain.zig_cc.command,
        *("-target", target, "-std=gnu11", "-O2", "-s", "-fno-sanitize=all"),
        *(f"-I{package}/include", f"-isystem{toolchain.tool('cuda-include').path}"),
        *(str(HERE / "launch.c"), f"{package}/lib/libkernels.a"),
        *("-lm", "-lpthread", "-ldl", "-o", str(out / "launch")),
    ]
    subprocess.run(command, check=True)
    run = out / "run"
    run.write_text(
        "#!/bin/sh\n# Prints a line of JSON for each variant.\n"
        'cd "$(dirname "$0")" || exit 2\n'
        "exec ./launch kernels_kernels.sm_90.cubin\n"
    )
    run.chmod(0o755)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
