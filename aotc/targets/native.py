"""The chips of the GPUs in this machine, queried from each target's driver: `--chip native`."""

from __future__ import annotations

from aotc.errors import InputError
from aotc.request import Chip, unique
from aotc.target import TARGETS


class NoGpuError(InputError):
    """There is no GPU in this machine. The message is the reason."""


def native_chips() -> tuple[Chip, ...]:
    """One chip for each kind of GPU in this machine. Raises InputError if there is none."""
    try:
        return found_chips()
    except NoGpuError as error:
        raise InputError(
            "--chip native asks the driver for this machine's GPU, and there is none: "
            f"{error.message}. Name the chip (--chip sm_90a), or leave --chip out for code that "
            "runs on every GPU from Ampere on."
        ) from None


def found_chips() -> tuple[Chip, ...]:
    """As `native_chips`, but raises NoGpuError."""
    chips: list[Chip] = []
    reasons = []
    for target in TARGETS:
        try:
            chips += target.native_chips()
        except NoGpuError as error:
            reasons.append(error.message)
    if not chips:
        raise NoGpuError("; ".join(reasons))
    return unique(chips)
