"""The folder: a library for each model, type and batch, and what runs and measures them.

Weights are in files of their own, which travel without what the other machine makes again
(tests/frontends/weights.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Puts `frontends` into the path.
from bench.models.gpu.catalogue import made

ROOT = Path(__file__).resolve().parents[3]
CHIP = "sm_90a"
# What the folder has of the project: what measures, what makes the modules, what opens libraries.
_FILES = (
    *(f"bench/{name}" for name in ("__init__.py", "models/__init__.py", "models/models.py")),
    *(f"bench/models/{name}.py" for name in ("others", "operations")),
    "bench/models/gpu",
    "tests/frontends/weights.py",
    "tests/frontends/zoo",
    *(f"aotc/{name}.py" for name in ("__init__", "version", "errors", "attributes")),
    *(f"aotc/{name}.py" for name in ("manifest", "pipes")),
    "aotc/library",
)
_RUN = """\
#!/bin/sh
# Made by bench.models. ./run --help
cd "$(dirname "$0")" || exit
export PYTHONPATH=".${PYTHONPATH:+:$PYTHONPATH}"
exec python3 -m bench.models.gpu.measure "$@"
"""


def write(
    out: Path,
    names: Sequence[str],
    dtypes: Sequence[str],
    batches: Sequence[int],
    *,
    of_any: str = "",
) -> int:
    """Adds these to the folder `out`; gives how many could not be built. `of_any`: libraries for a
    batch of any size ("batch"), and for images of any size, too ("size"), called with these."""
    out.mkdir(parents=True, exist_ok=True)
    copy_files(out)
    failed = 0
    for name in names:
        for dtype in dtypes:
            for batch in batches:
                # In a process of its own: exports and imports of large models keep memory.
                words = (str(out), name, dtype, str(batch), of_any)
                done = subprocess.run([sys.executable, "-m", "bench.models.gpu.bundle", *words])
                failed += done.returncode != 0
    notes = sorted((out / "lib").glob("*/case.json"))
    (out / "cases.json").write_text(json.dumps([json.loads(one.read_text()) for one in notes]))
    return failed


def copy_files(out: Path) -> None:
    for name in _FILES:
        source, target = ROOT / name, out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)
    run = out / "run"
    run.write_text(_RUN)
    run.chmod(0o755)


def _write_case(out: Path, name: str, dtype: str, batch: int, of_any: str) -> None:
    import torch
    from frontends.weights import cut  # type: ignore[import-not-found, unused-ignore]

    import aotc.torch

    folder = out / "lib" / f"{name}.{dtype}.b{batch}{f'.any_{of_any}' if of_any else ''}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    module, inputs = made(name, batch, dtype, "cpu", fills_caches=False)
    start = time.process_time()
    sizes = {
        name: dict.fromkeys(_open_dimensions(one.shape, batch, of_any), torch.export.Dim.AUTO)
        for name, one in inputs.items()
    }
    with torch.no_grad():
        program = torch.export.export(module, (), inputs, dynamic_shapes=sizes if of_any else None)
    weights = folder / "lib" / "model.weights"
    options: dict[str, Any] = {"chips": (CHIP,), "cpu_kernels": False}
    has_weights = any(True for _ in module.parameters())
    if has_weights:
        options["weights"] = weights
    emit = ("shared", "manifest")
    aotc.torch.build(program, (), name="model", emit=emit, out=f"{folder}/", **options)
    # What the compiler's processes use is not in it.
    note: dict[str, Any] = {"model": name, "dtype": dtype, "batch": batch, "of_any": of_any}
    note["folder"] = str(folder.relative_to(out))
    note["build"] = round(time.process_time() - start, 1)
    note["weights"] = cut(weights, module) if has_weights and weights.exists() else None
    (folder / "case.json").write_text(json.dumps(note))
    carried = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder.name}: {carried / 2**20:.1f} MiB", flush=True)


def _open_dimensions(shape: Sequence[int], batch: int, of_any: str) -> tuple[int, ...]:
    """The dimensions of an input of this shape that have any size."""
    if not of_any or shape[:1] != (batch,):
        return ()
    is_image = of_any == "size" and len(shape) == 4
    return (0, 2, 3) if is_image else (0,)


if __name__ == "__main__":
    _write_case(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
