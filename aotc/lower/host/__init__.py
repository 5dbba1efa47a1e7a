"""Outlined module → the host's half, in the LLVM dialect."""
