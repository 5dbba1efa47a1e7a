"""The model bundle: models of PyTorch at full size, for a machine with a GPU and PyTorch.

    python tests/frontends/bundle.py OUT [--size small] [--dtype f16] [MODEL ...]

makes the folder OUT, with a library for each model, type and batch (1, 8, and one for any), where
JAX is installed one for each function of jax_functions.py, and OUT.tar.xz of it. There

    python3 -m tarfile -e OUT.tar.xz OUT && OUT/run

compares with PyTorch in f64 and prints a table of errors and times (measure.py says which). The
libraries travel without the weights, which are made again there (weights.py).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# As pytest has it.
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from frontends.models import SIZES, inputs_of, made  # noqa: E402
from frontends.weights import cut  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402

DTYPES = {"f32": torch.float32, "f16": torch.float16}
BATCHES = (1, 8)
# Those that there are for a batch of any size, too, and the batches that they are run with.
DYNAMIC = ("mlp", "lenet", "resnet18", "block")
DYNAMIC_BATCHES = (3, 8)
# What `aotc.load` imports.
LOADER = (
    *("__init__.py", "attributes.py", "errors.py", "library", "manifest.py", "pipes.py"),
    "version.py",
)
RUN = """\
#!/bin/sh
# Made by tests/frontends/bundle.py. ./run --help
exec python3 "$(dirname "$0")/measure.py" "$@"
"""


def write_case(out: Path, size: str, name: str, dtype: str, batch: int | None, options: Any) -> Any:
    """Builds a model for a batch, or for any (None), into the bundle. Gives what measure.py reads
    of it. `options` are those of aotc.build."""
    model = SIZES[size][name]
    module = made(model, DTYPES[dtype])
    inputs = inputs_of(model, batch or 2, DTYPES[dtype])
    shapes = None if batch else tuple({0: torch.export.Dim("batch")} for _ in inputs)
    folder = Path("lib") / f"{name}-{dtype}-{batch or 'any'}"
    artifact = aotc.torch.build(
        module,
        inputs,
        dynamic_shapes=shapes,
        name=name,
        emit="shared,manifest",
        out=f"{out / folder}/",
        **options,
    )
    return {
        "model": name,
        "size": size,
        "dtype": dtype,
        "dynamic": batch is None,
        "batches": [batch] if batch else list(DYNAMIC_BATCHES),
        "library": str(artifact.path.relative_to(out)),
        "weights": cut(artifact.path, module),
    }


def write_jax(out: Path, **options: Any) -> None:
    """A library for each function, and NAME.npz: what it takes, and what JAX gives."""
    from frontends.jax_functions import CASES, export_case, inputs_and_results

    (out / "jax").mkdir()
    for name in CASES:
        with tempfile.TemporaryDirectory() as sources:
            source = export_case(name, Path(sources))
            aotc.build(source, emit="shared,manifest", out=f"{out / 'jax' / name}/", **options)
        inputs, results = inputs_and_results(name)
        arrays = {f"input{number}": array for number, array in enumerate(inputs)}
        arrays |= {f"result{number}": array for number, array in enumerate(results)}
        np.savez(out / "jax" / f"{name}.npz", **arrays)


def write_bundle(
    out: Path, size: str, names: Sequence[str], dtypes: Sequence[str], **options: Any
) -> None:
    """Fills the folder `out`."""
    cases = []
    for dtype in dtypes:
        for name in names:
            for batch in (*BATCHES, *((None,) if name in DYNAMIC else ())):
                cases.append(write_case(out, size, name, dtype, batch, options))
                print(f"{name} {dtype}, batch {batch or 'any'}", flush=True)
    (out / "cases.json").write_text(json.dumps(cases) + "\n")
    for file in ("measure.py", "models.py", "weights.py"):
        shutil.copy(HERE / file, out / file)
    for part in LOADER:
        source, target = ROOT / "aotc" / part, out / "aotc" / part
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    run = out / "run"
    run.write_text(RUN)
    run.chmod(0o755)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: all, and JAX")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="default: both")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--cpu-kernels", action="store_true", help="for OUT/run --device cpu")
    options = parser.parse_intermixed_args(arguments)
    known = SIZES[options.size]
    if unknown := [name for name in options.models if name not in known]:
        parser.error(f"unknown models: {', '.join(unknown)}. There are: {', '.join(known)}")
    out: Path = options.out.absolute()
    is_ours = (out / "cases.json").exists()
    if out.exists() and not is_ours and any(out.iterdir()):
        parser.error(f"{out} holds something else: name another folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as draft:
        folder = Path(draft) / out.name
        folder.mkdir()
        write_bundle(
            folder,
            options.size,
            options.models or list(known),
            options.dtype or list(DTYPES),
            chips=options.chip,
            cpu_kernels=options.cpu_kernels,
        )
        if not options.models and importlib.util.find_spec("jax"):
            write_jax(folder, chips=options.chip, cpu_kernels=options.cpu_kernels)
        packed = shutil.make_archive(str(folder), "xztar", folder)
        if out.exists():
            shutil.rmtree(out)
        folder.rename(out)
        archive = Path(packed).rename(out.with_name(f"{out.name}.tar.xz"))
    print(f"{archive}: {archive.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
