"""Pass pipelines as data, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.errors import AotcError, InputError, InternalError
from aotc.load.source import describe_diagnostics
from aotc.mlir import PassManager, ir


def pipeline_text(passes: Sequence[str], anchor: str = "builtin.module") -> str:
    """`builtin.module(a,b)`: what `--pipeline` and mlir-opt read."""
    return f"{anchor}({','.join(passes)})"


def run_passes(
    module: Any,
    passes: Sequence[str],
    *,
    name: str,
    lines: tuple[str, ...] = (),
    blame: type[AotcError] = InternalError,
    doing: str = "lowering the module",
) -> None:
    """Runs `passes` on `module` in place.

    Their diagnostics become one `blame`: InternalError for pipelines of ours, InputError for
    one that the user wrote. An unknown pass in the latter is an InputError, too.
    """
    text = pipeline_text(passes)
    with module.context:
        try:
            manager = PassManager.parse(text)
        except ValueError as error:
            raise (InputError if blame is InputError else InternalError)(
                f"Cannot parse the pass pipeline '{text}': {error}"
            ) from None
        try:
            manager.run(module.operation)
        except ir.MLIRError as error:
            message = f"{doing} failed:\n{describe_diagnostics(error, name, lines)}"
            raise blame(message[0].upper() + message[1:]) from None
