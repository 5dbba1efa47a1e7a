"""Waits for the kernel before, in the PTX of kernels that have none."""

from __future__ import annotations

from aotc.request import Chip
from aotc.targets.cuda.ptx_waits import add_waits

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

"""
BODY = """\
// %bb.0:
\t{ // callseq 0, 0
\tcall.uni (retval0), twice, ();
\t} // callseq 0
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
    """Functions that kernels call have none, nor do kernels get a second one."""
    ptx = f"{DECLARED}{BODY}{WAITING}{DECLARED}{BODY}".encode()
    expected = f"{DECLARED}{WAITS}{BODY}{WAITING}{DECLARED}{WAITS}{BODY}".encode()
    assert add_waits(ptx, Chip("sm_90")) == expected
    assert add_waits(expected, Chip("sm_120a")) == expected


def test_earlier_chips_have_no_wait() -> None:
    ptx = f"{DECLARED}{BODY}".encode()
    assert add_waits(ptx, Chip("sm_89")) == ptx
