"""Runs passes of MLIR: `run_passes`, `run_pipeline`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Protocol

from aotc.errors import AotcError, InputError, InternalError
from aotc.input.source import describe_diagnostics, find_place
from aotc.mlir import PassManager, ir
from aotc.pipeline_text import pipeline_text, short_name, single_passes
from aotc.processes.record import running_pass
from aotc.rewrites.unreachable import erase_unreachable_blocks, fold_branches

# After `canonicalize`, which erases unreachable blocks itself, these make no others.
_KEEP_BLOCKS = frozenset({"canonicalize", "cse", "reconcile-unrealized-casts"})

# What to do, for diagnostics of MLIR that do not say it.
_HINTS = {
    "is out-of-bounds: 0 >= 0": (
        "the size is the constant 0 here, and MLIR takes no slice of a dimension of size 0: branch "
        "around the operations on empty tensors, or pass the size as an argument of the entry."
    ),
    "failed to legalize operation 'tosa.": (
        "MLIR does not lower this operation of TOSA to linalg, or not with these types: replace it "
        "by other operations of tosa or linalg."
    ),
    "op was not bufferized": (
        "MLIR cannot put the tensors of this operation into memory: lower it to operations of "
        "tensor, linalg or scf first, or give the whole lowering with --pipeline."
    ),
}


class PassWatch(Protocol):
    """Told of each pass that runs on its own, and of the operation that it changes."""

    @property
    def is_idle(self) -> bool:
        """Whether it need not be told: then passes of MLIR in a row run at once."""

    def before(self, name: str, operation: Any) -> None: ...

    def after(self, name: str, operation: Any) -> None: ...


class _Unwatched:
    is_idle = True

    def before(self, name: str, operation: Any) -> None:
        pass

    def after(self, name: str, operation: Any) -> None:
        pass


UNWATCHED: PassWatch = _Unwatched()


def run_passes(
    module: Any,
    passes: Sequence[str],
    *,
    name: str,
    lines: tuple[str, ...] = (),
    blame: type[AotcError] = InternalError,
    doing: str = "lowering the module",
    watch: PassWatch = UNWATCHED,
) -> None:
    """Runs `passes` on `module` in place.

    Their diagnostics become an InputError, where they name a place in the input; else one
    `blame`: InternalError for pipelines of ours, InputError for one that the user wrote. An unknown
    pass in the latter is an InputError, too.
    """
    with module.context:
        try:
            is_users = blame is InputError
            run_pipeline(
                module.operation, passes, verifies_each=is_users, is_users=is_users, watch=watch
            )
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
            raise (InputError if has_place else blame)(
                message[0].upper() + message[1:], hint=_hint(message)
            ) from None


def _hint(message: str) -> str | None:
    return next((hint for words, hint in _HINTS.items() if words in message), None)


def run_pipeline(
    operation: Any,
    passes: Sequence[str],
    *,
    verifies_each: bool = False,
    is_users: bool = False,
    watch: PassWatch = UNWATCHED,
) -> None:
    """Runs `passes` on `operation`, within its context.

    What they have made is verified at the end; with `verifies_each`, which takes as long as the
    passes do, behind each. Those of a pipeline of the user's (`is_users`) run one by one: one that
    does not end is told by its name. Raises ValueError for a pass that is unknown, and MLIRError
    for one that fails.
    """
    groups = _up_to_canonicalize(passes)
    for group in groups:
        if group[:1] == ["canonicalize"]:
            # It does not end on unreachable blocks that branch to each other.
            fold_branches(operation)
        run_group(operation, group, verifies_each=verifies_each, is_users=is_users, watch=watch)
    last = groups[-1]
    if last[:1] != ["canonicalize"] or not _KEEP_BLOCKS.issuperset(last):
        erase_unreachable_blocks(operation)
    if not verifies_each:
        operation.verify()


def run_group(
    operation: Any,
    passes: Sequence[str],
    *,
    verifies_each: bool,
    is_users: bool = False,
    watch: PassWatch = UNWATCHED,
) -> None:
    """Runs `passes` on `operation` as one pass manager does, or, for `watch` and `is_users`, each
    in its own."""
    manager = PassManager.parse(pipeline_text(passes))
    if watch.is_idle and not is_users:
        manager.enable_verifier(verifies_each)
        manager.run(operation)
        return
    # It has spelled out what stands for several passes.
    for one in single_passes(str(manager)):
        manager = PassManager.parse(pipeline_text([one]))
        manager.enable_verifier(verifies_each)
        watch.before(short_name(one), operation)
        with running_pass(short_name(one)) if is_users else contextlib.nullcontext():
            manager.run(operation)
        watch.after(short_name(one), operation)


def _up_to_canonicalize(passes: Sequence[str]) -> list[list[str]]:
    """The passes in groups, each `canonicalize` first in its own."""
    groups: list[list[str]] = [[]]
    for name in passes:
        if name == "canonicalize" and groups[-1]:
            groups.append([])
        groups[-1].append(name)
    return groups
