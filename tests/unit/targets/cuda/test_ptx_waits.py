"""Waits for the kernel before, in the PTX of kernels that have none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from aotc.errors import InputError
from aotc.request import BuildRequest, Chip
from aotc.targets.cuda import stages
from aotc.targets.cuda.ptx_waits import add_waits
from aotc.targets.cuda.results import DeviceUnit

if TYPE_CHECKING:
    from aotc.building.build import Build

WAITS = "\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n"
DECLARED = """\
.target sm_90
.func (.param .b32 r) twice()
{
\t.reg .b32 \t%r<2>;

\tret;
}
.visible .entry add(
\t.param .u64 .ptr .align 1 add_param_0
)
.maxntid 32, 1, 1                      // @add
{
\t.local .align 4 .b8 \t__local_depot0[4];
\t.reg .b32 \t%r<2>;
\t.loc\t1 2 3

"""
BODY = """\
\t// demoted variable
\t.shared .align 4 .b8 sums[128];
\t{ // callseq 0, 0
\tcall.uni (retval0), twice, ();
\t} // callseq 0
\tgriddepcontrol.launch_dependents;
\tret;
}
"""
WAITING = """\
.visible .entry scale()
{
\t.reg .b32 \t%r<2>;
\tmov.u32 \t%r1, %tid.x;
\tgriddepcontrol.wait;
\tret;
}
"""


def test_kernels_without_a_wait_begin_with_one() -> None:
    """Whatever was inlined in them; functions that they call, and others, have none. Once alone,
    where one chip's PTX is another's."""
    ptx = f"{DECLARED}{BODY}{WAITING}".encode()
    expected = f"{DECLARED}{WAITS}{BODY}{WAITING}".encode()
    assert add_waits(ptx, Chip("sm_90"), ["add"]) == expected
    assert add_waits(expected, Chip("sm_120a"), ["add"]) == expected


def test_a_kernel_that_cannot_be_given_one_is_an_error() -> None:
    """It would be launched as if it waited."""
    with pytest.raises(AssertionError):
        add_waits(f"{DECLARED}{BODY}".encode(), Chip("sm_90"), ["add", "scale"])


def test_earlier_chips_have_no_wait() -> None:
    ptx = f"{DECLARED}{BODY}".encode()
    assert add_waits(ptx, Chip("sm_89"), ["add"]) == ptx


class _Refusing:
    """A compiler for which ptxas refuses a chip's PTX, and takes its own variant's."""

    optimization = 3

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def compile_ptx(self, _source: str, _chip: Chip, output: str) -> None:
        (self.folder / output).write_text(DECLARED + BODY)

    def assemble(self, source: str, chip: Chip, _output: str, *, ir: str) -> list[Any]:
        assert ir
        if chip.name == "sm_90":
            raise InputError("no")
        return [(self.folder / source).read_text()]


def test_kernels_of_a_variant_wait_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_compiler", lambda _: _Refusing(tmp_path))
    request = BuildRequest(tmp_path / "a.mlir")
    build = cast("Build", SimpleNamespace(request=request, stem="a", folder=tmp_path))
    unit = DeviceUnit("a_kernels", (), (), (), None, None, ("add",))
    (tmp_path / "a_kernels.sm_90.ptx").write_text(DECLARED + WAITS + BODY)
    assembled = stages._assemble_for(build, unit, Chip("sm_90"))
    assert assembled == (Chip("sm_90a"), [DECLARED + WAITS + BODY])
