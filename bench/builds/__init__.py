"""What builds cost: see `__main__`."""
