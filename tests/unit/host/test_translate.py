"""Translation to LLVM IR, by a task of the fork server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from aotc.errors import InternalError
from aotc.host.translate import Translation, translate
from aotc.mlir import ir, make_context
from aotc.toolchain.version import Version

# What the bindings' LLVM prints; the second one is not in the LLVM dialect.
TRANSLATED = "llvm.func @{0}() {{ llvm.return }}"
REFUSED = "func.func @{0}() {{ return }}"


def text_of(name: str, form: str = TRANSLATED) -> str:
    with make_context():
        return translate(ir.Module.parse(form.format(name)), Version(99))


def test_text_and_refusals() -> None:
    """A module that the bindings refuse takes none of the next ones with it."""
    assert "define void @first()" in text_of("first")
    with pytest.raises(InternalError, match=r"cannot translate .*\n.*func\.func"):
        text_of("f", REFUSED)
    assert "define void @second()" in text_of("second")


def test_more_translations_than_may_be_open() -> None:
    """Any number may be on its way: the files of those that have ended are closed."""
    with make_context():
        waiting = [
            Translation(ir.Module.parse(TRANSLATED.format(f"f{number}")), Version(99))
            for number in range(150)
        ]
    for number in reversed(range(150)):
        assert f"@f{number}()" in waiting[number].text()


def test_threads_translate_at_once() -> None:
    """Each thread has the answer to its own question."""
    with ThreadPoolExecutor(4) as threads:
        texts = list(threads.map(text_of, [f"f{number}" for number in range(12)]))
    assert [f"@f{number}()" in text for number, text in enumerate(texts)] == [True] * 12
