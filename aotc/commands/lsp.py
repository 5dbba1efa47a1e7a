"""`aotc lsp`."""

from __future__ import annotations

import click

from aotc.errors import EXIT_OK, ToolError


@click.command("lsp", context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF CHECK]...")
def lsp(options: tuple[str, ...]) -> int:
    """Run a language server (LSP) on standard input and output.

    It reports the problems that 'aotc check' finds, and takes the same options: aotc lsp --chip
    sm_90.
    """
    try:
        from aotc.language_server import Server
    except ImportError as error:
        raise ToolError(
            f"{error.name} is missing, which speaks the protocol of editors.",
            hint="pip install 'aotc[lsp]'",
        ) from None
    Server(options).start_io()
    return EXIT_OK
