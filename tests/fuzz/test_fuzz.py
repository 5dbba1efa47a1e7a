"""Damaged and odd inputs end in an artifact or in a message: a few, the same in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz import corpus
from fuzz.bytecode import read_varint, varint
from fuzz.case import Case
from fuzz.categories import CATEGORIES, Category, Shared, case_of
from fuzz.execution import Ending, execute
from fuzz.mutators import LARGEST, NUMBERS
from fuzz.reduction import reduce
from fuzz.run import describe
from fuzz.screening import Screen

# The same inputs on every machine and in every run; others by `make fuzz`.
SEED = 1_000_000
# Each is a process of about half a second; those of PyTorch take several.
COUNTS = {"mlir": 12, "bytecode": 10, "onnx": 5, "pt2": 1, "npy": 6, "toml": 4, "cache": 2}
MLIR = b"func.func @f() attributes {llvm.emit_c_interface} {\n  return\n}\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with Screen() as screen:
        # Not those of the tests: another test would change which inputs these are.
        yield Shared(tmp_path_factory.mktemp("shared"), screen, corpus.sample_texts())


@pytest.mark.parametrize("category", CATEGORIES, ids=lambda category: category.name)
def test_every_input_is_built_or_refused(category: Category, shared: Shared) -> None:
    """No signal, no traceback, no exit code of ours or of a tool, nothing slow, nothing left."""
    if not category.is_available:
        pytest.skip(f"not installed: {', '.join(category.needs)}")
    for number in range(COUNTS[category.name]):
        case = case_of(category, SEED, number, shared)
        ending = execute(case)
        assert not ending.is_find, describe(case, ending, ending)


def _build(content: bytes, *options: str) -> Case:
    command = ("build", "input.mlir", *options, "-o", "output")
    return Case("case", "input.mlir", content, MLIR, command, ("output",))


def test_what_ends_well() -> None:
    """An artifact, and a refusal with a message."""
    assert execute(_build(MLIR, "--emit", "mlir", "--no-cache")).kind == "ok"
    refused = execute(_build(b"return return", "--emit", "mlir", "--no-cache"))
    assert (refused.kind, refused.code) == ("refused", 2)


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("kill -SEGV $$", "SIGSEGV"),
        ("exit 2", "silent"),
        ("echo error >&2; exit 3", "exit 3"),
        ("echo error >&2; exit 4", "exit 4"),
        ("echo 'Traceback (most recent call last):' >&2; exit 2", "traceback"),
        ("for i in $(seq 200); do echo error >&2; done; exit 2", "flood"),
        ("echo error >&2; touch output; exit 2", "output of a failure"),
        ("exit 0", "no output"),
        ("touch output", "wrong output"),
        ("touch output $TMPDIR/left", "left temporary files"),
        ("printf x > output", "ok"),
        ("echo error >&2; exit 2", "refused"),
    ],
)
def test_how_a_command_ended(program: str, kind: str, tmp_path: Path) -> None:
    """Each ending that must not be is told from the two that may."""
    script = tmp_path / "tree" / "program"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    case = Case(
        *("case", "input", b"", b"", ("./program",), ("output",)),
        tree=script.parent,
        expected={"output": b"x"},
    )
    assert execute(case).kind == kind


def test_a_find_is_reduced() -> None:
    """Lines and tokens that do not matter for the ending go."""

    def run(case: Case) -> Ending:
        kind = "SIGSEGV" if b"bad" in case.content else "refused"
        return Ending(kind, kind, -11, 0.0, 0.0, "")

    case = _build(b"one\ntwo bad three\n" * 20)
    reduced, ending = reduce(case, run(case), run, 60)
    assert reduced.content.strip() == b"bad"
    assert ending.kind == "SIGSEGV"


def test_cases_are_the_same_in_every_run(shared: Shared) -> None:
    """A find can be made again from its seed and number."""
    mlir = CATEGORIES[0]
    assert case_of(mlir, 7, 3, shared) == case_of(mlir, 7, 3, shared)
    assert case_of(mlir, 7, 3, shared) != case_of(mlir, 7, 4, shared)


def test_numbers_of_bytecode() -> None:
    """What is written as MLIR's bytecode has numbers is read as the same."""
    numbers = [abs(one) % 2**64 for one in NUMBERS]
    for number in numbers:
        assert read_varint(varint(number), 0) == (number, len(varint(number)))


def test_samples_are_modules(shared: Shared) -> None:
    """The screen takes valid modules, in both forms, and no others."""
    assert all(shared.screen.takes(text.encode()) for text in corpus.sample_texts())
    assert all(shared.screen.takes(code) for code in corpus.bytecodes())
    assert not shared.screen.takes(b"func.func @")


def test_mutations_are_bounded() -> None:
    """However often lines are repeated and nested, an input has 1 MB at most."""
    from fuzz.mlir_text import mutate_mlir

    chance, texts = random.Random(SEED), corpus.sample_texts()
    text = texts[0]
    for _ in range(200):
        text = mutate_mlir(text, texts, chance) or texts[0]
        assert len(text) <= LARGEST


def test_most_mutations_that_are_screened_are_modules(shared: Shared) -> None:
    """What is behind the parser sees them."""
    from fuzz.mlir_text import mutate_mlir

    chance, texts = random.Random(SEED), corpus.sample_texts()

    def mutate(old: bytes) -> bytes:
        return mutate_mlir(old.decode(errors="replace"), texts, chance).encode(errors="replace")

    changed = [shared.screen.valid(text.encode(), mutate) for text in texts]
    assert sum(map(shared.screen.takes, changed)) > len(texts) // 2
