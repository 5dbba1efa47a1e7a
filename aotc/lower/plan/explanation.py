"""The text of `--explain`: the levels found in a module, the plan, and the decisions of the
lowering."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from aotc.lower.passes.base import Pass
from aotc.lower.plan.levels import Found
from aotc.lower.plan.pipeline import plan_text
from aotc.remarks import Remarks


class Explanation(Struct):
    """The levels of the input, the plan, and the decisions of one build so far.

    `quick`: a note on what a quick build leaves out; None for other builds.
    """

    remarks: Remarks
    quick: str | None = None
    levels: tuple[Found, ...] = ()
    passes: list[Pass] = field(default_factory=list)

    def add(self, passes: Iterable[Pass]) -> None:
        self.passes += passes

    def text(self) -> str:
        """The explanation as a pipeline that `--pipeline` accepts; everything but the passes is a
        comment."""
        lines = [f"// {self.remarks.source.name} has {self._levels()}."]
        if self.quick is not None:
            lines.append(f"// {self.quick}")
        if self.passes:
            lines.append(plan_text(self.passes))
        for step in dict.fromkeys(remark.step for remark in self.remarks.taken):
            lines.append(f"// {step}:")
            lines += [f"//   {r}" for r in self.remarks.taken if r.step == step]
        return "\n".join(lines)

    def _levels(self) -> str:
        return ", ".join(map(str, self.levels)) or "functions alone"
