"""Products on the ordinary units: `family` says which and launches, `kernel` is what a block does,
`tiles` how matrices lie in shared memory."""
