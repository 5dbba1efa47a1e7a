"""Operations of vectors that few programs have: values, on the host and in kernels of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]

VECTORS = Path(__file__).parent / "data" / "vectors.mlir"
# Of the kernel by hand, of warps, of barriers and prints in kernels, of bits in memory, of scans
# and matrices.
PRINTED = """\
( ( 4, 4, 4, 4, 4, 1, 1 ), ( 4, 4, 4, 4, 4, 1, 1 ), ( 1, 1, 1, 1, 1, 1, 1 ) )
( 140, 146, 152, 137 )
( 160, 160, 4626, 164 )
( ( 0, 1, 51, 0 ), ( 0, 1, 51, 1 ) )
( ( 1.5, -2 ), ( 3, 1e+10 ) )
-3, 0
100 %d
( 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, \
1, 0 )
( 0.5 )
1
( 1, 0, 1, 1, 0, 1, 1, 1 )
( 1, 1, 1, 1, 0, 1, 1, 1 )
-4
( ( 1, -4 ), ( -2, 5 ), ( 3, -6 ) )
( 0.5, -3, 448 )
( ( 1, 2 ), ( 4, 6 ), ( 9, 12 ) )
( ( 6, 6 ), ( 6, 12 ), ( 18, 48 ) )
( 4, 6, 310, 420 )
( ( 65, 12, -1, 33, -86 ), ( 69, -47, 36, 9, -24 ) )
( 5, 10, 20, 9, 18, 4, 0, 29 )
( 0, 1, 1, 1, 1, 0, 1, 0 )
( 1, 0, 1, 1, 1, 1, 0, 0 )
"""


def test_values(aotc: Aotc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    done = aotc("run", VECTORS, "--chip", "sm_90").succeeded()
    assert done.stdout == PRINTED
