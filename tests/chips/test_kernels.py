"""Every kernel that the choosers can choose against every GPU that it may be launched on.

The plans of all of them are looked at, and the cubins of some: `make chips` builds all of them for
every chip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from chips.cubins import refused, refused_of
from chips.kernels import (
    Kernel,
    capabilities_of,
    covering,
    gathered,
    kernels,
    products,
    shared_bytes_of,
)

from aotc import ops
from aotc.chips import LIMITS, block_shared_of
from aotc.lower.attention.problem import Attention
from aotc.lower.checks.extents import LaunchSizes
from aotc.lower.contractions.choice import Choice, choose
from aotc.lower.contractions.problem import Problem
from aotc.lower.kernels.limits import excesses
from aotc.lower.kernels.outlining import ANY_GPU
from aotc.mlir import ir
from aotc.request import BuildRequest, Chip, parse_ptx

SOURCE = Path("kernels.mlir")
# Images for the default chips, and PTX; for one chip alone; for one, and PTX for later ones.
REQUESTS = [
    BuildRequest(SOURCE),
    BuildRequest(SOURCE, chips=(Chip("sm_80"),), ptx=None),
    BuildRequest(SOURCE, chips=(Chip("sm_86"),), ptx=None),
    BuildRequest(SOURCE, chips=(Chip("sm_90"),), ptx=parse_ptx("compute_90")),
    BuildRequest(SOURCE, chips=(Chip("sm_120a"),), ptx=None),
]


def reached(choices: list[Choice], capability: int) -> list[Choice]:
    """Those that the dispatch may launch on such a GPU, down to the first that it launches where no
    other fits."""
    found = []
    for choice in choices:
        own = choice.target == ANY_GPU or Chip(choice.target).capability == capability
        if own and (not choice.capabilities or capability in choice.capabilities):
            found.append(choice)
    return found


def plain(problem: Problem) -> bool:
    """One of each layout and kind of sizes is enough where types do not matter."""
    return problem.a.element in ("f16", "f32", "f64")


CHOSEN = [*filter(plain, products()), *gathered()]


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_no_gpu_is_launched_what_it_has_no_room_for(number: int) -> None:
    """Whatever GPU the images run on; and each has a kernel for matrices at any address."""
    request = REQUESTS[number]
    chips = [*request.cubin_chips, *([request.ptx] if request.ptx else [])]
    limited = 0
    for problem in CHOSEN[number :: len(REQUESTS)] if number else CHOSEN:
        choices = choose(problem, chips, capabilities=request.capabilities)
        if not choices:
            continue
        limited += any(choice.capabilities for choice in choices)
        for capability in request.capabilities:
            launched = reached(choices, capability)
            for one in launched:
                needed = one.family.shared_bytes(one.problem, one.variant)
                assert needed <= LIMITS[capability].block_shared, (capability, str(one))
            assert launched[-1] is choices[-1], capability
        assert not choices[-1].capabilities
    assert limited or number in (2, 4)


def test_every_variant_fits_the_gpus_that_it_is_for() -> None:
    """And none is for no GPU at all."""
    counted: Counter[str] = Counter()
    for kernel in kernels():
        able = capabilities_of(kernel)
        assert able, kernel.name
        assert shared_bytes_of(kernel) <= block_shared_of(able), kernel.name
        assert 0 < getattr(kernel.variant, "threads", 32) <= 1024, kernel.name
        counted[kernel.family_name] += 1
    assert len(counted) == 15, counted
    assert min(counted.values()) >= 40, counted


COVERING = {kernel.name: kernel for kernel in covering()}


def test_launches_ask_for_what_plans_say() -> None:
    with ir.Context(), ir.Location.unknown():
        for kernel in COVERING.values():
            module = ir.Module.parse(kernel.function("kernel"))
            launches = ops.find(module.operation, "gpu.launch")
            for capability in capabilities_of(kernel):
                for launch in launches:
                    assert list(excesses(launch, capability)) == [], kernel.name
            asked = max(LaunchSizes.of(launch).dynamic_shared_bytes or 0 for launch in launches)
            assert asked == shared_bytes_of(kernel) or isinstance(kernel.problem, Attention)


CHIPS = ("sm_86", "sm_80", "sm_89", "sm_120", "sm_90a", "sm_100a")


@pytest.mark.parametrize("chip", CHIPS)
def test_cubins_fit_their_chips(chip: str, tmp_path: Path) -> None:
    """Registers times threads, static and dynamic shared memory: a block fits a multiprocessor."""
    count, problems = refused(list(_for(chip)), Chip(chip), tmp_path)
    assert problems == []
    assert count > 2


def _for(chip: str) -> Iterator[Kernel]:
    """Those for this chip alone, and of those for all its share."""
    others = [kernel for kernel in COVERING.values() if kernel.target == ANY_GPU]
    yield from (kernel for kernel in COVERING.values() if kernel.target == chip)
    yield from others[CHIPS.index(chip) :: len(CHIPS)]


def test_what_does_not_fit_is_found(tmp_path: Path) -> None:
    """Of a kernel for 163 KiB, on a chip that has 99: the cubin is made, and no block fits."""
    kernel = max(COVERING.values(), key=lambda one: shared_bytes_of(one) * (one.target == ANY_GPU))
    assert 86 not in capabilities_of(kernel)
    count, problems = refused_of([kernel], Chip("sm_86"), tmp_path)
    assert (count, len(problems)) == (1, 1)
    assert f"and {shared_bytes_of(kernel)} bytes" in problems[0]
