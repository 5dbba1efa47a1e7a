"""The file of the fastest measured kernels, which `aotc tune` writes and `--tuned` reads.

It is JSON, `{"format": 1, "products": [...]}`, with an entry for each chip, problem and sizes:

    {"chip": "sm_90a", "problem": "f16 nn 1024x1024x1024 -> f16, ...", "sizes": [1024, 1024, 1024],
     "kernel": "wgmma", "variant": {"n": 128, ...}, "microseconds": 5.21, "candidates": 14,
     "gpu": "NVIDIA H200"}

`problem` is the text of `problem_words`, `kernel` a family's name and `variant` its parameters. The
other fields document the measurement, and do not affect the choice.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from aotc.errors import InputError
from aotc.kernels.matmul.problem import Matrix, Problem

if TYPE_CHECKING:
    from aotc.kernels.matmul.family import MatmulFamily

FORMAT = 1
# The values of unknown sizes when kernels are timed: of the kernel for many tiles, and of the
# kernel for fewer. (TINY is for the kernel for few tiles, which is not timed.)
LARGE, SMALL, TINY = 4096, 1024, 512

Sizes = tuple[int, int, int]


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """The fastest kernel for a problem on a chip, for matrices of `sizes` (M, N, K)."""

    chip: Annotated[str, Meta(pattern=r"^sm_\d+[a-z]?$")]
    problem: str
    sizes: Sizes
    kernel: str
    variant: dict[str, Any]
    microseconds: float
    candidates: int
    gpu: str

    def __str__(self) -> str:
        return (
            f"the fastest of {self.candidates} on {self.gpu} ({self.microseconds:g} us at "
            f"{'x'.join(map(str, self.sizes))})"
        )


class _Document(Struct, frozen=True):
    format: int
    products: tuple[Entry, ...]


@functools.lru_cache(maxsize=8)
def parse_tuned(text: str, name: str = "the file of --tuned") -> tuple[Entry, ...]:
    """The entries of a file's text. Raises InputError if the text is not in the format."""
    from msgspec import ValidationError, convert

    try:
        document = json.loads(text)
        found = document.get("format") if isinstance(document, dict) else None
        if found == FORMAT:
            return convert(document, _Document).products
        if found is None:
            reason = "it has no 'format'"
        else:
            reason = f"its format is {found}, and this aotc knows {FORMAT}"
    except (ValueError, ValidationError) as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    raise InputError(f"{name} is not what aotc tune writes: {reason}.")


def problem_words(problem: Problem) -> str:
    """The text that identifies a problem in the file. It has every property of the problem that
    kernels depend on."""
    sizes = "x".join("?" if size is None else str(size) for size in sizes_of(problem))
    layout = "".join("t" if one.transposed else "n" for one in (problem.a, problem.b))
    elements = dict.fromkeys((problem.a.element, problem.b.element))
    words = [
        f"{' by '.join(elements)} {layout} {sizes} -> {problem.c.element}",
        f"sums {problem.accumulator}",
        f"rows at {'/'.join(str(one.alignment) for one in matrices(problem))} bytes",
    ]
    pitches = [_pitch(one) for one in matrices(problem)]
    if any(pitches):
        words.append(f"pitches {'/'.join(pitch or '-' for pitch in pitches)}")
    unsigned = [name for name, one in (("A", problem.a), ("B", problem.b)) if one.unsigned]
    if unsigned:
        words.append(f"{' and '.join(unsigned)} unsigned")
    if problem.batched:
        words.append("in batches")
    if problem.adds:
        words.append("added to C")
    if problem.allow_tf32:
        words.append("tf32 allowed")
    if problem.allow_3xtf32:
        words.append("3 x tf32 allowed")
    return ", ".join(words)


def _pitch(matrix: Matrix) -> str:
    """The pitch of a part of a wider matrix, in elements; empty for a whole matrix."""
    columns = matrix.sizes[1]
    is_whole = matrix.pitch == columns or (matrix.pitch is None and columns is None)
    return "" if is_whole else str(matrix.pitch or "?")


def matrices(problem: Problem) -> tuple[Matrix, Matrix, Matrix]:
    return problem.a, problem.b, problem.c


def sizes_of(problem: Problem) -> tuple[int | None, int | None, int | None]:
    return problem.m, problem.n, problem.k


def sizes_at(problem: Problem, unknown: int) -> Sizes:
    """M, N and K of the problem, with `unknown` in place of each unknown size."""
    m, n, k = (unknown if size is None else size for size in sizes_of(problem))
    return m, n, k


def timed_sizes(problem: Problem) -> list[Sizes]:
    """The sizes that kernels are timed with. If some sizes are unknown, there are two: large ones,
    then small ones."""
    return list(dict.fromkeys(sizes_at(problem, unknown) for unknown in (LARGE, SMALL)))


def variant_of(
    entry: Entry, families: Mapping[str, MatmulFamily[Any]], problem: Problem
) -> tuple[MatmulFamily[Any], Any]:
    """The family that an entry names, and its variant. Raises ValueError, with the reason, if this
    version of aotc does not have the kernel, or it does not support the problem."""
    family = families.get(entry.kernel)
    if family is None:
        raise ValueError(f"there is no kernel '{entry.kernel}'")
    fields = family.variant_type.__struct_fields__
    if set(fields) != set(entry.variant):
        raise ValueError(f"'{entry.kernel}' has parameters {', '.join(fields)}")
    from msgspec import ValidationError, convert

    try:
        variant = convert(entry.variant, family.variant_type)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    if variant not in family.variants(problem) or not family.can_implement(problem, variant):
        raise ValueError(f"'{entry.kernel}' of {_shown(entry)} cannot take it")
    return family, variant


def _shown(entry: Entry) -> str:
    return ", ".join(f"{name} {value}" for name, value in entry.variant.items())
