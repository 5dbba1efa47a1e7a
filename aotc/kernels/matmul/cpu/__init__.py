"""Matmul on the CPU device. `blocked` computes tiles of C, and packs blocks of A and B if needed.
`grouped` does so for elements of 8 or 16 bits, and `gated` for columns that are gates. `streamed`
reads the matrix once if C has one row or column. `packed` and `streamed_packed` read a constant B
that the runtime has packed. `kernel` is the base of all of them.
"""
