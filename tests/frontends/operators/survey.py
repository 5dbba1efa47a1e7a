"""Tells which programs of one PyTorch operator are right, refused by name, or wrong.

    python -m tests.frontends.operators.survey [PATTERN ...]

Those whose names have one of the patterns, or all. Exit code 1 where one is wrong or fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import torch
from frontends.operators.judge import Trial, Verdict, judge
from frontends.operators.programs import Program, programs

from aotc.errors import AotcError
from aotc.frontends.torch import import_program

_TOGETHER = 16


def trial_of(chosen: Sequence[Program]) -> Trial:
    """The programs as functions of the inputs of all of them."""
    functions, inputs = {}, []
    for program in chosen:
        first, count = len(inputs), len(program.inputs)
        functions[program.name] = _of_part(program.function, slice(first, first + count))
        inputs += program.inputs
    return Trial(functions, [tuple(inputs)])


def _of_part(function: Callable[..., Any], part: slice) -> Callable[..., Any]:
    return lambda *inputs: function(*inputs[part])


def refusal(program: Program) -> Verdict | None:
    """The verdict for a program that PyTorch does not export, or aotc does not import."""

    class Module(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return program.function(*inputs)

    try:
        exported = torch.export.export(Module(), program.inputs)
    except Exception as error:
        return Verdict(program.name, "export", str(error))
    try:
        import_program(exported, "program")
    except AotcError as error:
        kind = "refused" if type(error).__name__ == "InputError" else "failed"
        return Verdict(program.name, kind, str(error))
    return None


def tell(verdict: Verdict) -> None:
    lines = [line.strip() for line in verdict.message.splitlines() if line.strip()]
    print(f"{verdict.kind:8} {verdict.name:32} {' '.join(lines)[:400]}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    options = parser.parse_args(arguments)
    chosen = [
        program
        for program in programs()
        if not options.patterns or any(pattern in program.name for pattern in options.patterns)
    ]
    kinds: Counter[str] = Counter()
    accepted = []
    for program in chosen:
        verdict = refusal(program)
        if verdict is None:
            accepted.append(program)
        else:
            tell(verdict)
            kinds[verdict.kind] += 1
    for first in range(0, len(accepted), _TOGETHER):
        for verdict in judge(trial_of(accepted[first : first + _TOGETHER])):
            tell(verdict)
            kinds[verdict.kind] += 1
    print(f"{len(chosen)} programs: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    return 1 if kinds["wrong"] or kinds["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
