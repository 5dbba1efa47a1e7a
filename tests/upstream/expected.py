"""The list of what is not expected to pass, with reasons: `expected.toml`.

Its tables are kinds of reasons. In `skip` are prefixes of paths, which are not run at all; in the
others tests that fail.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

FILE = Path(__file__).with_name("expected.toml")
NOT_YET = "not yet"
# Those that no later aotc will pass.
KINDS = {
    "test pass": "The test needs a pass of MLIR's own tests, whose effect shows in the output.",
    "gpu": "The test needs the hardware of a GPU, which the CPU device has not.",
    "runner": "The test is of mlir-runner's own options and messages.",
    NOT_YET: "What aotc lacks, in the words of its message.",
}
_HEAD = """\
# What is not expected to pass of LLVM's execution tests, with a reason each: see run.py.
#
# [skip] has prefixes of paths (below mlir/test) that are not run. The other tables have tests that
# fail. `python -m tests.upstream.run --update` writes [not yet] anew; a test that is moved to
# another table stays there as long as it fails.
"""


class Expected(Struct, frozen=True):
    skip: Mapping[str, str]
    failures: Mapping[str, Mapping[str, str]]

    def skipped(self, name: str) -> str | None:
        """Why a test is not run."""
        return next((why for start, why in self.skip.items() if name.startswith(start)), None)

    def kind(self, name: str) -> str | None:
        """The table of a test that fails."""
        return next((kind for kind in KINDS if name in self.failures.get(kind, {})), None)

    def updated(self, failures: Mapping[str, str], passed: set[str]) -> Expected:
        """This, where tests had these results now; others stay as they are."""
        tables: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        for kind in KINDS:
            for name, why in self.failures.get(kind, {}).items():
                if name not in passed and not (kind == NOT_YET and name in failures):
                    tables[kind][name] = why
        for name, why in failures.items():
            if self.kind(name) in (None, NOT_YET):
                tables[NOT_YET][name] = why
        return Expected(self.skip, tables)

    def text(self) -> str:
        parts = [_HEAD, _table("skip", self.skip, "These need hardware or systems.")]
        for kind, meaning in KINDS.items():
            parts.append(_table(kind, self.failures.get(kind, {}), meaning))
        return "\n".join(parts)


def read(text: str) -> Expected:
    data = tomllib.loads(text)
    return Expected(data.get("skip", {}), {kind: data.get(kind, {}) for kind in KINDS})


def _table(name: str, rows: Mapping[str, str], meaning: str) -> str:
    # JSON's strings are TOML's.
    lines = [f"{json.dumps(key)} = {json.dumps(rows[key])}" for key in sorted(rows)]
    return "\n".join([f"# {meaning}", f'["{name}"]', *lines, ""])
