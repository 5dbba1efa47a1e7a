"""What a call of many kernels costs, and a result of unknown size."""
