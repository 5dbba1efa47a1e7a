"""Analyses that do not change the module: where buffers flow to, what is written, what may alias,
what a launch requests, and what a kernel needs."""
