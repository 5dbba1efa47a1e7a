"""Translation to LLVM IR: in a child of the command, and by a process that programs ask."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from aotc.errors import InternalError
from aotc.host import translate as translation
from aotc.host.translate import translate
from aotc.mlir import ir, make_context
from aotc.process import PROCESS
from aotc.toolchain.version import Version

# What the bindings' LLVM prints; the second one is not in the LLVM dialect.
TRANSLATED = "llvm.func @{0}() {{ llvm.return }}"
REFUSED = "func.func @{0}() {{ return }}"


@pytest.fixture(params=[True, False], ids=["child", "process"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROCESS, "is_ours", request.param)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[translation._Server]:
    """A process of the test's own."""
    made = translation._Server()
    monkeypatch.setattr(translation, "_SERVER", made)
    yield made
    made.stop()


def text_of(name: str, form: str = TRANSLATED) -> str:
    with make_context():
        return translate(ir.Module.parse(form.format(name)), Version(99))


@pytest.mark.usefixtures("_either_way")
def test_text_and_refusals() -> None:
    assert "define void @first()" in text_of("first")
    with pytest.raises(InternalError, match=r"cannot translate .*\n.*func\.func"):
        text_of("f", REFUSED)
    assert "define void @second()" in text_of("second")


def test_a_childs_file_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker builds any number of modules. What is still waited for is read first."""
    monkeypatch.setattr(PROCESS, "is_ours", True)
    monkeypatch.setattr(translation, "_LARGEST_FILE", 100)
    monkeypatch.setattr(translation, "_children", [])
    assert text_of("first")
    first = translation._children[0]
    with make_context():
        modules = [ir.Module.parse(TRANSLATED.format(name)) for name in ("second", "third")]
        waiting = [translation.Translation(module, Version(99)) for module in modules]
    second = translation._children[0]
    assert second is not first
    assert "@third()" in waiting[1].text()
    assert "@second()" in waiting[0].text()
    assert not any(second._texts)
    assert text_of("fourth")
    assert translation._children[0] is not second
    translation._children[0].stop()


def test_one_process_answers_all_threads(server: translation._Server) -> None:
    with ThreadPoolExecutor(4) as threads:
        texts = list(threads.map(text_of, [f"f{number}" for number in range(12)]))
        first = server._process
        assert text_of("again")
    assert [f"@f{number}()" in text for number, text in enumerate(texts)] == [True] * 12
    assert server._process is first


def test_a_process_that_ended_is_started_again(server: translation._Server) -> None:
    assert text_of("f")
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGKILL)
    with pytest.raises(InternalError, match="ended before its answer"):
        text_of("f")
    assert text_of("f")


def test_an_answer_that_nobody_waited_for_is_not_the_next_ones(
    server: translation._Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in a notebook, between the question and its answer."""
    assert text_of("f")
    with monkeypatch.context() as patch:

        def interrupt(*_: object) -> bytes:
            raise KeyboardInterrupt

        patch.setattr(translation, "_read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            text_of("interrupted")
    assert "@next()" in text_of("next")


def test_a_program_with_threads_builds_without_a_word(tmp_path: object) -> None:
    """Python warns of forks in programs with threads, from 3.12 on; some packages do, too."""
    program = """if True:
        import os, threading, warnings
        warnings.simplefilter("error")
        os.register_at_fork(before=lambda: print("forked"))
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        import aotc
        text = 'func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} { return }'
        aotc.build(text, emit="obj", chips="sm_90", out=OUT)
    """.replace("OUT", repr(f"{tmp_path}/x.o"))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
