"""The checks of NVIDIA's driver and its GPUs for `aotc doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aotc.health import Check, Status
from aotc.request import DEFAULT_CHIPS, KNOWN_CHIPS, Chip

_ABOUT = "runs kernels on a GPU"
_INSTALL = "with a GPU: install NVIDIA's driver (Debian, Ubuntu: the package nvidia-driver)"


def check_devices() -> tuple[Check, ...]:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        problem = f"its bindings cannot be imported ({error})"
        return (_no_driver(problem, "pip install cuda-python"),)
    try:
        (status,) = driver.cuInit(0)
        if status != driver.CUresult.CUDA_SUCCESS:
            return (_no_driver(f"cuInit says {status.name}", _INSTALL),)
        _, version = driver.cuDriverGetVersion()
        _, count = driver.cuDeviceGetCount()
        found = f"CUDA {version // 1000}.{version % 1000 // 10}"
        ok = Check("driver", Status.OK, found, about=_ABOUT)
        return (ok, *(_check_device(driver, ordinal) for ordinal in range(count)))
    except RuntimeError:  # the bindings raise it if there is no driver
        return (_no_driver("not installed, or too old", _INSTALL),)


def _no_driver(problem: str, mend: str = "") -> Check:
    about = f"{_ABOUT}; without it they run on the CPU"
    return Check("driver", Status.ABSENT, problem, about=about, mend=mend)


def _check_device(driver: Any, ordinal: int) -> Check:
    """The check of one device. (Its handle is the same number as its ordinal.)"""
    attributes = driver.CUdevice_attribute
    _, name = driver.cuDeviceGetName(100, ordinal)
    _, total = driver.cuDeviceTotalMem(ordinal)
    _, major = driver.cuDeviceGetAttribute(
        attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal
    )
    _, minor = driver.cuDeviceGetAttribute(
        attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal
    )
    text = name.decode(errors="replace").rstrip("\0")
    found = f"{text}, sm_{major}{minor}, {total // 2**20} MiB"
    oldest = min(Chip(chip).capability for chip in DEFAULT_CHIPS)
    if 10 * major + minor >= oldest:
        return Check(f"cuda:{ordinal}", Status.OK, found)
    mend = f"--chip sm_{major}{minor}" if f"sm_{major}{minor}" in KNOWN_CHIPS else ""
    problem = f"{found}: older than the default chips"
    return Check(f"cuda:{ordinal}", Status.ABSENT, problem, mend=mend)


def find_abilities(checks: Mapping[str, Check]) -> tuple[Check, ...]:
    return (*_gpus(checks), *_sass(checks))


def _gpus(checks: Mapping[str, Check]) -> tuple[Check, ...]:
    devices = [check for name, check in checks.items() if name.startswith("cuda:")]
    if devices:
        return tuple(
            Check(f"run: {check.name}", check.status, check.found, mend=check.mend)
            for check in devices
        )
    driver = checks.get("driver")
    if driver is None:
        return ()
    problem = "no GPU" if driver.status is Status.OK else f"no: the driver is {driver.found}"
    return (Check("run: cuda", Status.ABSENT, problem, mend=driver.mend),)


def _sass(checks: Mapping[str, Check]) -> tuple[Check, ...]:
    nvdisasm = checks.get("nvdisasm")
    if nvdisasm is None:
        return ()
    return (Check("SASS", nvdisasm.status, "aotc inspect --sass", mend=nvdisasm.mend),)
