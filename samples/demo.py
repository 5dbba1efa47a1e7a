"""The demo: builds matmul.mlir into an executable, runs it, and holds its result against NumPy's.

    python samples/demo.py [FOLDER]

Everything goes into FOLDER (build/demo). Exits with 0 when the result is right.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def make_files(folder: Path) -> None:
    """A.npy, B.npy, and C.npy: their product, computed in f64."""
    random = np.random.default_rng(seed=2026)
    a, b = (random.random((1024, 1024), dtype=np.float32) for _ in "AB")
    product = a.astype(np.float64) @ b.astype(np.float64)
    for name, array in {"A": a, "B": b, "C": product.astype(np.float32)}.items():
        np.save(folder / f"{name}.npy", array)


def run(shown: list[str], command: list[str]) -> None:
    """Runs a command, shown as one would type it; ends the demo when it fails."""
    print(f"$ {shlex.join(shown)}", flush=True)
    code = subprocess.run([*command, *shown[1:]], cwd=ROOT, check=False).returncode
    if code != 0:
        sys.exit(f"demo: '{shown[0]}' failed with exit code {code}")


def main() -> None:
    folder = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else ROOT / "build" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    make_files(folder)
    place = os.path.relpath(folder, ROOT)
    program = f"{place}/matmul"
    run(["aotc", "build", "samples/matmul.mlir", "-o", program], [sys.executable, "-m", "aotc"])
    inputs = ["--A", f"{place}/A.npy", "--B", f"{place}/B.npy"]
    check = ["--expect", f"C={place}/C.npy", "--rtol", "1e-5"]
    run([program, *inputs, *check], [str(ROOT / program)])


if __name__ == "__main__":
    main()
