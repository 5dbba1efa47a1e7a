"""Running passes: MLIR's, and aotc's own by name."""
