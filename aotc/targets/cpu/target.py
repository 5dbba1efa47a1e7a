"""The CPU as a `DeviceTarget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aotc.targets.cpu.artifacts import CPU_MLIR, CPU_OBJ, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from aotc.health import Check
    from aotc.images.image import Found, Image
    from aotc.images.view import View
    from aotc.input.given import GivenBinary
    from aotc.input.source import Source
    from aotc.request import Chip
    from aotc.target import DeviceTarget


class CpuTarget:
    """The host's processor, which runs kernels as host functions."""

    kinds = KINDS
    described = CPU_MLIR
    embedded = CPU_MLIR
    linked = (CPU_OBJ,)
    tools = ()  # clang is one of the host's tools

    def native_chips(self) -> tuple[Chip, ...]:
        """None: --chip names GPUs, and host code has copies for every level of its processors."""
        return ()

    def check_devices(self) -> tuple[Check, ...]:
        from aotc.health import Check, Status
        from aotc.toolchain.runner import cores

        count = cores()
        return (Check("cpu", Status.OK, f"{count} {'cores' if count > 1 else 'core'}"),)

    def find_abilities(self, checks: Mapping[str, Check]) -> tuple[Check, ...]:
        """None: kernels run on the CPU wherever programs run, which the host's checks report."""
        return ()

    def passes(self) -> tuple[str, ...]:
        from aotc.targets.cpu.host_function import INLINING_PASSES
        from aotc.targets.cpu.lowering import ALL_CPU_PASSES

        return (*ALL_CPU_PASSES, *INLINING_PASSES)

    def gpus_for(self, kernel: Any, chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
        """None: it is not a GPU."""
        return ()

    def given_binaries(self, source: Source) -> tuple[GivenBinary, ...]:
        """None: a gpu.binary has code for GPUs."""
        return ()

    def image_format(self, view: View) -> str | None:
        """None: its kernels are part of the host code."""
        return None

    def find_images(self, view: View) -> Iterator[Found]:
        """None: its kernels are part of the host code."""
        return iter(())

    def image_text(
        self,
        image: Image,
        content: View,
        environment: Mapping[str, str],
        overrides: Mapping[str, Path],
    ) -> str:
        raise AssertionError("the CPU has no images")


TARGET: DeviceTarget = CpuTarget()
