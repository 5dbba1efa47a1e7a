"""The reader of RUN lines, and the list of expected failures."""

from __future__ import annotations

import pytest

from . import expected
from .lit import Execution, executions

NAMES = {"%s": "/t/a.mlir", "%p": "/t", "%mlir_src_dir": "/llvm"}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        pytest.param(
            "RUN: mlir-opt %s --convert-to-llvm | mlir-runner -e go -entry-point-result=void | "
            "FileCheck %s",
            [Execution("go", ("/t/a.mlir",))],
            id="plain",
        ),
        pytest.param(
            "RUN: mlir-opt %s \\\nRUN: | mlir-runner -entry-point-result=void 2>&1 \\\n"
            "RUN: | FileCheck %s --check-prefix=ERR",
            [Execution("main", ("/t/a.mlir", "--check-prefix=ERR"), stderr=True)],
            id="continued lines",
        ),
        pytest.param(
            "DEFINE: %{env} =\nDEFINE: %{run} = env %{env} mlir-runner --entry-point=f\n"
            'REDEFINE: %{env} = TENSOR0="%mlir_src_dir/x y.mtx"\nRUN: %{run} | FileCheck %s',
            [Execution("f", ("/t/a.mlir",), environment=(("TENSOR0", "/llvm/x y.mtx"),))],
            id="redefined",
        ),
        pytest.param(
            "RUN: mlir-opt %s -a | mlir-runner | FileCheck %s\n"
            "RUN: mlir-opt %s -b | mlir-runner | FileCheck %s",
            [Execution("main", ("/t/a.mlir",))],
            id="passes alone differ",
        ),
        pytest.param(
            "RUN: %if sve %{ mlir-runner -e sve | FileCheck %s %}\n"
            "RUN: %if sve %{ mlir-runner -e x %} %else %{ mlir-runner -e y %}",
            [Execution("y")],
            id="features",
        ),
        pytest.param(
            "RUN: rm -f %t && not --crash mlir-runner -e f ; mlir-opt %s | FileCheck %s",
            [Execution("f", fails=True)],
            id="several commands, and one that has to fail",
        ),
        pytest.param("RUN: mlir-opt %s | FileCheck %s", [], id="executes nothing"),
    ],
)
def test_run_lines(lines: str, found: list[Execution]) -> None:
    """What a test executes is its entry, its environment, and the words of its FileCheck."""
    text = "\n".join(f"// {line}" for line in lines.split("\n"))
    assert found == executions(text, NAMES)


def test_passes_are_kept() -> None:
    """What mlir-opt runs can be asked for."""
    (found,) = executions("// RUN: mlir-opt %s -a='b c' -d | mlir-runner -e f", NAMES)
    assert found.passes == ("/t/a.mlir", "-a=b c", "-d")
    assert found.options == ("-e", "f")


def test_expected_failures_are_updated() -> None:
    """A test that passes leaves the list; one that fails keeps its table, or gets the last."""
    known = expected.read('[runner]\na = "own"\nb = "own"\n["not yet"]\nc = "old"\nd = "kept"\n')
    updated = known.updated({"a": "x", "c": "new", "e": 'a "b"'}, {"b"})
    again = expected.read(updated.text())
    assert again.failures["runner"] == {"a": "own"}
    assert again.failures["not yet"] == {"c": "new", "d": "kept", "e": 'a "b"'}


def test_list_is_as_written() -> None:
    """The committed list reads back, and every reason says something."""
    known = expected.read(expected.FILE.read_text())
    assert expected.FILE.read_text() == known.text()
    assert all(why.strip() for table in known.failures.values() for why in table.values())
