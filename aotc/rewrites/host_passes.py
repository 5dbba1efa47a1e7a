"""The passes that host code and CPU kernels share, as data."""

from __future__ import annotations

# Down to scalars, vectors, loops and branches. `rewrites.math.replace_math` comes behind them.
TO_LOOPS = (
    "scf-forall-to-for",
    # Atomic operations that LLVM lacks (mulf, ...) become compare-and-swap loops.
    "memref-expand",
    "expand-realloc",
    "lower-affine",
    # Complex functions become real ones, which `replace_math` must see. Not
    # convert-complex-to-libm: it passes complex numbers in another way than C does.
    "convert-complex-to-standard",
    "convert-vector-to-scf",
    "func.func(lower-vector-multi-reduction)",
)

# Down to branches, and to LLVM's vectors and math.
TO_BRANCHES = (
    "math-expand-ops{ops=clampf}",
    # ipowi. (fpowi is gone by now.)
    "convert-math-to-funcs",
    # In f32, and rounded: on aarch64, clang 22 rounds ties of bf16 vectors in a wrong direction.
    "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}",
    # Rounding f32 to bf16 is integer arithmetic: LLVM would call a function for it.
    "arith-expand{include-bf16=true include-flush-denormals=true}",
    "expand-strided-metadata",
    # What expand-strided-metadata computes is affine.
    "lower-affine",
    # Runs what is left of scf.parallel in sequence: reductions, small loops.
    "convert-scf-to-cf",
    # In 32 bits, the size of a mask would be positive from below -2^31 on.
    "convert-vector-to-llvm{enable-x86=true force-32bit-vector-indices=false}",
    "convert-math-to-llvm",
)
