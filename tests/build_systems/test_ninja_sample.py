"""samples/consumers/ninja-from-source, by Ninja itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from consumers.support import run, run_program


def test_the_sample(
    sample: Callable[[str], Path], environment: dict[str, str], cc: dict[str, Path]
) -> None:
    """Builds and runs; not again; again for a changed module, and for other options; cleans."""
    ninja = Path(pytest.importorskip("ninja").BIN_DIR) / "ninja"
    folder = sample("ninja-from-source")
    rules = (folder / "build.ninja").read_text()
    rules = rules.replace("\ncc = cc\n", f"\ncc = {cc['CC']}\n").replace("sm_80,sm_90", "sm_90")
    (folder / "build.ninja").write_text(rules)

    def build() -> str:
        return run([ninja, "-C", folder, "-j2"], env=environment)

    assert "aotc dot" in build()
    assert run_program(folder / "c_static") == "C: 4096 sums are right\n"
    run_program(folder / "dot", "--dim", "x=4", "--dim", "y=4")
    assert "no work to do" in build()
    os.utime(folder / "../../dot.mlir")
    again = build()
    assert "aotc dot" in again
    assert "libvector_add" not in again
    (folder / "build.ninja").write_text(rules.replace("sm_90", "sm_90 -O1"))
    again = build()
    assert "aotc dot" in again
    assert "aotc package/lib/libvector_add.a" in again
    run([ninja, "-C", folder, "-t", "clean"], env=environment)
    assert not (folder / "dot").exists()
    assert not (folder / "package/lib/libvector_add.a").exists()
