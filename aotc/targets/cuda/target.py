"""CUDA GPUs as a `DeviceTarget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aotc.targets.cuda.artifacts import CUBIN, FATBIN, KINDS
from aotc.targets.cuda.tools import TOOLS

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


class CudaTarget:
    """The GPUs of NVIDIA's driver."""

    kinds = KINDS
    described = CUBIN
    embedded = FATBIN
    linked = ()
    tools = TOOLS

    def native_chips(self) -> tuple[Chip, ...]:
        from aotc.targets.cuda.native import native_chips

        return native_chips()

    def check_devices(self) -> tuple[Check, ...]:
        from aotc.targets.cuda.doctor import check_devices

        return check_devices()

    def find_abilities(self, checks: Mapping[str, Check]) -> tuple[Check, ...]:
        from aotc.targets.cuda.doctor import find_abilities

        return find_abilities(checks)

    def passes(self) -> tuple[str, ...]:
        from aotc.targets.cuda.lower import ALL_DEVICE_PASSES

        return ALL_DEVICE_PASSES

    def gpus_for(self, kernel: Any, chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
        from aotc.targets.cuda.requirements import gpus_for

        return gpus_for(kernel, chips)

    def given_binaries(self, source: Source) -> tuple[GivenBinary, ...]:
        from aotc.targets.cuda.given import given_binaries

        return given_binaries(source)

    def image_format(self, view: View) -> str | None:
        from aotc.targets.cuda.images.scan import format_of

        return format_of(view)

    def find_images(self, view: View) -> Iterator[Found]:
        from aotc.targets.cuda.images.scan import find_images

        return find_images(view)

    def image_text(
        self,
        image: Image,
        content: View,
        environment: Mapping[str, str],
        overrides: Mapping[str, Path],
    ) -> str:
        from aotc.targets.cuda.disassemble import image_text

        return image_text(image, content, environment, overrides)


TARGET: DeviceTarget = CudaTarget()
