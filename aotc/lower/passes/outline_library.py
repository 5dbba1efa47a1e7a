"""`aotc-outline-library`: kernels of the library are outlined, and set aside until
`aotc-merge-kernels`."""

from __future__ import annotations

from aotc.lower.outlining.library import has_library_kernels_alone, library_modules, take_out
from aotc.lower.outlining.module import launches_of, share_kernels
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.rewrites.run import run_passes

# What loops that become kernels get, too.
_SIMPLIFY = ("gpu.module(gpu.func(canonicalize,loop-invariant-code-motion,canonicalize,cse))",)


class OutlineLibrary(OwnPass, frozen=True):
    """Leaves a module alone in which the user has written launches, which need other passes
    before."""

    name = "aotc-outline-library"
    needs = ("aotc-choose-matmul-kernels",)
    reason: str = "kernels of the library are complete: no other pass need look at them"

    def run(self, lowering: Lowering) -> None:
        if not has_library_kernels_alone(lowering.module):
            return
        lowering.run_upstream(
            "canonicalize", "cse", "gpu-launch-sink-index-computations", "gpu-kernel-outlining"
        )
        launches = launches_of(lowering.module)
        outlined = share_kernels(
            library_modules(lowering.module, lowering.by_hand),
            launches,
            debug=lowering.request.debug,
        )
        lowering.library = take_out(lowering.module, outlined)
        name, watch = lowering.source.name, lowering.watch
        run_passes(lowering.library, _SIMPLIFY, name=name, watch=watch)
