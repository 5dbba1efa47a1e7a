"""Random kernels, built by aotc and run, against their direct evaluation in NumPy.

A program of `program` is a tree. `generate` makes one from a seed, `mlir_text` prints it as a
GPU kernel with a function that launches it, and `evaluate` computes what it must give with all
threads in lock step, as arrays over threads with masks. The evaluation shares nothing with
aotc, and checks the program on the way: a race, a barrier that not all threads reach or a read
of what nobody wrote is an error of the generator, not of aotc.

    python -m tests.property.run --count 2000 --seed 7

builds many programs at once and runs them. A failure is shrunk, and told with its seed.
"""
