"""What is done with a module, and why: its levels, the steps, and what was decided on the way."""
