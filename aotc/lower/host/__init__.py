"""Lowering of the host part of the outlined module to the LLVM dialect."""
