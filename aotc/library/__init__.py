"""A library that aotc generated, called from Python with arrays.

It needs neither the MLIR bindings nor a tool, and NumPy only if an entry returns host memory.
"""
