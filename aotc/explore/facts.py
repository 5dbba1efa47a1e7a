"""The kernels, matmuls and buffers on a page, as values, from the outlined module, the build's
remarks and its manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.gpu_modules import gpu_modules, launched_kernel, runs_on
from aotc.chips import LIMITS, MAX_BLOCK_THREADS
from aotc.errors import InputError
from aotc.inspect.occupancy import limits_of, occupancy
from aotc.manifest import Manifest, Resources
from aotc.mlir import ir
from aotc.remarks import ChosenKernels, PlacedBuffer
from aotc.request import Chip
from aotc.symbols import is_kernel

# The number of rivals of a kernel that a page lists for each chip.
_MOST_RIVALS = 8
_VIEWS = ("memref.view", "memref.reinterpret_cast", "memref.cast", "memref.subview")


class Launch(Struct, frozen=True):
    """A launch of a kernel: its line in the outlined module, the function that contains it, and the
    grid, block and cluster; None is a size that is computed. `shared_bytes` is the dynamic shared
    memory."""

    line: int | None
    function: str
    grid: tuple[int | None, ...]
    block: tuple[int | None, ...]
    cluster: tuple[int | None, ...]
    shared_bytes: int | None


class Copy(Struct, frozen=True):
    """A copy between host and device in host code, with its line in the outlined module."""

    line: int | None
    function: str
    type: str
    source: str
    target: str
    around: tuple[str, ...]


class Outline(Struct, frozen=True):
    """The kernels of an outlined module by (gpu.module, name): the line of each, the chips it is
    limited to, if any, and its launches; and the copies of buffers."""

    lines: Mapping[tuple[str, str], int | None]
    targets: Mapping[tuple[str, str], str]
    launches: Mapping[tuple[str, str], Sequence[Launch]]
    copies: Sequence[Copy]


class OnChip(Struct, frozen=True):
    """A kernel's image for a chip: its resources as ptxas reports them, and its theoretical
    occupancy."""

    needs: Resources
    blocks: int | None
    warps: int | None
    most_warps: int | None
    limited_by: tuple[str, ...]


class KernelFacts(Struct, frozen=True):
    """One kernel. `choice` is the index of the matmul that it was chosen for, if any."""

    unit: str
    name: str
    target: str
    line: int | None
    launches: tuple[Launch, ...]
    built_for: tuple[str, ...]
    on_chips: tuple[OnChip, ...]
    why_no_cpu_form: str | None
    choice: int | None


class Rival(Struct, frozen=True):
    """A variant of the kernel library that could compute a matmul, and its estimated clocks."""

    name: str
    words: str
    clocks: int
    is_taken: bool


class Candidates(Struct, frozen=True):
    """The variants of a choice's family on a chip, in increasing order of clocks."""

    chip: str
    count: int
    rivals: tuple[Rival, ...]


class ChoiceFacts(Struct, frozen=True):
    """A kernel of a matmul: its name, when and why it is selected, and its rivals."""

    kernel: str
    words: str
    reason: str
    candidates: tuple[Candidates, ...]


class MatmulFacts(Struct, frozen=True):
    """A matmul of the input: its place, its sizes (None: known at run time), and its kernels."""

    place: str
    line: int | None
    text: str
    sizes: tuple[int | None, ...]
    choices: tuple[ChoiceFacts, ...]


def outline_of(module: Any, file: str) -> Outline:
    """Reads an outlined module, whose operations' locations name their lines in `file`."""
    lines, targets = {}, {}
    launches: dict[tuple[str, str], list[Launch]] = {}
    copies = []
    for gpu_module in gpu_modules(module):
        unit = ops.symbol_of(gpu_module)
        for operation in gpu_module.regions[0].blocks[0].operations:
            function = operation.operation
            if function.name in ("gpu.func", "llvm.func") and is_kernel(function):
                key = (unit, ops.symbol_of(function))
                lines[key] = _line(function, file)
                targets[key] = runs_on(gpu_module) or ""
    for function in ops.body_of_module(module).operations:
        if not function.operation.name.endswith(".func"):
            continue
        name = ops.symbol_of(function.operation)
        for operation in ops.walk(function.operation):
            if operation.name == "gpu.launch_func":
                key = launched_kernel(operation)
                launches.setdefault(key, []).append(_launch(operation, name, file))
            elif operation.name == "gpu.memcpy":
                copies.append(_copy(operation, name, file))
    return Outline(lines, targets, launches, copies)


