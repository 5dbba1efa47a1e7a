"""Names of functions and symbols that pass information between stages of the lowering."""

from __future__ import annotations

from aotc.chips import FIRST_WITH_ASYNC_COPIES

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
# Declared function: tells the runtime that the next allocation is for a result.
PREPARE_RESULT = "aotc_result_prepare"
# Prefix: the device's copy of constant NAME, a memref.global without an initial value.
DEVICE_COPY = "aotc_device_"
# Prefixes: copies of constant NAME that kernels of the CPU device read, also without initial
# values: a matrix with packed columns, a matrix whose transpose has packed columns, matrices with
# packed columns of groups of 4 bytes along K (a transposed one, and ones of elements of 2 bytes and
# of 1), and filters transformed for Winograd convolution.
PACKED_COPY = "aotc_packed_"
TRANSPOSED_COPY = "aotc_transposed_"
GROUPED_WORDS_COPY = "aotc_grouped_words_"
GROUPED_HALVES_COPY = "aotc_grouped_halves_"
GROUPED_BYTES_COPY = "aotc_grouped_bytes_"
WINOGRAD_COPY = "aotc_winograd_"
# The runtime functions' names for these copies.
CPU_COPIES = {
    PACKED_COPY: "packed",
    TRANSPOSED_COPY: "transposed",
    GROUPED_WORDS_COPY: "grouped_words",
    GROUPED_HALVES_COPY: "grouped_halves",
    GROUPED_BYTES_COPY: "grouped_bytes",
    WINOGRAD_COPY: "winograd",
}
# Declared function in the host module: the entry returns an error unless its argument is true.
CHECK = "aotc_check"
# Like CHECK, for an assertion that reports two numbers, the further arguments. The message is a
# printf format.
CHECK_NUMBERS = "aotc_check_numbers"
# Declared function: whether the function that was called last ran to completion.
GOES_ON = "aotc_task_goes_on"
# Prefix, followed by a number, of functions that assemble a sparse tensor from arrays and from the
# sizes that its type does not contain. An attribute of the function has that type.
ASSEMBLE = "aotc_assemble"
# Suffix of an entry's name: the function that computes the sizes of the entry's results.
RESULT_SIZES = ".result_sizes"
# Suffix: the function that computes the bytes of an entry's temporaries on a GPU.
WORKSPACE_SIZE = ".workspace_size"
# Types of the scalar arguments of these functions, from which sizes are computed.
SIZE_NUMBERS = frozenset(("index", "i1", "i8", "i16", "i32", "i64", "f32", "f64"))
