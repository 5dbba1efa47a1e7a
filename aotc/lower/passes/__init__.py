"""aotc's own passes, a file each (`own` lists them); what a pass is (`base`); MLIR's (`run`)."""
