"""Damaged bytecode is refused as such, however MLIR's reader ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]

DATA = Path(__file__).parent / "data"
# Valid modules with some bits flipped, by how the reader takes them.
NO_TEXT = "MLIR refuses it with a message that is not UTF-8"
ABORTS = "MLIR's reader ended by SIGABRT"
REASONS = {
    **dict.fromkeys(("bc_4_9", "bc_4_20", "bc_4_29", "bc_4_67", "bc_4_72", "bc_4_100"), NO_TEXT),
    **dict.fromkeys(("bc_sig6_286", "bc_sig6_839", "bc_sig6_1009"), ABORTS),
}


@pytest.mark.parametrize("name", REASONS)
def test_it_is_called_damaged(name: str, aotc: Aotc) -> None:
    path = DATA / f"{name}.mlirbc"
    done = aotc("build", path, "--emit", "host-mlir", "-o", "-")
    assert done == Outcome(
        2,
        "",
        f"aotc: error: {path} is damaged bytecode: {REASONS[name]}.\n"
        "aotc: hint: write it again, or give aotc the text.\n",
    )


def test_every_file_is_named() -> None:
    assert {path.stem for path in DATA.glob("*.mlirbc")} == set(REASONS)


def test_text_whose_diagnostic_is_not_utf8(aotc: Aotc, tmp_path: Path) -> None:
    """MLIR's message quotes the name."""
    path = tmp_path / "twice.mlir"
    path.write_text('func.func private @"g\\FF"()\n' * 2)
    done = aotc("build", path, "--emit", "host-mlir", "-o", "-")
    assert done.code == 2
    assert done.stderr == (
        f"aotc: error: Cannot read {path}: MLIR refuses it with a message that is not UTF-8.\n"
    )
