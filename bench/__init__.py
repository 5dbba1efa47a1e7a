"""Benchmarks: each compares what aotc makes with what one would otherwise use, in one run."""
