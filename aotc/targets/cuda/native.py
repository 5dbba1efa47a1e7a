"""The chips of this machine's GPUs, queried from NVIDIA's driver."""

from __future__ import annotations

from aotc.chips import FIRST_WITH_VARIANT
from aotc.request import Chip, unique
from aotc.targets.native import NoGpuError


def native_chips() -> tuple[Chip, ...]:
    """One chip for each kind of GPU that the driver lists. Raises NoGpuError."""
    # Importing the driver's bindings takes a tenth of a second, and few builds need them.
    from cuda.bindings import driver

    try:
        (status,) = driver.cuInit(0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise NoGpuError(f"cuInit says {status.name}")
        status, count = driver.cuDeviceGetCount()
        chips = [_chip_of(driver, ordinal) for ordinal in range(count)]
    except RuntimeError:  # the bindings raise it if there is no driver
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
