"""Records what aotc generates from many modules, to be compared with what it generates later.

    python -m tests.artifacts.record build/artifacts/before [--only samples,tests,kernels]

A refactoring records at the commit that it begins with and after each step, and compares the
two folders by `python -m tests.artifacts.compare`. The output folder gets one folder per module,
with its text artifacts, or with `refused.txt` (the message) if the module does not build. A module
that was recorded is not built again, so an interrupted run can be continued.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from chips.kernels import capabilities_of, distinct
from fuzz.corpus import mlir_texts
from helpers.command import REPOSITORY, SAMPLES, build_here

GROUPS = ("samples", "tests", "kernels")
_TEXTS = "mlir,device-mlir,ptx,cpu-mlir,host-mlir,header"
# The manifest and host-ll need ptxas, which takes most of the time, so only samples make them.
_KERNEL_KINDS = "mlir,ptx,host-mlir"
OPTIONS = {
    "samples": ("--chip", "sm_80,sm_90a", "--emit", f"{_TEXTS},manifest,host-ll"),
    "tests": ("--chip", "sm_90", "--emit", _TEXTS),
}
REFUSED = "refused.txt"


class Module(NamedTuple):
    """A module to build: its group, a file name that is unique in the group, its MLIR text, and
    the options of `aotc build`."""

    group: str
    name: str
    text: str
    options: tuple[str, ...]


def modules() -> Iterator[Module]:
    """All modules, in the order of `GROUPS`."""
    for path in sorted(SAMPLES.glob("*.mlir")):
        yield _whole("samples", path.stem, path.read_text())
    for path in sorted((REPOSITORY / "tests").rglob("*.mlir")):
        if "golden" not in path.parts or path.stem == "input":
            name = "_".join(path.relative_to(REPOSITORY / "tests").with_suffix("").parts)
            yield _whole("tests", name, path.read_text())
    for text in mlir_texts():
        yield _whole("tests", hashlib.sha256(text.encode()).hexdigest()[:16], text)
    for kernel in distinct():
        chip = kernel.target if kernel.target.startswith("sm_") else None
        chip = chip or f"sm_{min(capabilities_of(kernel), default=90)}"
        name = re.sub(r"\W+", "_", kernel.name)
        text = kernel.function("kernel")
        options = ("--entry", "kernel", "--no-cpu-kernels", "--chip", chip, "--emit", _KERNEL_KINDS)
        yield Module("kernels", f"{name[:150]}_{_hash(kernel.name)}", text, options)


def _whole(group: str, name: str, text: str) -> Module:
    return Module(group, name, text, OPTIONS[group])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def record(module: Module, folder: Path) -> None:
    """Builds the module, with its artifacts in `folder`, which appears as a whole."""
    with tempfile.TemporaryDirectory(prefix="aotc-artifacts-") as name:
        source, made = Path(name) / "module.mlir", Path(name) / "made"
        source.write_text(module.text)
        made.mkdir()
        try:
            common = ("--ptx", "none", "--no-cache", "-Wno-shared-memory", "-j1")
            build_here(source, *module.options, *common, "-o", f"{made}/")
        except AssertionError as error:
            said = str(error).replace(name, "FOLDER")
            (made / REFUSED).write_text(said)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.artifacts.record", description=__doc__)
    parser.add_argument("folder", type=Path, help="the output folder")
    parser.add_argument("--only", default=",".join(GROUPS), help=f"default: {','.join(GROUPS)}")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="record one module out of N"
    )
    options = parser.parse_args(arguments)
    groups = options.only.split(",")
    chosen = [one for one in modules() if one.group in groups and _chosen(one, options.every)]
    start = time.monotonic()
    for number, module in enumerate(chosen, 1):
        folder = options.folder / module.group / module.name
        if not folder.exists():
            record(module, folder)
        if number % 50 == 0 or number == len(chosen):
            print(f"{number} of {len(chosen)}, {time.monotonic() - start:.0f} s", flush=True)
    # A refusal is a result, too; but a group of nothing else is a mistake of this script.
    empty = [group for group in groups if _is_refused(options.folder / group)]
    if empty:
        print(f"every module was refused of: {', '.join(empty)}", file=sys.stderr)
    return 1 if empty else 0


def _is_refused(group: Path) -> bool:
    folders = list(group.iterdir()) if group.is_dir() else []
    return bool(folders) and all((folder / REFUSED).exists() for folder in folders)


def _chosen(module: Module, every: int) -> bool:
    """The same modules in each run, however many there are."""
    return int(_hash(module.name), 16) % every == 0


if __name__ == "__main__":
    sys.exit(main())
