"""Theoretical occupancy: how many blocks and warps of a kernel fit on a multiprocessor.

The limits are those of `aotc.chips`. The order of the steps is that of cuda_occupancy.h, the
occupancy calculator of CUDA's own headers, with which a test compares every number.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.chips import (
    LIMITS,
    MAX_BLOCK_THREADS,
    PARTITIONS,
    REGISTER_UNIT,
    REGISTERS,
    WARP,
    Limits,
)
from aotc.errors import InputError
from aotc.request import Chip


class Occupancy(Struct, frozen=True):
    """`blocks` blocks of `threads` threads fit, which are `warps` of `most_warps` warps; `limits`
    names the limiting resources: warps, blocks, registers, shared memory, barriers.
    """

    threads: int
    blocks: int
    warps: int
    most_warps: int
    limits: tuple[str, ...]


def limits_of(chip: Chip) -> Limits:
    """The limits of the chip. Raises InputError if it is not in the table."""
    if chip.capability not in LIMITS:
        known = ", ".join(f"sm_{number}" for number in LIMITS)
        raise InputError(f"The limits of {chip.name} are not known here. Known: {known}.")
    return LIMITS[chip.capability]


def occupancy(
    limits: Limits,
    *,
    threads: int,
    registers: int,
    shared_bytes: int,
    barriers: int = 0,
) -> Occupancy:
    """The occupancy of blocks of `threads` threads with `registers` each and `shared_bytes` per
    block, static and dynamic; 0 for blocks that cannot be launched."""
    warps = -(-threads // WARP)
    warp_registers = _up(registers * WARP, REGISTER_UNIT)
    shared = _up(shared_bytes + limits.reserved_shared, limits.shared_unit)
    fits = {"warps": limits.warps // warps, "blocks": limits.blocks}
    if warp_registers:
        # The driver checks a launch as if all partitions had the same number of warps.
        is_launchable = warp_registers * _up(warps, PARTITIONS) <= REGISTERS
        resident = REGISTERS // PARTITIONS // warp_registers * PARTITIONS
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