def _line(operation: Any, file: str) -> int | None:
    found = re.search(rf'"{re.escape(file)}":(\d+)', str(operation.location))
    return int(found[1]) if found else None


def _launch(operation: Any, function: str, file: str) -> Launch:
    groups = ops.operand_groups(operation)
    # asyncDependencies, grid x y z, block x y z, cluster x y z, dynamic shared memory, arguments
    sizes = [_known(group[0]) if group else None for group in groups[1:11]]
    cluster = tuple(sizes[6:9]) if groups[7] else ()
    shared = sizes[9] if groups[10] else 0
    return Launch(
        _line(operation, file), function, tuple(sizes[:3]), tuple(sizes[3:6]), cluster, shared
    )


def _known(value: Any) -> int | None:
    owner = ops.defining(value)
    if owner is None or owner.name not in ("arith.constant", "llvm.mlir.constant"):
        return None
    attribute = owner.attributes["value"]
    return int(ir.IntegerAttr(attribute).value) if isinstance(attribute, ir.IntegerAttr) else None


def _copy(operation: Any, function: str, file: str) -> Copy:
    asynchronous = len(operation.operands) - 2
    target, source = operation.operands[asynchronous], operation.operands[asynchronous + 1]
    around = tuple(
        one.name for one in ops.ancestors(operation) if one.name.startswith(("scf.", "affine."))
    )
    return Copy(
        _line(operation, file), function, str(source.type), _side(source), _side(target), around
    )


def _side(value: Any) -> str:
    """The memory that a buffer is in, according to the operation that makes it."""
    owner = ops.defining(value)
    while owner is not None and owner.name in _VIEWS:
        owner = ops.defining(owner.operands[0])
    if owner is None:
        return "argument"
    if owner.name == "gpu.alloc":
        return "managed" if "hostShared" in owner.attributes else "device"
    if owner.name in ("memref.alloc", "memref.alloca", "memref.get_global"):
        return "host"
    return str(owner.name)


def kernels_of(
    manifest: Manifest, outline: Outline, matmuls: Sequence[MatmulFacts]
) -> tuple[KernelFacts, ...]:
    """The kernels of a build, in the manifest's order."""
    chosen = {
        choice.kernel: number
        for number, matmul in enumerate(matmuls)
        for choice in matmul.choices
        if choice.kernel
    }
    return tuple(
        KernelFacts(
            kernel.module,
            kernel.name,
            outline.targets.get((kernel.module, kernel.name), ""),
            outline.lines.get((kernel.module, kernel.name)),
            (launches := tuple(outline.launches.get((kernel.module, kernel.name), ()))),
            kernel.built_for,
            tuple(_on_chip(one, launches) for one in kernel.resources),
            kernel.why_no_cpu_form,
            _choice_of(kernel.name, chosen),
        )
        for kernel in manifest.kernels
    )


def _choice_of(kernel: str, chosen: Mapping[str, int]) -> int | None:
    names = [name for name in chosen if kernel.startswith(name)]
    return chosen[max(names, key=len)] if names else None


def _on_chip(resources: Resources, launches: Sequence[Launch]) -> OnChip:
    """The image with the occupancy of the kernel's first launch of static size."""
    sizes = [
        (x * y * z, launch.shared_bytes)
        for launch in launches
        for x, y, z in [launch.block]
        if x is not None and y is not None and z is not None and launch.shared_bytes is not None
    ]
    found = None
    if sizes and 0 < sizes[0][0] <= MAX_BLOCK_THREADS:
        try:
            limits = limits_of(Chip(resources.chip))
        except InputError:  # a chip of a newer ptxas
            limits = None
        if limits is not None:
            threads, dynamic = sizes[0]
            found = occupancy(
                limits,
                threads=threads,
                registers=resources.registers,
                shared_bytes=resources.shared_bytes + dynamic,
                barriers=resources.barriers,
            )
    return OnChip(
        needs=resources,
        blocks=found.blocks if found else None,
        warps=found.warps if found else None,
        most_warps=found.most_warps if found else None,
        limited_by=found.limits if found else (),
    )


