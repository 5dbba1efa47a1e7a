"""One module of many small kernels in which threads exchange values: shuffles, reductions, ids.

`source()` is its text, `CASES` what its entries are called with and what must come out, to the
bit: floats as well, because the order of their sums is defined. It runs on GPUs from Ampere on as
well as on the CPU device, with the same expectations.

Each entry takes `x`, a row for each block and a column for each thread, and most take the sizes of
the block, so that the kernel does not know them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from e2e.exchange_text import (
    CLUSTERS,
    ELEMENTS,
    KNOWN,
    KNOWN_ELEMENTS,
    ROTATIONS,
    ROUNDS,
    VECTORS,
    Size,
    entry_name,
    shuffles,
    source,
)
from e2e.exchange_values import (
    FLOATS,
    WARP,
    all_reduce,
    ballot,
    operations_of,
    random_values,
    rotate_source,
    shuffle_source,
    subgroup_reduce,
)

from samples import Argument, Array, Case, Values, rng

__all__ = ["CASES", "PROGRAM", "source"]

PROGRAM = "exchanges"

BLOCKS = 3
# Whole warps, partial ones, less than one; in one to three dimensions.
WHOLE: list[Size] = [(64, 1, 1), (8, 4, 3)]
PARTIAL: list[Size] = [(1, 1, 1), (7, 1, 1), (33, 1, 1), (7, 5, 3)]
LARGE: list[Size] = [(1024, 1, 1), (10, 10, 10), (1, 993, 1)]


def _by_regions(values: Array) -> Array:
    def first(left: Array, right: Array) -> Array:
        return left * np.int32(3) - right

    def second(left: Array, right: Array) -> Array:
        return np.where(left < right, left - right, right + right + left)

    with np.errstate(over="ignore"):
        return np.stack([all_reduce(values, first), all_reduce(values, second)])


def _values(
    name: str,
    element: str,
    size: Size,
    compute: Callable[[Array], dict[str, Array]],
    *,
    is_known: bool = False,
    extra: tuple[int, ...] = (),
    others: dict[str, Argument] | None = None,
    make: Callable[..., Array] = random_values,
) -> Values:
    x = make(rng(name), (BLOCKS, prod(size), *extra), element)
    results = compute(x)
    arguments: dict[str, Argument] = {
        "x": x,
        **{result: array.shape for result, array in results.items()},
        **(others or {}),
    }
    if not is_known:
        arguments |= {f"b{d}": n for d, n in zip("xyz", size, strict=True)}
    return Values(arguments, results, {})


def _compute_subgroup_reduce(element: str, x: Array) -> dict[str, Array]:
    return {"out": np.stack([subgroup_reduce(x, op) for op in operations_of(element).values()])}


def _compute_clusters(element: str, x: Array) -> dict[str, Array]:
    add = operations_of(element)["add"]
    return {"out": np.stack([subgroup_reduce(x, add, *cluster) for cluster in CLUSTERS])}


def _compute_all_reduce(element: str, x: Array) -> dict[str, Array]:
    return {
        "out": np.stack(
            [
                all_reduce(np.roll(x, -turn, 1), op)
                for op in operations_of(element).values()
                for turn in range(ROUNDS)
            ]
        )
    }


def _compute_vector_reduce(element: str, x: Array) -> dict[str, Array]:
    add = operations_of(element)["add"]
    parts = [subgroup_reduce(x[..., place], add) for place in range(x.shape[2])]
    return {"out": np.stack(parts, axis=2)}


def _with_nans(generator: np.random.Generator, shape: tuple[int, ...], element: str) -> Array:
    """Some are NaN, and warps differ in whether they have one; no warp has nothing else."""
    values = random_values(generator, shape, element)
    columns = np.arange(shape[1])
    values[0, columns % 7 == 3] = np.nan
    values[1, columns == 1] = np.nan
    return values


def _compute_numbers(x: Array) -> dict[str, Array]:
    ops = operations_of("f32")

    def both(*kinds: str) -> Array:
        return np.stack([f(x, ops[kind]) for kind in kinds for f in (subgroup_reduce, all_reduce)])

    return {
        "out": both("minnumf", "maxnumf"),
        "nan": np.isnan(both("minimumf", "maximumf")),
    }


def _moved(x: Array, sources: Sequence[tuple[Array, Array]]) -> dict[str, Array]:
    valid = np.stack([np.broadcast_to(is_valid, x.shape) for _, is_valid in sources])
    return {"out": np.stack([x[:, source] for source, _ in sources]), "valid": valid}


def _compute_shuffles(x: Array) -> dict[str, Array]:
    return _moved(
        x, [shuffle_source(mode, by, width, x.shape[1]) for width, (mode, by) in shuffles()]
    )


def _compute_rotations(x: Array) -> dict[str, Array]:
    return _moved(x, [rotate_source(by, width, x.shape[1]) for by, width in ROTATIONS])


def _compute_broadcasts(lane: int, x: Array) -> dict[str, Array]:
    first = np.arange(x.shape[1]) // WARP * WARP
    return {"out": np.stack([x[:, first], x[:, first + lane]])}


def _compute_broadcast_in_branch(x: Array) -> dict[str, Array]:
    linear = np.arange(x.shape[1])
    return {"out": x[:, np.where(linear % WARP >= 3, linear // WARP * WARP + 3, linear)]}


def _compute_vectors(x: Array) -> dict[str, Array]:
    threads = x.shape[1]
    shuffled = x[:, shuffle_source("down", 5, WARP, threads)[0]]
    turned = shuffled[:, rotate_source(3, WARP, threads)[0]]
    sent = turned[:, np.arange(threads) // WARP * WARP + 5]
    return {"shuffled": shuffled, "turned": turned, "sent": sent}


def _compute_ballots(x: Array) -> dict[str, Array]:
    votes = ballot(x)
    return {f"out{width}": votes.astype(f"i{width // 8}") for width in (64, 32, 16, 8)}


def _positions(_: np.random.Generator, shape: tuple[int, ...], element: str) -> Array:
    return np.zeros(shape, np.int64)


def _compute_ids(x: Array) -> dict[str, Array]:
    linear = np.broadcast_to(np.arange(x.shape[1]), x.shape)
    warps = np.full_like(linear, -(-x.shape[1] // WARP))
    return {"out": np.stack([linear % WARP, linear // WARP, np.full_like(linear, WARP), warps])}


def _cases() -> Iterator[Case]:
    def case(
        entry: str,
        element: str,
        size: Size,
        compute: Callable[[Array], dict[str, Array]],
        **options: Any,
    ) -> Case:
        shown = "" if options.get("is_known") else f"-{'x'.join(map(str, size))}"
        name = f"{PROGRAM}-{entry}{shown}"
        make = partial(_values, name, element, size, compute, **options)
        return Case(name, PROGRAM, make, 0, entry=entry)

    reductions = {
        "subgroup_reduce": _compute_subgroup_reduce,
        "clusters": _compute_clusters,
        "all_reduce": _compute_all_reduce,
    }
    for what, compute in reductions.items():
        for element in ELEMENTS:
            sizes = WHOLE + PARTIAL + (LARGE if element in KNOWN_ELEMENTS else [])
            for size in sizes:
                yield case(f"{what}_{element}", element, size, partial(compute, element))
        for element in KNOWN_ELEMENTS:
            for known in KNOWN:
                entry = entry_name(what, element, known)
                yield case(entry, element, known, partial(compute, element), is_known=True)
    for size in WHOLE + PARTIAL + LARGE:
        yield case("regions_i32", "i32", size, lambda x: {"out": _by_regions(x)})
        yield case("ids", "i64", size, _compute_ids, make=_positions)
        yield case("ballot", "i1", size, _compute_ballots)
    for known in KNOWN:
        entry = entry_name("regions", "i32", known)
        yield case(entry, "i32", known, lambda x: {"out": _by_regions(x)}, is_known=True)
    for element in FLOATS:
        for size in ((64, 1, 1), (7, 5, 3)):
            yield case(f"numbers_{element}", element, size, _compute_numbers, make=_with_nans)
    for size in WHOLE:
        for element in ELEMENTS:
            yield case(f"shuffle_{element}", element, size, _compute_shuffles)
            yield case(f"rotate_{element}", element, size, _compute_rotations)
            yield case(
                f"broadcast_{element}",
                element,
                size,
                partial(_compute_broadcasts, 19),
                others={"lane": 19},
            )
        for element, count in VECTORS:
            extra = (count,)
            yield case(f"vector_{count}x{element}", element, size, _compute_vectors, extra=extra)
            yield case(
                f"vector_reduce_{count}x{element}",
                element,
                size,
                partial(_compute_vector_reduce, element),
                extra=extra,
            )
        yield case("broadcast_in_branch", "i32", size, _compute_broadcast_in_branch)


CASES: dict[str, Case] = {case.name: case for case in _cases()}
