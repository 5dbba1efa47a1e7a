"""`aotc-assign-layouts`: temporaries of convolutions get the channels-last layout if the GPUs of
the build have kernels for it.

The bf16 kernels of the CPU device multiply pairs of channels. They pack these pairs from images
whose channels are not last. So if the build has CPU kernels, bf16 images keep their layout.
"""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.module_names import LEAST_CAPABILITY


class AssignLayouts(OwnPass, frozen=True):
    name = "aotc-assign-layouts"
    reason: str = "images of 16-bit convolutions become channels-last, for wide copies on GPUs"

    def run(self, lowering: Lowering) -> None:
        if min(lowering.request.capabilities, default=0) < LEAST_CAPABILITY:
            return
        # Modules without linalg need none of it.
        from aotc.lower.layouts.channels import order_channels

        elements = ("f16",) if lowering.request.cpu_kernels else ("f16", "bf16")
        for location in order_channels(lowering.module, elements):
            text = "convolution: its image becomes channels-last"
            lowering.remarks.add(self.name, location, text)
