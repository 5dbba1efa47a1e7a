"""The passes that host code and CPU kernels share, as data."""

from __future__ import annotations

# The passes down to scalars, vectors, loops and branches. `rewrites.math.replace_math` runs after
# them.
TO_LOOPS = (
    "scf-forall-to-for",
    # Atomic operations that LLVM lacks (mulf, ...) become compare-and-swap loops.
    "memref-expand",
    "expand-realloc",
    "lower-affine",
    # Complex functions become real ones, which `replace_math` must see. (convert-complex-to-libm is
    # not used: it passes complex numbers with another calling convention than C.)
    "convert-complex-to-standard",
    "convert-vector-to-scf",
    "func.func(lower-vector-multi-reduction)",
)

# The passes down to branches, and to LLVM's vectors and math.
TO_BRANCHES = (
    "math-expand-ops{ops=clampf}",
    # For ipowi. (fpowi was lowered before.)
    "convert-math-to-funcs",
    # Computes in f32 and rounds: on aarch64, clang 22 rounds ties of bf16 vectors in the wrong
    # direction.
    "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}",
    # Rounds f32 to bf16 by integer arithmetic; LLVM would call a function.
    "arith-expand{include-bf16=true include-flush-denormals=true}",
    "expand-strided-metadata",
    # Lowers the affine operations that expand-strided-metadata creates.
    "lower-affine",
    # Lowers the remaining scf.parallel (reductions, small loops) to sequential loops.
    "convert-scf-to-cf",
    # With 32-bit indices, the size of a mask would be positive from below -2^31 on.
    "convert-vector-to-llvm{enable-x86=true force-32bit-vector-indices=false}",
    "convert-math-to-llvm",
)
