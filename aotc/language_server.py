"""A language server for MLIR that publishes the diagnostics of `aotc check` while a file is edited.

Each check is a separate process: if it crashes or takes long, the server is not affected.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from lsprotocol import converters, types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from aotc.version import __version__

_PAUSE = 0.2  # seconds after the last change before a check starts


class Server(LanguageServer):
    """Publishes the diagnostics of open documents; `options` are those of `aotc check`."""

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__("aotc", f"v{__version__}")
        self._options = options
        self._checks: dict[str, asyncio.Task[None]] = {}
        # Registered as functions, because the library sets attributes on them.
        for method in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE):
            self.feature(method)(lambda params: self._changed(params))
        self.feature(types.TEXT_DOCUMENT_DID_CLOSE)(lambda params: self._closed(params))

    def _changed(
        self, params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams
    ) -> None:
        uri = params.text_document.uri
        self._stop(uri)
        self._checks[uri] = asyncio.ensure_future(self._check(uri))

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self._stop(uri)
        self._publish({"uri": uri, "diagnostics": []})

    def _stop(self, uri: str) -> None:
        if uri in self._checks:
            self._checks.pop(uri).cancel()

    async def _check(self, uri: str) -> None:
        await asyncio.sleep(_PAUSE)
        document = self.workspace.get_text_document(uri)
        name = to_fs_path(uri) or "untitled.mlir"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aotc", "check", "-", "--name", name, "--json", *self._options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, said = await process.communicate(document.source.encode())
        except asyncio.CancelledError:
            process.terminate()
            raise
        try:
            found = json.loads(out)["diagnostics"]
        except ValueError:  # it crashed, or its options are invalid
            start = {"line": 0, "character": 0}
            message = said.decode(errors="replace").strip()
            found = [{"range": {"start": start, "end": start}, "severity": 1, "message": message}]
        self._publish({"uri": uri, "version": document.version, "diagnostics": found})

    def _publish(self, params: dict[str, Any]) -> None:
        converter = converters.get_converter()
        self.text_document_publish_diagnostics(
            converter.structure(params, types.PublishDiagnosticsParams)
        )
