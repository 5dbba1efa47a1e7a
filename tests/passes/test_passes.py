"""Each pass of aotc's, on the module in `aotc-NAME.mlir`.

Its first line is `// RUN: PASSES`, as `--pipeline` takes them; FileCheck's CHECK lines say what the
module is then.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from helpers.filecheck import filecheck, matches
from helpers.passes import run_passes_on

from aotc.lower.passes.base import OwnPass, Pass
from aotc.lower.plan.levels import Level
from aotc.lower.plan.pipeline import OWN_PASSES, plan_for
from aotc.pipeline_text import pipeline_text, short_name, single_passes, split_list
from aotc.request import MemoryMode

FOLDER = Path(__file__).parent
# Those by which a plan differs.
LEVELS = (Level.TOSA, Level.TENSORS, Level.LINALG, Level.SCF, Level.VECTOR)


@pytest.mark.parametrize("name", [one.name for one in OWN_PASSES])
def test_pass(name: str) -> None:
    """The CHECK lines hold, and not without the pass."""
    path = FOLDER / f"{name}.mlir"
    text = path.read_text()
    run, _, _ = text.partition("\n")
    passes = split_list(run.removeprefix("// RUN: "))
    filecheck(str(run_passes_on(text, *passes, name=path.name).module), text)
    others = [one for one in passes if short_name(one) != name]
    assert len(others) == len(passes) - 1
    assert not matches(str(run_passes_on(text, *others, name=path.name).module), text)


def test_each_file_is_a_pass() -> None:
    files = {path.stem for path in FOLDER.glob("*.mlir")}
    assert files == {one.name for one in OWN_PASSES}


@pytest.mark.parametrize("one", OWN_PASSES, ids=lambda one: one.name)
def test_pass_is_described(one: type[OwnPass]) -> None:
    """It has a module of its own name, and a reason for --explain."""
    assert one.__module__ == f"aotc.lower.passes.{one.name.removeprefix('aotc-').replace('-', '_')}"
    assert one().reason
    assert one().text == one.name


@pytest.mark.parametrize("count", range(len(LEVELS) + 1))
def test_what_a_pass_needs_is_before_it(count: int) -> None:
    for levels in itertools.combinations(LEVELS, count):
        plan = plan_for(levels, block=None, memory=MemoryMode.AUTO)
        before = [_names(plan[:i]) for i in range(len(plan) + 1)]
        for one, earlier in zip(plan, before, strict=False):
            if isinstance(one, OwnPass):
                late = (set(one.needs) & before[-1]) - earlier
                assert not late, f"{one.name} is before {late} for {levels}"


def test_what_a_pass_needs_is_a_pass() -> None:
    known = _names(plan_for(set(Level) - {Level.SPARSE}, block=None, memory=MemoryMode.AUTO))
    known |= {one.name for one in OWN_PASSES} | {"transform-interpreter"}
    needed = {name for one in OWN_PASSES for name in one.needs}
    assert needed - known == set()


def _names(passes: tuple[Pass, ...]) -> set[str]:
    singles = (single_passes(pipeline_text([one.text])) for one in passes)
    return {short_name(one) for one in itertools.chain.from_iterable(singles)}
