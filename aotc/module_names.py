"""Names of attributes and functions that pass information between stages of the lowering."""

from __future__ import annotations

from aotc.chips import FIRST_WITH_ASYNC_COPIES

# Attribute of a function: it enqueues all work on one stream.
ONE_STREAM = "aotc.one_stream"
# Declared function: its call waits for the calling function's stream.
WAIT = "aotc_wait"
# Declared function: the compute capability of the GPU that the function's launches go to, 90 for
# 9.0; 0 for the CPU device. See runtime_c/include/aotc_runtime.h.
CAPABILITY = "aotc_compute_capability"
# The lowest capability with its own matmul kernels, which need asynchronous copies.
LEAST_CAPABILITY = FIRST_WITH_ASYNC_COPIES
# Prefix of the runner's functions that only read their arguments, and keep no reference to them.
PRINTS = "printMemref"
# Calls that do not access memory.
QUIET_CALLS = (WAIT, CAPABILITY)
# Attribute of gpu.alloc: the host-shared memory is for a result, and no host code accesses it.
# A call of PREPARE_RESULT, a declared function, precedes it and tells the runtime so.
RESULT = "aotc.result"
PREPARE_RESULT = "aotc_result_prepare"
# Attribute of gpu.alloc: a temporary that aotc created, as opposed to a buffer of the module.
TEMPORARY = "aotc.temporary"
# Prefix: the device's copy of constant NAME, a memref.global without an initial value.
DEVICE_COPY = "aotc_device_"
# Prefixes: copies of constant NAME that kernels of the CPU device read, also without initial
# values: a matrix with packed columns, and filters transformed for Winograd convolution.
PACKED_COPY = "aotc_packed_"
WINOGRAD_COPY = "aotc_winograd_"
# The runtime functions' names for these copies.
CPU_COPIES = {PACKED_COPY: "packed", WINOGRAD_COPY: "winograd"}
# Attribute of these copies: the name of the constant.
COPY_OF = "aotc.copy_of"
# Attribute of a memref.global: the name of the weight that it holds, which a program may replace.
WEIGHT = "aotc.weight"
# Declared function in the host module: the entry returns an error unless its argument is true.
CHECK = "aotc_check"
# Attribute of a call of CHECK: the assertion's message, with its place.
MESSAGE = "aotc.message"
# Like CHECK, for an assertion that reports two numbers, the further arguments. The message is a
# printf format.
CHECK_NUMBERS = "aotc_check_numbers"
# Declared function: whether the function that was called last ran to completion.
GOES_ON = "aotc_task_goes_on"
# Prefix, followed by a number, of functions that assemble a sparse tensor from arrays and from the
# sizes that its type does not contain. An attribute of the function has that type.
ASSEMBLE = "aotc_assemble"
ASSEMBLED = "aotc.assembled"
# Attribute of a function that computes a Fourier transform: a dictionary of its `kind` (c2c, r2c,
# c2r), its `length`, the `sign` of the exponent, and the layouts of its input and output, `in` and
# `out` (points_last, rows_last).
FOURIER = "aotc.fourier"
# Attribute of a load in a kernel: it reads a constant, which no kernel writes.
READS_CONSTANT = "aotc.reads_constant"
# Attribute of a `vector.vscale`: it stands for the level of the CPU's instruction set
# (`kernels/cpu/levels.py`); vectors are not scalable.
CPU_LEVEL = "aotc.cpu_level"
# Suffix of an entry's name: the function that computes the sizes of the entry's results.
RESULT_SIZES = ".result_sizes"
# Suffix: the function that computes the bytes of an entry's temporaries on a GPU; and the attribute
# of an entry for which this is a constant.
WORKSPACE_SIZE = ".workspace_size"
WORKSPACE_BYTES = "aotc.workspace_bytes"
# Types of the scalar arguments of these functions, from which sizes are computed.
SIZE_NUMBERS = frozenset(("index", "i1", "i8", "i16", "i32", "i64", "f32", "f64"))
