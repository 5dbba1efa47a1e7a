"""Pass pipelines as data, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.errors import AotcError, InputError, InternalError
from aotc.input.source import describe_diagnostics, find_place
from aotc.lower.passes.unreachable import erase_unreachable_blocks, settle_branches
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

    Their diagnostics become an InputError, where they name a place in the input; else one
    `blame`: InternalError for pipelines of ours, InputError for one that the user wrote. An unknown
    pass in the latter is an InputError, too.
    """
    with module.context:
        try:
            run_pipeline(module.operation, passes, verifies_each=blame is InputError)
        except ValueError as error:
            raise (InputError if blame is InputError else InternalError)(
                f"Cannot parse the pass pipeline '{pipeline_text(passes)}': {error}"
            ) from None
        except ir.MLIRError as error:
            message = f"{doing} failed:\n{describe_diagnostics(error, name, lines)}"
            # An operation of the input that a pass does not take is refused, and no bug.
            has_place = any(
                find_place(str(diagnostic.location), name) for diagnostic in error.error_diagnostics
            )
            raise (InputError if has_place else blame)(message[0].upper() + message[1:]) from None


def run_pipeline(operation: Any, passes: Sequence[str], *, verifies_each: bool = False) -> None:
    """Runs `passes` on `operation`, within its context.

    What they have made is verified at the end; with `verifies_each`, which takes as long as the
    passes do, behind each. Raises ValueError for a pass that is unknown, and MLIRError for one that
    fails.
    """
    for group in _up_to_canonicalize(passes):
        if group[:1] == ["canonicalize"]:
            # It would turn for ever in what is not reached.
            settle_branches(operation)
        manager = PassManager.parse(pipeline_text(group))
        manager.enable_verifier(verifies_each)
        manager.run(operation)
    erase_unreachable_blocks(operation)
    if not verifies_each:
        operation.verify()


def _up_to_canonicalize(passes: Sequence[str]) -> list[list[str]]:
    """The passes in groups, each `canonicalize` first in its own."""
    groups: list[list[str]] = [[]]
    for name in passes:
        if name == "canonicalize" and groups[-1]:
            groups.append([])
        groups[-1].append(name)
    return groups
