"""aotc's own passes, a file each; `base` says what a pass is, MLIR's or ours."""
