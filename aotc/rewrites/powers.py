"""`math.fpowi` with a small constant exponent → products.

PyTorch's gelu contains x³. A GPU calls a function for fpowi, which multiplies in a loop; products
can be fused with other operations.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

_LARGEST = 4
# Types that are multiplied in f32, so that the result is rounded once.
_NARROW = ("f16", "bf16")


def expand_powers(module: Any) -> None:
    """Changes `module` in place."""
    with module.context:
        for power in ops.find(module.operation, "math.fpowi"):
            times = ops.known_index(power.operands[1])
            if times is not None and 2 <= times <= _LARGEST:
                with power.location, ir.InsertionPoint(power):
                    made = _product(power.operands[0], times)
                ops.replace(power, [made])


def _product(value: Any, times: int) -> Any:
    """x², x² · x or x² · x², at the insertion point."""
    own = value.type
    is_narrow = str(own) in _NARROW
    if is_narrow:
        value = ops.unary("arith.extf", value, ir.F32Type.get())
    square = ops.binary("arith.mulf", value, value)
    made = square
    if times > 2:
        made = ops.binary("arith.mulf", square, value if times == 3 else square)
    return ops.unary("arith.truncf", made, own) if is_narrow else made
