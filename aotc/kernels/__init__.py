"""The kernel library: IR that aotc writes in place of an operation that it recognizes.

`matmul` computes contractions and convolutions, `attention` computes softmax(Q K^T) V. `indices`
and `writer` build the IR of both.
"""