def matmuls_of(chosen: Iterable[ChosenKernels]) -> tuple[MatmulFacts, ...]:
    """The matmuls that use kernels of the library, and the rivals of these kernels."""
    found = []
    for one in chosen:
        choices = [
            ChoiceFacts(
                choice.family.kernel_name(choice.problem, choice.variant),
                str(choice),
                reason.strip(),
                tuple(_candidates(choice, one.chips)),
            )
            for choice, reason in zip(one.choices, one.reasons, strict=True)
        ]
        place = one.place
        found.append(
            MatmulFacts(
                str(place) if place else "",
                place.line if place else None,
                one.text,
                (one.problem.m, one.problem.n, one.problem.k),
                tuple(choices),
            )
        )
    return tuple(found)


def _candidates(choice: Any, chips: Iterable[Chip]) -> Iterable[Candidates]:
    """The cost model's estimates for the choice's rivals, on the chips of the choice."""
    family, problem = choice.family, choice.problem
    # A variant that consists of several kernels cannot be compared with single kernels.
    if not family.has_cost_model or choice.variant not in (able := family.legal_variants(problem)):
        return
    for chip in dict.fromkeys(chips):
        is_own = choice.target in ("gpu", chip.name) or (
            choice.target.startswith("sm_") and Chip(choice.target).capability == chip.capability
        )
        if not is_own or chip.capability not in LIMITS:
            continue
        room = chip.limits.block_shared
        rivals = sorted(
            (
                Rival(
                    family.kernel_name(problem, variant),
                    family.describe(variant),
                    round(family.expected_clocks(problem, variant, choice.sizes, chip)),
                    variant == choice.variant,
                )
                for variant in able
                if family.shared_bytes(problem, variant) <= room
            ),
            key=lambda rival: (rival.clocks, not rival.is_taken),
        )
        shown = rivals[:_MOST_RIVALS]
        shown += [rival for rival in rivals[_MOST_RIVALS:] if rival.is_taken]
        yield Candidates(chip.name, len(rivals), tuple(shown))


class BufferFacts(Struct, frozen=True):
    """A buffer: an argument or result of an entry, or one that host code allocates."""

    function: str
    name: str
    type: str
    memory: str
    reason: str
    line: int | None
    place: str


def buffers_of(manifest: Manifest, placed: Iterable[PlacedBuffer]) -> tuple[BufferFacts, ...]:
    """Every buffer of a build; arguments and results of entries come first."""
    found = []
    for entry in manifest.entries:
        for value in (*entry.arguments, *entry.results):
            if value.is_scalar:
                continue
            found.append(
                BufferFacts(
                    entry.name,
                    value.name,
                    value.type,
                    _memory_words(value),
                    _copies_words(value),
                    None,
                    "",
                )
            )
    for one in placed:
        place = one.place
        found.append(
            BufferFacts(
                one.function,
                "",
                one.type,
                one.memory,
                one.reason,
                place.line if place else None,
                str(place) if place else "",
            )
        )
    return tuple(found)


def _memory_words(value: Any) -> str:
    if value.is_owned:
        return f"{value.memory.value} memory, which the caller frees"
    return {
        "device": "the caller's; kernels use it on the device",
        "host": "the caller's; host code uses it",
        "managed": "the caller's; host code and kernels use it",
    }[value.memory.value]


def _copies_words(value: Any) -> str:
    """When a call copies the buffer, if the caller's buffer is on the other side."""
    if value.is_owned:
        return "the entry returns it"
    before = "is copied before the call" if value.is_read else ""
    after = "is copied back after it" if value.is_written else ""
    if not before and not after:
        return "nothing is copied: the entry does not use it"
    uses = " and ".join(
        filter(None, ("reads" if value.is_read else "", "writes" if value.is_written else ""))
    )
    copied = " and ".join(filter(None, (before, after)))
    return f"the entry {uses} it; where the caller has it on the other side, it {copied}"
