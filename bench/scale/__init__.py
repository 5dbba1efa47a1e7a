"""What large inputs cost: many kernels, large constants."""
