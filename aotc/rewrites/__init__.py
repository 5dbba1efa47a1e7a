"""Rewrites of the IR that several packages share, and `run`, which runs passes of MLIR.

Most of them replace operations and types that upstream does not lower, or lowers wrongly. They
apply to host code and to device code.
"""
