"""Products of matrices against cuBLAS."""
