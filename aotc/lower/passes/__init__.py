"""aotc's own passes, a file each (`own` lists them); `base` says what a pass is, MLIR's or ours."""
