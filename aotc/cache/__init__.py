"""The build cache: a local folder, and optionally a server that a team shares.

A build looks up its files by their inputs (`builds`), or the output of a tool by its command and
the files it reads (`actions`). docs/cache.md describes the layout. Nothing here imports the MLIR
bindings: a build whose files are cached does not load them.
"""
