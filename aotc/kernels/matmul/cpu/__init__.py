"""Products on the CPU device: `blocked` packs blocks of both matrices, `streamed` is one pass over
the larger one for a product with few rows, and `writer` is what they are written in.
"""
