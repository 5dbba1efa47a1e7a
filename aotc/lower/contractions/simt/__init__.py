"""Products on the ordinary units: `family` writes the kernel, `tiles` says how matrices lie."""
