"""Levels of input → host module + gpu.modules: loops become launches, memory is placed."""
