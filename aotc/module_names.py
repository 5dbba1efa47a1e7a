"""Names in a module by which one stage of the lowering tells a later one something."""

from __future__ import annotations

from aotc.chips import FIRST_WITH_ASYNC_COPIES

# An attribute of functions: all that the function enqueues goes to one stream.
ONE_STREAM = "aotc.one_stream"
# A function without a body: its call waits for the calling function's stream.
WAIT = "aotc_wait"
# Another: what GPU the function's launches go to, 90 for compute capability 9.0; 0 for the CPU
# device. runtime_c/include/aotc_runtime.h
CAPABILITY = "aotc_compute_capability"
# The least one that has kernels of its own for matmuls: with asynchronous copies.
LEAST_CAPABILITY = FIRST_WITH_ASYNC_COPIES
# Functions of the runner that read what they are given, and keep nothing, begin so.
PRINTS = "printMemref"
# Calls that touch no memory.
QUIET_CALLS = (WAIT, CAPABILITY)
# An attribute of gpu.alloc: the host-shared memory is a result's, which no host code touches.
# Before it, the runtime is told so, by a function without a body.
RESULT = "aotc.result"
PREPARE_RESULT = "aotc_result_prepare"
# An attribute of gpu.alloc: it is a temporary that aotc has made, and no buffer of the module's.
TEMPORARY = "aotc.temporary"
# The device's copy of constant NAME: a memref.global without a value.
DEVICE_COPY = "aotc_device_"
# Copies of constant NAME that kernels of the CPU device read, likewise: a matrix whose columns are
# packed, and filters that are transformed for Winograd's convolution.
PACKED_COPY = "aotc_packed_"
WINOGRAD_COPY = "aotc_winograd_"
# How the runtime's functions call these.
CPU_COPIES = {PACKED_COPY: "packed", WINOGRAD_COPY: "winograd"}
# Their attribute that names the constant.
COPY_OF = "aotc.copy_of"
# An attribute of a memref.global: the name of the weight that it is, which a program may replace.
WEIGHT = "aotc.weight"
# Another, in the host's module: the entry returns an error unless its argument is true.
CHECK = "aotc_check"
# On its call: the assertion's message, with its place.
MESSAGE = "aotc.message"
# The same for an assertion that says two numbers, its further arguments: the message is a format of
# C's printf.
CHECK_NUMBERS = "aotc_check_numbers"
# Another: whether the function that was called last came to its end.
GOES_ON = "aotc_task_goes_on"
# Others begin so, with a number behind it: they make a sparse tensor of arrays and the sizes that
# its type does not tell. Their attribute has that type.
ASSEMBLE = "aotc_assemble"
ASSEMBLED = "aotc.assembled"
# Of a function that computes a Fourier transform: a dictionary of its `kind` (c2c, r2c, c2r), its
# `length`, the `sign` of the exponent, and how what it reads and writes lies, `in` and `out`
# (points_last, rows_last).
FOURIER = "aotc.fourier"
# Of a load in a kernel: what it reads is a constant, which no kernel writes.
READS_CONSTANT = "aotc.reads_constant"
# Of a `vector.vscale`: it is the level of the CPU's instruction set (`kernels/cpu/levels.py`), and
# vectors are not scalable.
CPU_LEVEL = "aotc.cpu_level"
# Behind the name of an entry: the function that computes the sizes of what the entry returns.
RESULT_SIZES = ".result_sizes"
# Likewise: the function that computes the bytes of its temporaries on a GPU; and the attribute of
# an entry for which that is one number.
WORKSPACE_SIZE = ".workspace_size"
WORKSPACE_BYTES = "aotc.workspace_bytes"
# The types of the numbers among their arguments: what sizes are computed from.
SIZE_NUMBERS = frozenset(("index", "i1", "i8", "i16", "i32", "i64", "f32", "f64"))
