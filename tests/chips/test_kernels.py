"""Every kernel that the choosers can choose against every GPU that it may be launched on.

The plans of all of them are looked at, and the cubins of some: `make chips` builds all of them for
every chip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from chips.cubins import refusal, refused
from chips.kernels import (
    Kernel,
    attention_kernels,
    capabilities_of,
    covering,
    implicit_gemms,
    kernels,
    products,
    shared_bytes_of,
)
from helpers.command import build_here
from msgspec.structs import asdict

from aotc import ops
from aotc.analysis.extents import LaunchSizes
from aotc.analysis.launch_limits import excesses
from aotc.chips import LIMITS, block_shared_of
from aotc.inspect import inspect
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.choice import candidates, choose
from aotc.kernels.matmul.chosen import Choice
from aotc.kernels.matmul.explanation import reasons
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.tuned import Entry, problem_words
from aotc.mlir import ir
from aotc.request import DEFAULT_CHIPS, BuildRequest, Chip, parse_ptx

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


CHOSEN = [*filter(plain, products()), *implicit_gemms()]


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
    assert counted.pop("direct multiply-adds") == 2  # one for a problem
    assert len(counted) == 17, counted
    assert min(counted.values()) >= 30, counted


# f32 as tf32, of an A that lies transposed: tiles of 128x128x32, in 3 stages, are 102 KiB.
TRANSPOSED = next(
    problem
    for problem in products()
    if problem.allow_tf32
    and problem.a.transposed
    and not problem.b.transposed
    and problem.m == 4096
)
LARGE = MMA_SYNC.variant_type(128, 128, 32, 2, 2, 3)


def test_what_is_timed_has_room() -> None:
    sizes = (4096, 4096, 4096)
    for chip, has_room in (("sm_80", True), ("sm_86", False)):
        found = candidates(TRANSPOSED, Chip(chip), sizes)
        assert (LARGE in [one.variant for one in found]) == has_room
        for one in found:
            needed = one.family.shared_bytes(TRANSPOSED, one.variant)
            assert needed <= LIMITS[Chip(chip).capability].block_shared


def test_what_was_measured_gives_way_where_it_has_no_room() -> None:
    """A file of --tuned may say anything: for sm_86 the kernel is another one then."""
    words = problem_words(TRANSPOSED)
    for chip, expected in (("sm_80", [LARGE]), ("sm_86", [])):
        entry = Entry(
            *(chip, words, (4096, 4096, 4096), MMA_SYNC.name, asdict(LARGE)), 1.0, 1, "a GPU"
        )
        choices = choose(TRANSPOSED, [Chip(chip)], [entry])
        assert [one.variant for one in choices if one.target == chip and one.entry] == expected
        for one in choices:
            needed = one.family.shared_bytes(one.problem, one.variant)
            assert needed <= LIMITS[Chip(chip).capability].block_shared


def test_the_reasons_name_the_gpus() -> None:
    """A kernel for some GPUs alone says which, and the part of the peak is expected of those."""
    chips = [Chip(name) for name in ("sm_80", "sm_86")]
    limited = Choice(MMA_SYNC, LARGE, TRANSPOSED, ANY_GPU, capabilities=(80,))
    other = Choice(MMA_SYNC, MMA_SYNC.variant_type(64, 64, 32, 2, 2, 4), TRANSPOSED, ANY_GPU)
    first, second = reasons([limited, other], chips)
    assert "1. mma.sync with tiles of 128x128 on sm_80, " in first
    assert "2. mma.sync with tiles of 64x64 on GPUs, " in second
    assert ("sm_80's peak" in first, "sm_86" in first) == (True, False)
    assert ("sm_80" in second, "sm_86's peak" in second) == (False, True)


@pytest.mark.exhaustive
def test_launches_ask_for_what_plans_say() -> None:
    with ir.Context(), ir.Location.unknown():
        for kernel in covering():
            module = ir.Module.parse(kernel.function("kernel"))
            launches = ops.find(module.operation, "gpu.launch")
            for capability in capabilities_of(kernel):
                for launch in launches:
                    assert list(excesses(launch, capability)) == [], kernel.name
            asked = max(LaunchSizes.of(launch).dynamic_shared_bytes or 0 for launch in launches)
            assert asked == shared_bytes_of(kernel)


@pytest.mark.exhaustive
def test_attention_asks_for_no_more_than_there_is() -> None:
    """Of every depth, with a mask and without. (Those of bf16 are those of f16.)"""
    with ir.Context(), ir.Location.unknown():
        for kernel in attention_kernels():
            if kernel.problem.causal or kernel.element == "bf16":
                continue
            module = ir.Module.parse(kernel.function("kernel"))
            for launch in ops.find(module.operation, "gpu.launch"):
                for capability in capabilities_of(kernel):
                    assert list(excesses(launch, capability)) == [], kernel.name


CHIPS = ("sm_86", "sm_80", "sm_89", "sm_120", "sm_90a", "sm_100a")


@pytest.mark.exhaustive
@pytest.mark.parametrize("chip", CHIPS)
def test_cubins_fit_their_chips(chip: str, tmp_path: Path) -> None:
    """Registers times threads, static and dynamic shared memory: a block fits a multiprocessor."""
    counts, problems = refused(list(_for(chip)), [Chip(chip)], tmp_path)
    assert problems == []
    assert counts[chip] > 2


def _for(chip: str) -> Iterator[Kernel]:
    """Those for this chip alone, and of those for all its share."""
    others = [kernel for kernel in covering() if kernel.target == ANY_GPU]
    yield from (kernel for kernel in covering() if kernel.target == chip)
    share = others[CHIPS.index(chip) :: len(CHIPS)]
    yield from (kernel for kernel in share if Chip(chip).capability in capabilities_of(kernel))


def test_what_does_not_fit_is_found(tmp_path: Path) -> None:
    """Of a kernel for 163 KiB, on a chip that has 99: the cubin is made, and no block fits."""
    kernel = max(covering(), key=lambda one: shared_bytes_of(one) * (one.target == ANY_GPU))
    assert 86 not in capabilities_of(kernel)
    counts, problems = refused([kernel], [Chip("sm_80"), Chip("sm_86")], tmp_path)
    assert counts == {"sm_80": 1, "sm_86": 1}
    assert [problem.split(":")[0] for problem in problems] == ["sm_86"]
    assert f"and {shared_bytes_of(kernel)} bytes" in problems[0]


SOFTMAX = """func.func @softmax(%a: tensor<{shape}>) -> tensor<{shape}>
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<{shape}>
  %n = tensor.dim %a, %c1 : tensor<{shape}>
  %e = tensor.empty({sizes}) : tensor<{shape}>
  %r = linalg.softmax dimension(1) ins(%a : tensor<{shape}>) outs(%e : tensor<{shape}>)
      -> tensor<{shape}>
  return %r : tensor<{shape}>
}}"""
# Loops that are mapped: rows of any and of great length, sums of columns and of all, tiles.
MAPPED = {
    "rows": SOFTMAX.format(shape="?x?xf64", sizes="%m, %n"),
    "long_rows": SOFTMAX.format(shape="64x16384xf64", sizes=""),
    "transposed": """func.func @transposed(%a: memref<1024x512xf64>, %b: memref<512x1024xf64>)
    attributes {llvm.emit_c_interface} {
  linalg.transpose ins(%a : memref<1024x512xf64>) outs(%b : memref<512x1024xf64>)
      permutation = [1, 0]
  return
}""",
    **{
        name: f"""func.func @{name}(%a: memref<?x?xf64>, %b: memref<{result}>)
    attributes {{llvm.emit_c_interface}} {{
  linalg.reduce ins(%a : memref<?x?xf64>) outs(%b : memref<{result}>) dimensions = [{sums}]
      (%x: f64, %y: f64) {{
    %s = arith.addf %x, %y : f64
    linalg.yield %s : f64
  }}
  return
}}"""
        for name, result, sums in (("columns", "?xf64", "0"), ("total", "f64", "0, 1"))
    },
}


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_loops_fit_every_chip(name: str, tmp_path: Path) -> None:
    """Their kernels promise ptxas how many threads a block has, and have no dynamic memory."""
    source = tmp_path / "mapped.mlir"
    source.write_text(MAPPED[name])
    build_here(source, "--emit", "cubin", "--no-cpu-kernels", "-o", f"{tmp_path}/out/")
    images = [image for file in (tmp_path / "out").iterdir() for image in inspect(file).images]
    assert len(images) == len(DEFAULT_CHIPS)
    for image in images:
        assert image.kernels
        assert [refusal(kernel, Chip(image.chip), 0) for kernel in image.kernels] == [None] * len(
            image.kernels
        )
