"""How far a right result may be from the exact one."""

from __future__ import annotations

from typing import Any

# Half a unit in the last place of 1.
ROUNDING = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "i32": 0.0}
# The least difference of two elements, halved.
_SMALLEST = {"f64": 0.0, "f32": 2.0**-150, "f16": 2.0**-25, "bf16": 2.0**-134, "i32": 0.0}
# Of operands, where a case is built to round them before they are multiplied.
_ALLOWED = {"allow_tf32": 2.0**-10, "allow_3xtf32": 2.0**-21}


def of_sums(case: dict[str, Any], k: int, element: str, sums: str) -> float:
    """The error of a sum of k products, in parts of the sum of their absolute values. `sums`: of
    which type it may be, at least f32."""
    if element.startswith("i"):
        return 0.0
    # Tensor cores cut sums off, which has one direction: the bound grows with K, not its root.
    part = (8 + k / 4) * (2.0**-53 if sums == "f64" else 2.0**-24)
    if element == "f32":
        part += sum(_ALLOWED[option] * 2 for option in case["options"])
    return part


def of_result(element: str, exact: Any) -> Any:
    """Of rounding it to the type of the result."""
    return 1.01 * ROUNDING[element] * exact.abs() + _SMALLEST[element]
