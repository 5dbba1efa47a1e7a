"""Plans of a lowering: the levels of the input, the passes with their reasons, and recorded
decisions."""
