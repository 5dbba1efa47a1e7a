"""What is done with a matmul's result, and what it begins from → a part of the matmul's kernel.

`fuse` finds it and takes it in, `elementwise` reads its bodies as steps of an `epilogue`,
`collapsed` sees buffers as matrices, and `narrow` rounds a result where it is computed.
"""
