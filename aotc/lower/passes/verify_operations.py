"""Runtime verification (`--verify`): operations whose sizes, indices or types do not fit fail.

MLIR's `generate-runtime-verification` puts a `cf.assert` before each operation that it knows. One
run of it would be too early for accesses and too late for the rest: before affine loops are
lowered it does not know their accesses, and its assertions would keep loops from being recognized
as parallel; after operations are lowered, casts have been folded and linalg is loops. So there are
two runs, and each keeps what the other one has not.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, ClassVar

from aotc import ops
from aotc.errors import InputError
from aotc.lower.passes.base import Lowering, OwnPass, Parsers
from aotc.mlir import ir

_UPSTREAM = "generate-runtime-verification"
# The message: a title, the operation's text, the reason, and a location with the input's path.
_MESSAGE = re.compile(
    r'ERROR: Runtime op verification failed\n(?:%[^=\n]* = )?"?(?P<operation>[\w.]+).*\n'
    r"\^ (?P<reason>.*?)(?:\nLocation: .*)?",
    re.DOTALL,
)
_ACCESSES = (
    *("memref.load", "memref.store", "memref.atomic_rmw", "memref.generic_atomic_rmw"),
    *("tensor.extract", "tensor.insert"),
)
_LOOPS = ("scf.for", "scf.while", "scf.parallel", "scf.forall", "affine.for", "affine.parallel")
_KERNELS = ("gpu.launch", "gpu.module")


class Part(Enum):
    """What one run verifies."""

    OPERATIONS = "operations"
    ACCESSES = "accesses"


def _parse_part(word: str) -> Part:
    try:
        return Part(word)
    except ValueError:
        known = ", ".join(part.value for part in Part)
        raise InputError(f"aotc-verify-operations{{part={word}}}: known are {known}.") from None


class VerifyOperations(OwnPass, frozen=True):
    """Assertions of what operations expect of their operands.

    `part=operations`: all that MLIR verifies, but for accesses of elements in loops, kernels and
    bodies of linalg operations. `part=accesses`: accesses of elements, wherever they stand.
    """

    name = "aotc-verify-operations"
    parsers: ClassVar[Parsers] = {"part": _parse_part}
    reason: str = "--verify: an operation that does not fit its operands is a failure"
    part: Part = Part.OPERATIONS

    def run(self, lowering: Lowering) -> None:
        lowering.run_upstream(_UPSTREAM)
        with lowering.module.context:
            for assertion in ops.find(lowering.module.operation, "cf.assert"):
                message = ir.StringAttr(assertion.attributes["msg"]).value_bytes.decode()
                if found := _MESSAGE.fullmatch(message):
                    if self._keeps(assertion, found["operation"]):
                        text = f"{found['operation']}: {found['reason']}"
                        assertion.attributes["msg"] = ir.StringAttr.get(text)
                    else:
                        ops.erase(assertion)
        # Conditions of assertions that are gone, and sizes that several ask for.
        lowering.run_upstream("cse")

    def _keeps(self, assertion: Any, operation: str) -> bool:
        is_access = operation in _ACCESSES
        if self.part is Part.ACCESSES:
            return is_access
        around = [op.name for op in ops.ancestors(assertion)]
        if any(name.startswith("linalg.") for name in around):
            return False
        return not (is_access and any(name in (*_LOOPS, *_KERNELS) for name in around))
