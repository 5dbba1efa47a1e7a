"""How near kernels that are bound by memory come to a copy."""
