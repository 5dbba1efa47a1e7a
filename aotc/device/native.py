"""The chips of the GPUs in this machine, asked of the driver: `--chip native`."""

from __future__ import annotations

from aotc.chips import FIRST_WITH_VARIANT
from aotc.errors import InputError
from aotc.request import Chip, unique


class NoGpuError(InputError):
    """There is no GPU here; the message is the reason."""


def native_chips() -> tuple[Chip, ...]:
    """One chip for each kind of GPU that the driver lists.

    Raises InputError where there is no driver or no GPU.
    """
    try:
        return found_chips()
    except NoGpuError as error:
        raise InputError(
            "--chip native asks the driver for this machine's GPU, and there is none: "
            f"{error.message}. Name the chip (--chip sm_90a), or leave --chip out for code that "
            "runs on every GPU from Ampere on."
        ) from None


def found_chips() -> tuple[Chip, ...]:
    """Like `native_chips`; raises NoGpuError."""
    # Importing the driver's bindings costs a tenth of a second, and few builds need them.
    from cuda.bindings import driver

    try:
        (status,) = driver.cuInit(0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise NoGpuError(f"cuInit says {status.name}")
        status, count = driver.cuDeviceGetCount()
        chips = [_chip_of(driver, ordinal) for ordinal in range(count)]
    except RuntimeError:  # the bindings' word for a driver that is not there
        raise NoGpuError("NVIDIA's driver is not installed") from None
    if not chips:
        raise NoGpuError("the driver lists none")
    return unique(chips)


def _chip_of(driver: object, ordinal: int) -> Chip:
    attributes = driver.CUdevice_attribute  # type: ignore[attr-defined]
    numbers = []
    for attribute in (
        attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ):
        status, value = driver.cuDeviceGetAttribute(attribute, ordinal)  # type: ignore[attr-defined]
        if status != 0:
            raise NoGpuError(f"GPU {ordinal} does not say its compute capability")
        numbers.append(int(value))
    capability = numbers[0] * 10 + numbers[1]
    return Chip.parse(f"sm_{capability}{'a' if capability >= FIRST_WITH_VARIANT else ''}")
