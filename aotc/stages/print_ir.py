"""`IrPrinter`: prints the module before and after passes, in mlir-opt's format."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from aotc.artifact_kind import ArtifactKind
from aotc.errors import InputError, near_names
from aotc.lower.host.lower import ALL_HOST_PASSES
from aotc.lower.plan.levels import Level
from aotc.lower.plan.pipeline import OWN_PASSES, SCHEDULE, parse_plan, plan_for
from aotc.mlir import PassManager
from aotc.observers import LONGEST_SAVED
from aotc.ops import text_of
from aotc.output import write_file
from aotc.pipeline_text import pipeline_text, short_name, single_passes
from aotc.request import BuildRequest, PrintIr
from aotc.rewrites.lines import LINES_PASS
from aotc.rewrites.run import PassWatch
from aotc.target import TARGETS

_BEFORE, _AFTER = "Before", "After"


class IrPrinter:
    """Prints the module around the passes that `request.print_ir` names, in the order in which they
    run. Raises InputError for a pass that no pipeline has."""

    def __init__(self, request: BuildRequest, context: Any) -> None:
        self._wanted = request.print_ir
        self._count = 0
        with context:
            _check_names(self._wanted, set(_pass_names(request)))

    def watch(self, stage: str) -> PassWatch:
        """The watch for the passes of a stage."""
        return _StageWatch(self, stage)

    def finished(self, kind: ArtifactKind, operation: Any, words: dict[str, str]) -> None:
        """Does nothing: artifacts are printed by --emit."""

    def tell(self, when: str, name: str, stage: str, operation: Any) -> None:
        """Prints the operation if the request has this pass."""
        names = self._wanted.before if when == _BEFORE else self._wanted.after
        if name not in names and PrintIr.ALL not in names:
            return
        text = text_of(
            operation, large_elements_limit=LONGEST_SAVED, large_resource_limit=LONGEST_SAVED
        )
        text = f"// -----// IR Dump {when} {name} ({stage}) //----- //\n{text}\n"
        if self._wanted.folder is None:
            print(text, file=sys.stderr)
            return
        self._count += 1
        file_name = f"{self._count:04}-{stage}-{when.lower()}-{name}.mlir"
        write_file(self._wanted.folder / file_name, text.encode())


class _StageWatch(Struct, frozen=True):
    """The `PassWatch` of one stage."""

    printer: IrPrinter
    stage: str

    @property
    def is_idle(self) -> bool:
        return False

    def before(self, name: str, operation: Any) -> None:
        self.printer.tell(_BEFORE, name, self.stage, operation)

    def after(self, name: str, operation: Any) -> None:
        self.printer.tell(_AFTER, name, self.stage, operation)


def _check_names(wanted: PrintIr, known: set[str]) -> None:
    for option, names in (("before", wanted.before), ("after", wanted.after)):
        for name in names:
            if name in known or name == PrintIr.ALL:
                continue
            near = near_names(name, sorted(known), most=3)
            raise InputError(
                f"--print-ir-{option} {name}: no pipeline has a pass of this name."
                + (f" Near names: {', '.join(near)}." if near else ""),
                hint="--explain prints the pipeline of a module.",
            )


def _pass_names(request: BuildRequest) -> Iterator[str]:
    """The names of all passes that a build may run."""
    yield from (one.name for one in OWN_PASSES)
    passes = [*SCHEDULE]
    # Modules without sparse tensors, or without tasks, have other passes.
    for levels in (set(Level), set(Level) - {Level.SPARSE}, set(Level) - {Level.ASYNC}):
        passes += plan_for(levels, block=None, memory=request.memory, verify=True)
    if request.pipeline is not None:
        passes += parse_plan(request.pipeline)
    texts = [one.text for one in passes if not one.is_own]
    texts += (*ALL_HOST_PASSES, LINES_PASS)
    texts += (text for target in TARGETS for text in target.passes())
    for text in dict.fromkeys(texts):
        yield from map(short_name, _expanded(text))


def _expanded(text: str) -> Iterable[str]:
    """The single passes of a text, and those of the pipelines that it names."""
    pipeline = pipeline_text([text])
    try:
        return single_passes(str(PassManager.parse(pipeline)))
    except ValueError:  # the user's pipeline is wrong, which is reported when it is run
        return single_passes(pipeline)
