"""What was found, as values; as text and as JSON."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator

import msgspec
from msgspec import Struct

# The section that says again, by what users want, what the others say by thing.
ABILITIES = "what works"


class Status(enum.Enum):
    OK = "ok"
    # Something else does without it.
    ABSENT = "absent"
    # Without it nothing can be built.
    FAILED = "failed"


class Check(Struct, frozen=True):
    """One thing that was looked at.

    `found` is its version, or what is wrong; `source` how it was found ("package", or the variable
    that named it), `about` what it is for, `mend` the command that would make it be there.
    """

    name: str
    status: Status
    found: str
    path: str = ""
    source: str = ""
    about: str = ""
    mend: str = ""


class Report(Struct, frozen=True):
    """The checks by section, in order; `title` says of what machine."""

    title: str
    sections: dict[str, tuple[Check, ...]]

    @property
    def works(self) -> bool:
        """Whether a build can work."""
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
