"""`aotc-outline-library`: kernels of the library are outlined, and set aside until
`aotc-merge-kernels`."""

from __future__ import annotations

from typing import Any

from aotc.analysis.gpu_modules import target_and_dispatch
from aotc.lower.outlining.library import has_library_kernels_alone, library_modules, take_out
from aotc.lower.outlining.module import launches_of, share_kernels
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.ops import symbol_of
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
        modules = library_modules(lowering.module, lowering.by_hand)
        # Equal kernels for several targets are several: each is in the images of its own.
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
        lowering.library = take_out(lowering.module, outlined)
        name, watch = lowering.source.name, lowering.watch
        run_passes(lowering.library, _SIMPLIFY, name=name, watch=watch)
