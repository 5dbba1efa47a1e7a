"""Rewrites of the IR that several packages share, and `run`, which runs passes of MLIR.

Most make operations and types that upstream lowers wrongly or not at all into others, in either
half.
"""
