"""Fourier transforms of rows whose length is a power of two, in one kernel."""
