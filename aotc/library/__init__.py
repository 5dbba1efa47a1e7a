"""A library that aotc generated, called from Python: arrays in, arrays out.

Needs neither the MLIR bindings nor a tool; NumPy only where an entry returns host memory.
"""
