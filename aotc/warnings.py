"""Warnings by name: their default severities, the options that change them, their output.

The options are those of C compilers: `-Wno-NAME`, `-Werror=NAME`, `-Wno-error=NAME`, `-Werror`,
`-Wno-error`, `-WNAME`; a later one wins, and one that has a name wins over one that has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aotc.errors import MOST_SHOWN, InputError, near_names

if TYPE_CHECKING:  # it imports the MLIR bindings, which parsing the command line does not need
    from aotc.input.place import Place
    from aotc.input.source import Source


class Severity(Enum):
    """How a warning is treated."""

    HIDDEN = "hidden"
    WARNING = "warning"
    ERROR = "error"


# Maps each name to its default severity; docs/warnings.md explains each one. No name begins with
# `no-`, which -W parses itself.
WARNINGS = {
    "assembler-crash": Severity.WARNING,
    "block-size": Severity.ERROR,
    "chip-left-out": Severity.WARNING,
    "chip-shared-memory": Severity.WARNING,
    "cluster-size": Severity.ERROR,
    "constants-left-out": Severity.WARNING,
    "double-dealloc": Severity.ERROR,
    "grid-size": Severity.ERROR,
    "host-only": Severity.WARNING,
    "host-pointer": Severity.ERROR,
    "invalid-dealloc": Severity.ERROR,
    "nowhere-to-run": Severity.WARNING,
    "out-of-bounds": Severity.WARNING,
    "runtime-beside": Severity.WARNING,
    "shared-memory": Severity.ERROR,
    "stale-tuning": Severity.WARNING,
    "use-after-dealloc": Severity.ERROR,
}


class Explanation(Struct, frozen=True):
    """The entry of a warning in docs/warnings.md: its meaning, and what to do (perhaps nothing)."""

    meaning: str
    solution: str


def explanations() -> dict[str, Explanation]:
    """The explanations of all warnings, by name."""
    from aotc.toolchain.data import data_dir

    found = {}
    for line in (data_dir("docs") / "warnings.md").read_text().splitlines():
        if line.startswith("| `"):
            name, _, meaning, solution = (cell.strip() for cell in line.strip("|").split(" | "))
            found[name.strip("`")] = Explanation(meaning, solution.rstrip("| "))
    return found


class BuildWarning(Struct, frozen=True):
    """A fact about a build that its user should know: its name, and the place in the input.

    `excerpt` is the line of the input with a caret, if there is one; `notes` name more places.
    The problem of a warning that is not `is_sure` may never occur: such a warning is an error only
    if an option says so.
    """

    name: str
    message: str
    place: Place | None = None
    excerpt: str = ""
    notes: tuple[str, ...] = ()
    is_sure: bool = True

    @staticmethod
    def at(
        source: Source,
        name: str,
        location: Any,
        message: str,
        *,
        notes: Sequence[str] = (),
        is_sure: bool = True,
    ) -> BuildWarning:
        """The warning at an MLIR location in `source`."""
        from aotc.input.source import excerpt

        place = source.place(location)
        text = excerpt(place, source.name, source.lines) if place else ""
        return BuildWarning(name, message, place, text, tuple(notes), is_sure)

    def text(self, severity: Severity, file: str = "aotc") -> str:
        """The printed form: place, severity, message and name; line and caret; notes.

        `file` is the prefix if there is no place: the input's name, if there are several inputs.
        """
        start = str(self.place) if self.place else file
        option = f"-Werror={self.name}" if severity is Severity.ERROR else f"-W{self.name}"
        first = f"{start}: {severity.value}: {self.message} [{option}]"
        return "\n".join([first, *([self.excerpt] if self.excerpt else []), *self.notes])


class WarningOptions(Struct, frozen=True):
    """The values of the `-W` options, in order."""

    hidden: frozenset[str] = frozenset()
    # The names that options made errors, and those that options explicitly made no errors.
    fatal: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    all_fatal: bool = False

    @staticmethod
    def parse(words: Iterable[str]) -> WarningOptions:
        """Parses the values of the `-W` options: `no-NAME`, `error=NAME`, `error`, ...

        Raises InputError for the name of an unknown warning.
        """
        hidden: set[str] = set()
        fatal: set[str] = set()
        harmless: set[str] = set()
        all_fatal = False
        for word in words:
            body = word.removeprefix("no-")
            is_negative = body != word
            if body == "error":
                all_fatal = not is_negative
                continue
            name = body.removeprefix("error=")
            check_name(name, f" in -W{word}")
            if name != body:
                (fatal, harmless)[is_negative].add(name)
                (harmless, fatal)[is_negative].discard(name)
            if not is_negative:
                hidden.discard(name)
            elif name == body:
                hidden.add(name)
        return WarningOptions(frozenset(hidden), frozenset(fatal), frozenset(harmless), all_fatal)

    def severity(self, name: str, *, is_sure: bool = True) -> Severity:
        """The severity of the warnings with that name."""
        if name in self.hidden:
            return Severity.HIDDEN
        if name in self.fatal:
            return Severity.ERROR
        if name in self.harmless:
            return Severity.WARNING
        if self.all_fatal:
            return Severity.ERROR
        return WARNINGS[name] if is_sure else Severity.WARNING


def check_name(name: str, where: str = "") -> None:
    """Raises InputError for the name of an unknown warning; the message ends with `where`."""
    if name in WARNINGS:
        return
    near = near_names(name, WARNINGS, most=3, cutoff=0.5)
    raise InputError(
        f"Unknown warning '{name}'{where}."
        + (f" Did you mean {' or '.join(near)}?" if near else "")
        + f" Known: {', '.join(WARNINGS)}."
    )


def raise_errors(found: Iterable[BuildWarning], options: WarningOptions) -> None:
    """Raises one InputError with all the warnings that are errors."""
    texts = [
        warning.text(Severity.ERROR)
        for warning in found
        if options.severity(warning.name, is_sure=warning.is_sure) is Severity.ERROR
    ]
    if texts:
        # The command line writes the file's name before the first warning if that has no place.
        shown = first_of(texts, "errors")
        raise InputError("\n".join(shown).removeprefix("aotc: error: "))


def first_of(texts: Iterable[str], what: str) -> list[str]:
    """The first distinct texts, as many as fit on a screen, and the number of the others."""
    unique = list(dict.fromkeys(texts))
    more = len(unique) - MOST_SHOWN
    return [*unique[:MOST_SHOWN], *([f"and {more} more {what}"] if more > 0 else [])]
