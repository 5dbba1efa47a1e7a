"""The reasons for the chosen kernels of a matmul, as text for `--explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.chosen import Choice
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.peaks import kind_of, peak_of
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.tuned import LARGE, SMALL, matrices, sizes_at, sizes_of
from aotc.request import Chip, unique


def reasons(choices: Sequence[Choice], chips: Sequence[Chip]) -> Iterator[str]:
    """One line for each kernel on GPUs: the condition under which it is launched, the reason for
    its choice, and the expected fraction of the peak on the chips of the build."""
    own = {Chip(choice.target).capability for choice in choices if choice.target != ANY_GPU}
    others = [chip for chip in unique(chips) if chip.capability not in own]
    before: tuple[int, ...] = ()
    for number, choice in enumerate(choices, 1):
        words = [f"{number}. {choice}, {_when(choice)}", _why(choice)]
        on = others if choice.target == ANY_GPU else [Chip(choice.target)]
        # The choice after a kernel for only some GPUs is for the other GPUs.
        on = [chip for chip in on if chip.capability not in before]
        if choice.capabilities:
            on = [chip for chip in on if chip.capability in choice.capabilities]
        before = choice.capabilities
        if expected := _expected(choice, on):
            words.append(expected)
        yield "  " + "; ".join(words)


def _when(choice: Choice) -> str:
    aligned = [
        str(matrix.alignment)
        for matrix in matrices(choice.problem)
        if matrix.alignment > ELEMENT_BYTES[matrix.element]
    ]
    place = f"rows at multiples of {'/'.join(unique(aligned))} bytes" if aligned else "any address"
    if choice.rows is not None:
        least, most = choice.rows
        place = f"{f'{least} to {most} rows' if least < most else 'one row'}, {place}"
    if choice.most_tiles:
        least_k = f", K of {choice.least_k} and more" if choice.least_k else ""
        or_else = ", or the rows after whole waves of others" if choice.shares_rows else ""
        rows = choice.problem.has_matrices
        few = f"up to {choice.most_tiles} tiles" + (f", or {choice.variant.m} rows" if rows else "")
        return f"{few}{or_else}{least_k}, {place}"
    return f"{choice.least_tiles} tiles and more, {place}" if choice.least_tiles else place


def _why(choice: Choice) -> str:
    if choice.entry is not None:
        return str(choice.entry)
    if (how := choice.family.describe_choice(choice.variant)) is not None:
        return how
    if choice.most_tiles:
        is_split = getattr(choice.variant, "split_k", 1) != 1
        return "made for few tiles" + (", in parts of K" if is_split else "")
    known = _variants(choice.family, choice.problem)
    if choice.variant not in known:
        return "made for few rows, or few tiles"
    count = len(known)
    if choice.least_tiles or not choice.family.has_cost_model:
        return f"the first of {count}"
    return f"of {count} the fewest clocks"


@lru_cache(maxsize=256)
def _variants(family: MatmulFamily[Any], problem: Problem) -> tuple[Any, ...]:
    """The family's variants. They are cached, as networks have many equal matmuls."""
    return family.variants(problem)


def _expected(choice: Choice, chips: Sequence[Chip]) -> str | None:
    if choice.family.describe_choice(choice.variant) is None:
        return _expected_at(choice, chips, None)
    return "; ".join(filter(None, (_expected_at(choice, chips, one) for one in (LARGE, SMALL))))


def _expected_at(choice: Choice, chips: Sequence[Chip], unknown: int | None) -> str | None:
    parts: list[str] = []
    for chip in chips:
        part, peak = choice.expected_fraction(chip, unknown), peak_of(choice.problem, chip)
        if part is None:
            return None
        kind = kind_of(choice.problem)
        unit = "TOP/s" if kind.startswith("i") else "TFLOP/s"
        of = f"{chip.name}'s peak of {kind} ({peak.teraflops:g} {unit})"
        parts.append(f"{part:.2f} of {of if not parts else f'{chip.name} ({peak.teraflops:g})'}")
    if not parts:
        return None
    sizes = choice.sizes if unknown is None else sizes_at(choice.problem, unknown)
    at = "" if None not in sizes_of(choice.problem) else f" at {'x'.join(map(str, sizes))}"
    return f"expected{at}: {', '.join(parts)}"
