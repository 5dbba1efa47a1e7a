"""`aotc bench`: times executables that aotc built, in turns; tabulates, compares and plots."""
