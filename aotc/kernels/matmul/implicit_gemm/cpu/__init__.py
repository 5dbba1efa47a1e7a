"""Implicit GEMM for the CPU device: `family` chooses a kernel, `gathered` packs B from anywhere,
`image` reads it in place."""
