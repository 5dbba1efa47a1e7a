"""Products of sparse matrices on a GPU, beside cuSPARSE."""
