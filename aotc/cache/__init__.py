"""What builds made, kept: in a folder, and on a server that a team shares.

A build takes from here what it would make: its files, by what they were made of (`builds`), or
what a tool makes, by its command and what it reads (`actions`). docs/cache.md tells the layout.
Nothing in here needs the MLIR bindings: a build whose files are here does not load them.
"""
