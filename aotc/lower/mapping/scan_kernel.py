"""Builds a scan by the threads of a row: see `aotc.lower.mapping.scans`.

A warp processes 32 times `ELEMENTS` adjacent elements at a time. Lane i has every 32nd of them,
starting at i, so that accesses are coalesced. Lanes exchange partial results by shuffles, warps
through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from aotc import ops
from aotc.chips import WARP
from aotc.lower.mapping.build import EQ, ULT, create_loop, shared_type
from aotc.lower.mapping.nest import induction_values, product
from aotc.lower.mapping.scans import Scan
from aotc.mlir import ir
from aotc.rewrites.cloning import copy, copy_interleaved

# Elements that a thread loads at a time.
ELEMENTS = 4


def shared_for(scan: Scan, threads: int) -> list[Any]:
    """The types of the shared memory that the scan needs in a block.

    It has the results of the warps in this step and in the previous one, which other threads may
    still read.
    """
    warps = threads // WARP
    (accumulator,) = scan.columns.accumulators
    return [] if warps == 1 else [shared_type([2, warps], accumulator.type)]


class ScanKernel:
    """Builds the scan at the insertion point.

    `values` maps values of the loop's body to those of the kernel. `shared` has the types of
    `shared_for`.
    """

    def __init__(
        self, scan: Scan, threads: int, thread: Any, shared: Sequence[Any], values: dict[Any, Any]
    ) -> None:
        self._scan, self._threads, self._shared, self._values = scan, threads, shared, values
        (self._accumulator,) = scan.columns.accumulators
        warp_size = ops.constant_index(WARP)
        self._lane = ops.index_op("arith.remui", thread, warp_size)
        self._warp = ops.index_op("arith.divui", thread, warp_size)
        self._warps = threads // WARP
        self._first_lane = ops.compare(EQ, self._lane, ops.constant_index(0))

    def build(self) -> Any:
        """The reduction of the whole row, which is the same value in each thread."""
        self._dimensions = self._scan.columns.dimensions(self._values)
        self._count = count = product(self._dimensions)
        self._last = ops.index_op("arith.subi", count, ops.constant_index(1))
        init = self._values.get(self._accumulator.init, self._accumulator.init)
        step = ops.constant_index(self._threads * ELEMENTS)
        zero, one = ops.constant_index(0), ops.constant_index(1)

        def advance(base: Any, carried: list[Any]) -> list[Any]:
            total, parity = carried
            return [self._step(base, total, parity), ops.index_op("arith.subi", one, parity)]

        total, _ = create_loop(zero, count, step, [init, zero], advance)
        return total

    def _step(self, base: Any, total: Any, parity: Any) -> Any:
        """Scans the elements from `base` on, where `total` is the reduction of all previous
        elements. Returns the new total."""
        offset = ops.index_op("arith.muli", self._warp, ops.constant_index(WARP * ELEMENTS))
        first = ops.index_op("arith.addi", ops.index_op("arith.addi", base, offset), self._lane)
        positions = [
            ops.index_op("arith.addi", first, ops.constant_index(i * WARP)) for i in range(ELEMENTS)
        ]
        flags = [ops.compare(ULT, position, self._count) for position in positions]
        copies = list(map(self._copy, positions, flags))
        copy_interleaved(self._scan.columns.body, copies)
        value = self._accumulator.value
        elements = [
            ops.select(flag, values.get(value, value), self._accumulator.neutral())
            for values, flag in zip(copies, flags, strict=True)
        ]
        scanned = self._scan_warp(elements)
        warp_total = self._from_lane(scanned[-1], WARP - 1)
        before, total = self._before_warp(warp_total, total, parity)
        for values, flag, own in zip(copies, flags, scanned, strict=True):
            values[self._scan.combined] = self._accumulator.combine(before, own)
            ops.create_if(flag, partial(self._finish, values))
        return total

    def _copy(self, position: Any, flag: Any) -> dict[Any, Any]:
        """The values of the loop's body for one element, or for the row's last element if the
        position is beyond it."""
        inside = ops.select(flag, position, self._last)
        variables = induction_values(self._dimensions, inside)
        return self._values | dict(zip(self._scan.columns.variables, variables, strict=True))

    def _finish(self, values: dict[Any, Any]) -> None:
        for operation in self._scan.after:
            copy(operation, values)

    # --- In a warp ---

    def _scan_warp(self, elements: Sequence[Any]) -> list[Any]:
        """The inclusive scan of a warp's elements: across lanes in each group of 32, then across
        groups."""
        scanned = [self._scan_lanes(element) for element in elements]
        for i in range(1, len(scanned)):
            before = self._from_lane(scanned[i - 1], WARP - 1)
            scanned[i] = self._accumulator.combine(before, scanned[i])
        return scanned

    def _scan_lanes(self, value: Any) -> Any:
        distance = 1
        while distance < WARP:
            other = _shuffle(value, "up", distance)
            has_other = ops.compare(ULT, self._lane, ops.constant_index(distance))
            value = ops.select(has_other, value, self._accumulator.combine(other, value))
            distance *= 2
        return value

    def _from_lane(self, value: Any, lane: int) -> Any:
        return _shuffle(value, "idx", lane)

    # --- Among warps ---

    def _before_warp(self, warp_total: Any, total: Any, parity: Any) -> tuple[Any, Any]:
        """The reduction of everything before the warp's elements, and the total including all
        warps."""
        if self._warps == 1:
            return total, self._accumulator.combine(total, warp_total)
        (shared,) = self._shared
        ops.create_if(
            self._first_lane,
            lambda: ops.create("memref.store", [warp_total, shared, parity, self._warp]),
        )
        ops.create("gpu.barrier")
        before = total
        for number in range(self._warps):
            at = ops.constant_index(number)
            before = ops.select(ops.compare(EQ, at, self._warp), total, before)
            one = ops.load(shared, [parity, at])
            total = self._accumulator.combine(total, one)
        return before, total


def _shuffle(value: Any, mode: str, operand: int) -> Any:
    i32 = ops.integer(32)
    attributes = {"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")}
    operands = [value, ops.constant(i32, operand), ops.constant(i32, WARP)]
    return ops.create("gpu.shuffle", operands, [value.type, ops.integer(1)], attributes).results[0]
