"""Builds the ladder, or the products of every shape that come of its last step.

    python samples/cuda_matmul/build.py                      ./ladder, an entry a step
    python samples/cuda_matmul/build.py gemm --emit shared   ./libgemm.so and a header
    python samples/cuda_matmul/build.py candidates           what `autotuned` was chosen from

`--element f64` and `--sizes M,N,K` are parameters of the Python functions; the others are
aotc's options.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import aotc
from ladder.gemm import gemm, has_enough_blocks
from ladder.module import Sizes, entry, new_module
from ladder.steps import STEPS, Step, candidate

# What the BLAS calls products of the type.
_BLAS_LETTER = {"f32": "s", "f64": "d"}


def ladder(
    element: str = "f32", sizes: Sizes | None = None, steps: tuple[Step, ...] = STEPS
) -> Any:
    """An `ir.Module` with an entry for each step: `sgemm_naive` and so on, `dgemm_` for f64."""
    with new_module() as module:
        for step in steps:
            name = f"{_BLAS_LETTER[element]}gemm_{step.name}"
            with entry(name, element, sizes) as arrays:
                step.make(f"{name}_kernel", step.tile_for(element), *arrays)
    return module


def every_shape() -> Any:
    """An `ir.Module` with `gemm_f32` and `gemm_f64`, and what they choose from."""
    with new_module() as module:
        gemm.entries()
        for element in gemm.choices["element"]:
            gemm.dispatcher(element, has_enough_blocks)
    return module


def candidates() -> Any:
    """An `ir.Module` with the kernels that the step `autotuned` is the fastest of."""
    with new_module() as module:
        candidate.entries()
    return module


def _sizes(text: str) -> Sizes:
    m, n, k = map(int, text.split(","))
    return m, n, k


def main() -> None:
    parser = argparse.ArgumentParser(description="Matrix products, step by step.")
    parser.add_argument(
        "what", nargs="?", choices=["ladder", "gemm", "candidates"], default="ladder"
    )
    parser.add_argument("--element", choices=["f32", "f64"], default="f32")
    parser.add_argument("--sizes", type=_sizes, metavar="M,N,K", help="default: known when called")
    parser.add_argument("--emit", default="exe")
    parser.add_argument("--chip", default="", help="default: aotc's")
    parser.add_argument("--no-cpu-kernels", action="store_true")
    parser.add_argument("-o", "--out")
    options = parser.parse_args()
    if options.what != "ladder" and (options.sizes or options.element != "f32"):
        parser.error("--element and --sizes are the ladder's")
    make = {"gemm": every_shape, "candidates": candidates}.get(
        options.what, lambda: ladder(options.element, options.sizes)
    )
    try:
        artifact = aotc.build(
            make(),
            name=options.what,
            emit=options.emit,
            chips=options.chip,
            cpu_kernels=not options.no_cpu_kernels,
            out=options.out,
        )
    except aotc.AotcError as error:
        sys.exit(str(error))
    print(*artifact.paths.values(), sep="\n")


if __name__ == "__main__":
    main()
