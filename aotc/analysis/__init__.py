"""Questions about a module that change nothing in it: where buffers flow to, what is written, what
may overlap, what a launch asks for, what a kernel needs."""
