"""The findings of `aotc doctor`, as values, text and JSON."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator

import msgspec
from msgspec import Struct

# The section that summarizes the others by what a user wants to do.
ABILITIES = "what works"


class Status(enum.Enum):
    OK = "ok"
    # Missing, but something else works without it.
    ABSENT = "absent"
    # Missing, and nothing can be built without it.
    FAILED = "failed"


class Check(Struct, frozen=True):
    """One checked item.

    `found` is its version, or the problem; `source` is how it was found ("package", or the
    variable that names it), `about` its purpose, `mend` the command that installs it.
    """

    name: str
    status: Status
    found: str
    path: str = ""
    source: str = ""
    about: str = ""
    mend: str = ""


class Report(Struct, frozen=True):
    """The checks by section, in order; `title` names the machine."""

    title: str
    sections: dict[str, tuple[Check, ...]]

    @property
    def works(self) -> bool:
        """Whether builds can work."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(
            check
            for section, checks in self.sections.items()
            for check in checks
            if check.status is Status.FAILED and section != ABILITIES
        )

    def to_text(self) -> str:
        names = [check.name for checks in self.sections.values() for check in checks]
        width = max(map(len, names), default=0)
        lines = [self.title]
        for section, checks in self.sections.items():
            lines += ["", section]
            lines += [line for check in checks for line in _lines(check, width)]
        names = [check.name for check in self.failures]
        result = f"Builds do not work here: {', '.join(names)}." if names else "Builds work here."
        return "\n".join([*lines, "", result])

    def to_json(self) -> str:
        sections = msgspec.to_builtins(self.sections)
        found = {"title": self.title, "works": self.works, "sections": sections}
        return json.dumps(found, indent=2)


def _lines(check: Check, width: int) -> Iterator[str]:
    start = f"  {check.status.value:<6}  {check.name:<{width}}  "
    purpose = f" ({check.about})" if check.about else ""
    yield f"{start}{check.found}{purpose}"
    indent = " " * len(start)
    if check.path:
        source = f"  ({check.source})" if check.source else ""
        yield f"{indent}{check.path}{source}"
    if check.mend and check.status is not Status.OK:
        yield f"{indent}{check.mend}"
