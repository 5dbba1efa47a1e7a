"""RUN lines of one of LLVM's tests → what it executes, and what its output is compared with.

lit's own words are known as far as MLIR's execution tests use them: continued lines, DEFINE and
REDEFINE, `%if FEATURE %{ ... %} %else %{ ... %}`, pipes, `;`, `&&`, `not`, `env` and `2>&1`.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_LINE = re.compile(r"^.*?\b(RUN|DEFINE|REDEFINE):(.*)$")
_DEFINITION = re.compile(r"\s*(%\{[\w:-]+\})\s*=(.*)", re.DOTALL)
_CONDITION = re.compile(
    r"%if\s+(?P<when>\S+?)\s+%\{(?P<then>(?:(?!%if|%\{\s|%\}).)*)%\}"
    r"(?:\s*%else\s+%\{(?P<otherwise>(?:(?!%if|%\{\s|%\}).)*)%\})?",
    re.DOTALL,
)
# Definitions that name each other without end.
_DEEPEST = 100
_ENTRY = ("-e", "--e", "-entry-point", "--entry-point", "-entry-function", "--entry-function")
_SEPARATORS = ("&&", "||", ";")


@dataclass(frozen=True)
class Execution:
    """One pipeline of a RUN line that runs a module.

    `environment`, `passes` (of mlir-opt, with their options) and `options` (of mlir-runner) are as
    they are written. `checks` are FileCheck's words without its name, or None where the output is
    not compared; `stderr` tells whether it is compared as well.
    """

    entry: str = "main"
    checks: tuple[str, ...] | None = None
    stderr: bool = False
    fails: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    passes: tuple[str, ...] = field(default=(), compare=False)
    options: tuple[str, ...] = field(default=(), compare=False)


def executions(text: str, substitutions: Mapping[str, str]) -> list[Execution]:
    """What a test executes, each once: pipelines that differ in their passes alone are one.

    `substitutions` has lit's: `%s` and so on. Features of `%if` hold where it has them as
    `%feature:NAME`.
    """
    found: dict[Execution, None] = {}
    for script in _scripts(text, substitutions):
        for pipeline in _pipelines(script):
            if (execution := _execution(pipeline)) is not None:
                found.setdefault(execution)
    return list(found)


def _scripts(text: str, substitutions: Mapping[str, str]) -> Iterator[str]:
    """Each RUN line, with what its continued lines say, expanded."""
    definitions: dict[str, str] = {}
    kind, started = "", ""
    for line in text.splitlines():
        if (found := _LINE.match(line)) is None:
            continue
        if not started:
            kind = found[1]
        started += found[2]
        if started.endswith("\\"):
            started = started[:-1]
            continue
        script, started = started, ""
        if kind == "RUN":
            yield _expand(script, {**substitutions, **definitions})
        elif definition := _DEFINITION.match(script):
            definitions[definition[1]] = definition[2].strip()


def _expand(script: str, substitutions: Mapping[str, str]) -> str:
    names = sorted(substitutions, key=len, reverse=True)
    name = re.compile("|".join(rf"{re.escape(name)}(?!\w)" for name in names))
    for _ in range(_DEEPEST):
        expanded = name.sub(lambda found: substitutions[found[0]], script) if names else script
        expanded = _CONDITION.sub(
            lambda found: (
                found["then"]
                if f"%feature:{found['when']}" in substitutions
                else found["otherwise"] or ""
            ),
            expanded,
        )
        if expanded == script:
            break
        script = expanded
    return script


def _pipelines(script: str) -> Iterator[list[list[str]]]:
    """The commands of each pipeline. `2>&1` stays a word of its command."""
    words = shlex.shlex(script.replace("2>&1", " @stderr "), posix=True, punctuation_chars="|&;<>")
    words.whitespace_split = True
    words.commenters = ""
    pipeline: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            yield pipeline
            pipeline = [[]]
        elif word == "|":
            pipeline.append([])
        else:
            pipeline[-1].append(word)
    yield pipeline


def _execution(pipeline: list[list[str]]) -> Execution | None:
    passes: list[str] = []
    runner: list[str] | None = None
    checks: tuple[str, ...] | None = None
    fails, environment = False, []
    for command in pipeline:
        wrapped, set_, words = _unwrapped(command)
        tool = Path(words[0]).name if words else ""
        if tool == "mlir-opt":
            passes += words[1:]
        elif tool in ("mlir-runner", "lli", "%lli", "%mcr_aarch64_cmd"):
            runner, fails, environment = words[1:], wrapped, set_
        elif tool == "FileCheck" and runner is not None:
            checks = tuple(words[1:])
    if runner is None:
        return None
    return Execution(
        entry=_value(runner, _ENTRY) or "main",
        checks=checks,
        stderr="@stderr" in runner,
        fails=fails,
        environment=tuple(environment),
        passes=tuple(passes),
        options=tuple(word for word in runner if word != "@stderr"),
    )


def _unwrapped(command: list[str]) -> tuple[bool, list[tuple[str, str]], list[str]]:
    """Whether a command has to fail, what it finds in its environment, and the command."""
    fails, environment, words = False, [], list(command)
    while words:
        if words[0] in ("not", "env", "--crash"):
            fails = fails or words[0] == "not"
        elif (found := re.fullmatch(r"(\w+)=(.*)", words[0])) is not None:
            environment.append((found[1], found[2]))
        else:
            break
        words.pop(0)
    return fails, environment, words


def _value(words: list[str], names: tuple[str, ...]) -> str | None:
    """What an option of one of these names has, as its own word or behind `=`."""
    for word, following in itertools.pairwise((*words, "")):
        name, separator, value = word.partition("=")
        if name in names:
            return value if separator else following
    return None
