"""The steps of the matmul ladder (samples/cuda_matmul) beside cuBLAS."""
