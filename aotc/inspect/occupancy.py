"""Theoretical occupancy: how many blocks and warps of a kernel fit on a multiprocessor.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
Granularities, and the order of the steps: cuda_occupancy.h, the occupancy calculator of CUDA's own
headers, with which a test compares every number.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.errors import InputError
from aotc.request import MAX_BLOCK_THREADS, Chip

WARP = 32
REGISTERS = 1 << 16  # of a multiprocessor, and the most of a block
_PARTITIONS = 4
_REGISTER_UNIT = 256  # registers are given to warps, so many at a time
_KIB = 1024


class Multiprocessor(Struct, frozen=True):
    """What a multiprocessor has; shared memory in bytes.

    `reserved_shared` is what the driver keeps in each block, `barriers` how many there are for each
    block that can be resident; 0: enough (up to 8.x the calculator does not count them).
    """

    warps: int
    blocks: int
    shared: int
    block_shared: int
    shared_unit: int = 128
    reserved_shared: int = _KIB
    barriers: int = 0


def _with(warps: int, blocks: int, shared_kib: int, *, barriers: int = 0) -> Multiprocessor:
    # A block can have all but the KiB that the driver keeps.
    shared = shared_kib * _KIB
    return Multiprocessor(warps, blocks, shared, shared - _KIB, barriers=barriers)


# By 10 times the major plus the minor compute capability.
MULTIPROCESSORS = {
    75: Multiprocessor(32, 16, 64 * _KIB, 64 * _KIB, shared_unit=256, reserved_shared=0),
    80: _with(64, 32, 164),
    86: _with(48, 16, 100),
    87: _with(48, 16, 164),
    89: _with(48, 24, 100),
    90: _with(64, 32, 228, barriers=2),
    100: _with(64, 32, 228, barriers=2),
    103: _with(64, 32, 228, barriers=1),
    120: _with(48, 24, 100, barriers=1),
    121: _with(48, 24, 100, barriers=1),
}


class Occupancy(Struct, frozen=True):
    """`blocks` of `threads` threads fit, which are `warps` of `most_warps`; `limits` says what
    there is no more of: warps, blocks, registers, shared memory, barriers.
    """

    threads: int
    blocks: int
    warps: int
    most_warps: int
    limits: tuple[str, ...]


def multiprocessor_of(chip: Chip) -> Multiprocessor:
    """Raises InputError for a chip that is not in the table."""
    if chip.capability not in MULTIPROCESSORS:
        known = ", ".join(f"sm_{number}" for number in MULTIPROCESSORS)
        raise InputError(f"The limits of {chip.name} are not known here. Known: {known}.")
    return MULTIPROCESSORS[chip.capability]


def occupancy(
    limits: Multiprocessor,
    *,
    threads: int,
    registers: int,
    shared_bytes: int,
    barriers: int = 0,
) -> Occupancy:
    """Of blocks of `threads` threads with `registers` each and `shared_bytes` a block, static and
    dynamic. Blocks that cannot run at all have 0."""
    warps = -(-threads // WARP)
    warp_registers = _up(registers * WARP, _REGISTER_UNIT)
    shared = _up(shared_bytes + limits.reserved_shared, limits.shared_unit)
    fits = {"warps": limits.warps // warps, "blocks": limits.blocks}
    if warp_registers:
        # A launch is checked as if every partition had the same number of its warps.
        is_launchable = warp_registers * _up(warps, _PARTITIONS) <= REGISTERS
        resident = REGISTERS // _PARTITIONS // warp_registers * _PARTITIONS
        fits["registers"] = resident // warps if is_launchable else 0
    if shared:
        is_launchable = shared <= limits.block_shared + limits.reserved_shared
        fits["shared memory"] = limits.shared // shared if is_launchable else 0
    if barriers and limits.barriers:
        fits["barriers"] = limits.blocks * limits.barriers // barriers
    blocks = min(fits.values()) if threads <= MAX_BLOCK_THREADS else 0
    return Occupancy(
        threads=threads,
        blocks=blocks,
        warps=blocks * warps,
        most_warps=limits.warps,
        limits=tuple(name for name, number in fits.items() if number == blocks),
    )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
