"""`aotc check`: what is wrong with an input, for people and for editors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import SAMPLES, Outcome, own_process

Aotc = Callable[..., Outcome]

UNVERIFIED = """\
func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} {
  %y = "arith.addf"(%x, %x) : (memref<4xf32>, memref<4xf32>) -> f32
  return
}
func.func @g(%x: memref<4xf32>) -> f32 {
  return
}
"""
# A character of two bytes and one of two UTF-16 code units stand before the operation.
WARNED = """\
func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} {
  %c8 = arith.constant 8 : index
  %e = memref.alloc() : memref<4xf32>
  memref.dealloc %e : memref<4xf32>
  func.call @"é𝄞"() : () -> () %v = memref.load %e[%c8] : memref<4xf32>
  return
}
func.func private @"é𝄞"()
"""


def _at(line: int, start: int, end: int) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": end},
    }


def test_errors_have_ranges(aotc: Aotc, mlir_file: Callable[..., Path]) -> None:
    """All that MLIR finds, each with the word that it is about; the exit code is a build's."""
    file = mlir_file(UNVERIFIED)
    done = aotc("check", file, "--json")
    assert (done.code, done.stderr) == (2, "")
    found = json.loads(done.stdout)
    assert found["uri"] == file.as_uri()
    assert found["diagnostics"] == [
        {
            "range": _at(1, 7, 19),
            "severity": 1,
            "code": "input",
            "source": "aotc",
            "message": "'arith.addf' op operand #0 must be floating-point-like, but got "
            "'memref<4xf32>'",
            "relatedInformation": [],
        },
        {
            "range": _at(5, 2, 8),
            "severity": 1,
            "code": "input",
            "source": "aotc",
            "message": "'func.return' op has 0 operands, but enclosing function (@g) returns 1",
            "relatedInformation": [],
        },
    ]


def test_warnings_have_their_names(aotc: Aotc, mlir_file: Callable[..., Path]) -> None:
    """They are warnings or errors as the options say; characters count as editors count them."""
    file = mlir_file(WARNED)
    column = len('  func.call @"é𝄞"() : () -> () %v = '.encode("utf-16-le")) // 2
    found = json.loads(aotc("check", file, "--json").stdout)["diagnostics"]
    shown = {(one["code"], one["severity"]) for one in found}
    assert shown == {("use-after-dealloc", 1), ("out-of-bounds", 2)}
    assert {one["range"]["start"]["character"] for one in found} == {column}
    options = ("-Wno-use-after-dealloc", "-Werror=out-of-bounds")
    done = aotc("check", file, "--json", *options)
    (one,) = json.loads(done.stdout)["diagnostics"]
    assert (done.code, one["code"], one["severity"]) == (2, "out-of-bounds", 1)
    assert "memref.load has index 8, which is out of bounds for dimension 0" in one["message"]


def test_without_json_it_says_what_a_build_says(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (UNVERIFIED, WARNED, "func.func @f() {\n  nonsense\n}\n"):
        file = mlir_file(text)
        built = aotc("build", file, "--emit", "mlir", "-o", "-")
        assert aotc("check", file) == Outcome(2, "", built.stderr)
    assert aotc("check", SAMPLES / "vector_add.mlir") == Outcome(0, "", "")
    assert list(tmp_path.iterdir()) == [tmp_path / "input.mlir"]


def test_text_of_an_editor(tmp_path: Path) -> None:
    """It has the name of its file, which need not be there; notes name other places."""
    text = b"func.func @f(%x: i32) {\n  %y = arith.addf %x, %x : f32\n  return\n}\n"
    place = tmp_path / "text.mlir"
    done = own_process(["check", "-", "--name", place, "--json"], stdin=text)
    found = json.loads(done.stdout)
    (one,) = found["diagnostics"]
    assert (found["uri"], one["range"]) == (place.as_uri(), _at(1, 18, 20))
    (note,) = one["relatedInformation"]
    assert note == {
        "location": {"uri": place.as_uri(), "range": _at(0, 13, 15)},
        "message": "prior use here",
    }


def test_what_has_no_place_is_at_the_beginning(aotc: Aotc) -> None:
    done = aotc("check", "no.mlir", "--json")
    (one,) = json.loads(done.stdout)["diagnostics"]
    assert (done.code, one["range"]) == (2, _at(0, 0, 0))
    assert one["message"] == "Cannot read 'no.mlir': No such file or directory."
    assert aotc("check", "a.mlir", "--name", "b.mlir").stderr == (
        "aotc: error: --name is for standard input: aotc check - --name FILE.\n"
    )


def test_an_editor_is_served(tmp_path: Path) -> None:
    """Opened, changed and closed documents get their diagnostics."""
    pytest.importorskip("pygls")
    import asyncio

    from helpers.command import aotc_command, process_environment
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    uri = (tmp_path / "a b.mlir").as_uri()

    async def edit() -> list[list[str | None]]:
        client = LanguageClient("test", "1")
        published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda params: published.put_nowait(params)
        )
        program, *words = aotc_command("lsp", "-Werror=out-of-bounds")
        await client.start_io(program, *words, env=process_environment())
        await client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities())
        )
        client.initialized(types.InitializedParams())
        shown = []

        async def next_codes() -> None:
            found = await asyncio.wait_for(published.get(), 60)
            assert found.uri == uri
            shown.append([str(one.code) for one in found.diagnostics])

        client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "mlir", 1, UNVERIFIED))
        )
        await next_codes()
        for version, text in enumerate((UNVERIFIED, WARNED), start=2):  # typed without a pause
            client.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    types.VersionedTextDocumentIdentifier(version, uri),
                    [types.TextDocumentContentChangeWholeDocument(text)],
                )
            )
        await next_codes()
        client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        )
        await next_codes()
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        return shown

    assert asyncio.run(edit()) == [
        ["input", "input"],
        ["use-after-dealloc", "out-of-bounds"],
        [],
    ]


def test_without_pygls(aotc: Aotc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    monkeypatch.delitem(sys.modules, "aotc.language_server", raising=False)
    assert aotc("lsp") == Outcome(
        3,
        "",
        "aotc: error: lsprotocol is missing, which speaks the protocol of editors.\n"
        "aotc: hint: pip install 'aotc[lsp]'\n",
    )
