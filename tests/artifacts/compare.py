"""Compares two folders that `tests.artifacts.record` made.

    python -m tests.artifacts.compare BEFORE AFTER [--but-for-names] [--show 3]

Prints how many artifacts of each kind are equal, differ, or are in one folder only, and the first
differences of each kind. Exit code 1 if there is one. Kernels that the choosers can choose are
compared as a set, by their content, since their names and classes may change.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

# What names a kernel: `gpu.module @X`, `gpu.func @X`, `llvm.func @X`, PTX's `.entry X(`.
_DEFINITION = re.compile(r"(?:gpu\.module|gpu\.func|llvm\.func|\.entry)\s+@?(\w+)")


class Difference(NamedTuple):
    """Two artifacts of the same place that are not equal; None is one that is not there."""

    kind: str
    name: str
    before: str | None
    after: str | None

    def text(self, lines: int) -> str:
        """The first lines of the difference."""
        if self.before is None or self.after is None:
            return f"{self.name}: only {'after' if self.before is None else 'before'}"
        both = (text.splitlines() for text in (self.before, self.after))
        shown = list(difflib.unified_diff(*both, self.name, "after", n=1, lineterm=""))
        return "\n".join(shown[:lines])


def without_names(text: str) -> str:
    """The text, with the kernels' names replaced by `name0`, `name1` and so on, in their order."""
    names = list(dict.fromkeys(_DEFINITION.findall(text)))
    number = {name: index for index, name in enumerate(names)}
    if not names:
        return text
    # A parameter of PTX is called NAME_param_0: a name ends where an underscore begins, too.
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    pattern = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(longest)})(?![A-Za-z0-9])")
    return pattern.sub(lambda found: f"name{number[found[0]]}", text)


def kind_of(path: Path) -> str:
    """`device.mlir` of `module.device.mlir`; `sm_80.ptx` of `kernels_gpu.sm_80.ptx`."""
    return path.name.split(".", 1)[1]


def artifacts(folder: Path, *, names: bool) -> dict[tuple[str, str, str], str]:
    """Texts by (group, module, kind)."""
    found = {}
    for path in sorted(folder.glob("*/*/*")):
        text = path.read_text()
        key = (path.parent.parent.name, path.parent.name, kind_of(path))
        found[key] = text if names else without_names(text)
    return found


def differences(
    before: dict[tuple[str, str, str], str], after: dict[tuple[str, str, str], str]
) -> Iterator[Difference]:
    """What is not the same, module by module, and of kernels as a set."""
    for key in sorted(before.keys() | after.keys()):
        group, module, kind = key
        if group != "kernels" and before.get(key) != after.get(key):
            yield Difference(kind, f"{group}/{module}", before.get(key), after.get(key))
    kernels = (Counter(_kernels(one)) for one in (before, after))
    left, right = kernels
    for kind, text in (left - right).elements():
        yield Difference(kind, f"kernels, {text.count(chr(10))} lines", text, None)
    for kind, text in (right - left).elements():
        yield Difference(kind, f"kernels, {text.count(chr(10))} lines", None, text)


def _kernels(found: dict[tuple[str, str, str], str]) -> Iterator[tuple[str, str]]:
    for (group, _, kind), text in found.items():
        if group == "kernels":
            yield kind, text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.artifacts.compare", description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--but-for-names", action="store_true", help="kernels' names may differ")
    parser.add_argument("--show", type=int, default=3, help="differences shown of each kind (3)")
    parser.add_argument("--lines", type=int, default=30, help="lines shown of each (30)")
    options = parser.parse_args(arguments)
    before, after = (
        artifacts(folder, names=not options.but_for_names)
        for folder in (options.before, options.after)
    )
    by_kind: dict[str, list[Difference]] = defaultdict(list)
    for one in differences(before, after):
        by_kind[one.kind].append(one)
    for kind, found in by_kind.items():
        print(f"{kind}: {len(found)} differ")
        for one in found[: options.show]:
            print(one.text(options.lines))
    count = sum(map(len, by_kind.values()))
    print(f"{len(before)} artifacts before, {len(after)} after; {count} differ")
    return 1 if by_kind else 0


if __name__ == "__main__":
    sys.exit(main())
