"""`aotc-outline-library`: outlines the kernels of the library, and keeps them apart until
`aotc-merge-kernels`."""

from __future__ import annotations

from typing import Any

from aotc.analysis.gpu_modules import target_and_dispatch
from aotc.kernels.launch_functions import inline_launch_functions
from aotc.lower.outlining.library import detach_kernels, has_library_kernels_alone, library_modules
from aotc.lower.outlining.module import launches_of, share_kernels
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.passes.sink_constants import SinkConstants
from aotc.ops import symbol_of
from aotc.rewrites.run import run_passes

# The same passes that loops get when they become kernels.
_SIMPLIFY = ("gpu.module(gpu.func(canonicalize,loop-invariant-code-motion,canonicalize,cse))",)


class OutlineLibrary(OwnPass, frozen=True):
    """Does nothing if the user wrote launches in the module: these need other passes before
    outlining."""

    name = "aotc-outline-library"
    needs = ("aotc-choose-matmul-kernels",)
    reason: str = "kernels of the library are complete: no other pass has to process them"

    def run(self, lowering: Lowering) -> None:
        if has_library_kernels_alone(lowering.module):
            self._outline(lowering)
        inline_launch_functions(lowering.module)

    def _outline(self, lowering: Lowering) -> None:
        lowering.run_upstream("canonicalize", "cse")
        SinkConstants().run(lowering)
        lowering.run_upstream("gpu-launch-sink-index-computations", "gpu-kernel-outlining")
        launches = launches_of(lowering.module)
        modules = library_modules(lowering.module, lowering.by_hand)
        # Equal kernels of different targets are not shared: each target has its own images.
        targets: dict[str, list[Any]] = {}
        for one in modules:
            targets.setdefault(target_and_dispatch(symbol_of(one))[0], []).append(one)
        debug = lowering.request.debug
        kept = [
            id(one)
            for group in targets.values()
            for one in share_kernels(group, launches, debug=debug)
        ]
        outlined = [one for one in modules if id(one) in kept]
        lowering.library = detach_kernels(lowering.module, outlined)
        name, watch = lowering.source.name, lowering.watch
        run_passes(lowering.library, _SIMPLIFY, name=name, watch=watch)
