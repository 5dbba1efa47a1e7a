"""`aotc-assign-layouts`: temporaries of convolutions have their channels last where GPUs have
kernels for that.

The CPU device multiplies bf16 in pairs, which it packs of images whose channels are not last: with
kernels for it, those of bf16 stay as they are.
"""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.module_names import LEAST_CAPABILITY


class AssignLayouts(OwnPass, frozen=True):
    name = "aotc-assign-layouts"
    reason: str = "images of 16-bit convolutions have their channels last, for wide copies on GPUs"

    def run(self, lowering: Lowering) -> None:
        if min(lowering.request.capabilities, default=0) < LEAST_CAPABILITY:
            return
        # Modules without linalg need none of it.
        from aotc.lower.layouts.channels import order_channels

        elements = ("f16",) if lowering.request.cpu_kernels else ("f16", "bf16")
        for location in order_channels(lowering.module, elements):
            text = "convolution: its image has the channels last in memory"
            lowering.remarks.add(self.name, location, text)
