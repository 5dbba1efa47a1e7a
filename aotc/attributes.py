"""The discardable attributes of aotc: what one stage tells another about an operation.

For each one: its value (a unit attribute if none is named), the operation that has it, its meaning,
and the modules that set → read it. Names of functions and symbols are in `module_names`.
"""

# ── the interface of an entry: frontends, or the module's author → input.entries ──

# String on an argument or a result: its name in the header, the manifest and messages.
NAME_ATTRIBUTE = "aotc.name"
# Function that an importer made; its operations are correct for some tensor sizes only.
# → lower.tensors.size_checks, lower.mapping.explicit_parallelism.
IMPORTED_ATTRIBUTE = "aotc.imported"
# String on an argument: the field of the state that the argument is. → input.state.
STATE_ATTRIBUTE = "aotc.state"
# Elements on an argument: the field's initial value. → input.state.
INITIAL_ATTRIBUTE = "aotc.initial"
# Integer on a result: the number of the argument that the result is written to. → input.state,
# lower.outline, lower.tensors.in_place.
INTO_ATTRIBUTE = "aotc.into"
# Unit on an argument, and array of integers on a function: the arguments and results whose elements
# are unsigned, which MLIR's signless types do not express.
UNSIGNED_ATTRIBUTE = "aotc.unsigned"
UNSIGNED_RESULTS = "aotc.unsigned_results"
# String on a function: a `manifest.Call` as JSON.
CALL_ATTRIBUTE = "aotc.call"
# String on a function that takes or returns the arrays of sparse tensors: the
# `manifest.SparseTensor`s as JSON. lower.tensors.sparse_entries →
SPARSE_ATTRIBUTE = "aotc.sparse"
# memref.alloc of the input, which stays where it is under --memory explicit. lower.outline →
# lower.placement.
GIVEN = "aotc.given"
# Integer on a function: the bytes of its temporaries on a GPU, if constant.
# lower.placement.workspace →
WORKSPACE_BYTES = "aotc.workspace_bytes"

# ── tensors and sizes ──

# Type on a function that assembles a sparse tensor: the type of the tensor.
# lower.tensors.sparse_assembly → lower.tensors.sparse_entries.
ASSEMBLED = "aotc.assembled"
# String on a memref.global: the name of the weight that it holds, which a program may replace.
# input.weights → lower.layouts.channels, lower.passes.hoist_globals.
WEIGHT_ATTRIBUTE = "aotc.weight"
# Function whose results are buffers of known sizes: they become arguments. Internal to
# lower.tensors.functions, across two passes.
KNOWN_RESULTS = "aotc.known_results"
# Result of an entry: it was a tensor, so bufferization made the caller its only owner.
# lower.tensors.functions → analysis.access.
OWNED = "aotc.owned"
# bufferization.dealloc_tensor that is there as a use, which prevents fusion. Internal to
# lower.tensors.fusion_barriers, across two passes.
FUSION_BARRIER = "aotc.fusion_barrier"
# Array of two integers on a memref.view: it has the elements whose index along one dimension is at
# least the first and below the second; so have others of the same memory, along that dimension.
# lower.passes.view_contiguous_slices → analysis.views.
RANGE_ATTRIBUTE = "aotc.range"
# String on an arith.select: the message of the check that its condition holds.
# rewrites.checks.create_check → rewrites.checks.expand_checks, lower.tensors.constants,
# lower.tensors.known_tensors, lower.passes.slice_elementwise, kernels.matmul.fusion.selection.
CHECK_ATTRIBUTE = "aotc.check"
# cf.assert whose condition compares two sizes of a linalg operation that must be equal.
# lower.passes.assert_sizes → lower.passes.unify_sizes.
ASSUMPTION = "aotc.assumption"
# String on a cf.assert whose condition is an arith.cmpi of two indices, or the arith.ori of such a
# comparison (the first operand) and another condition: the message as a format of C's printf, which
# takes the two numbers as %lld. The assertion's own message has no numbers.
# lower.passes.verify_operations → analysis.assertions.
FORMAT_ATTRIBUTE = "aotc.format"
# cf.assert, then the call that replaces it: a failure means that memory is exhausted.
# rewrites.allocations, lower.tensors.result_sizes → lower.host.assertions, host.assertions.
FOR_MEMORY = "aotc.for_memory"
# String on a call of `module_names.CHECK` or CHECK_NUMBERS: the assertion's message, with its
# place. lower.host.assertions → host.assertions.
MESSAGE_ATTRIBUTE = "aotc.message"
# Operation in a vector.mask, so that CSE does not merge it with one outside. rewrites.masks → MLIR.
MASKED = "aotc.masked"
# Elements on a throw-away module that is written to read them. Internal to dense.
CONSTANT_ATTRIBUTE = "aotc.constant"

# ── kernels: which one, for what ──

# The parameters of an outlined attention, on its function. kernels.attention.outline →
# kernels.attention.dispatch. Float, and two bools: `Attention.scale`, `.causal`,
# `.masked_rows_are_zero`.
ATTENTION_SCALE = "aotc.attention_scale"
ATTENTION_CAUSAL = "aotc.attention_causal"
ATTENTION_ZERO = "aotc.attention_zero"
# Integers: the forms of the operands.
ATTENTION_HEADS = "aotc.attention_heads"
# Array of strings: the indices of the dimensions of the mask, which is the fifth argument.
ATTENTION_MASK = "aotc.attention_mask"
# Bool: the mask replaces scores.
ATTENTION_MASK_REPLACES = "aotc.attention_mask_replaces"
# Integer, `Attention.group`: with one query, the matrices of Q that share K and V; otherwise 0.
ATTENTION_GROUP = "aotc.attention_group"
# Integers: the fields of `Pages`, if K and V are paged.
ATTENTION_PAGES = "aotc.attention_pages"
# Integer: the number of operands of the call.
ATTENTION_OPERANDS = "aotc.attention_operands"
# Dictionary on a function that computes a Fourier transform: its `kind` (c2c, r2c, c2r), its
# `length`, the `sign` of the exponent, and the layouts of its input and output, `in` and `out`
# (points_last, rows_last). frontends.torch.fourier_rows → kernels.fourier.dispatch.
FOURIER = "aotc.fourier"
# String on the region around a launch: the launch target. The kernels' dispatch →
# kernels.launches.name_modules.
TARGET_ATTRIBUTE = "aotc.target"
# Integers there, if the kernel is not for every GPU of the build: the compute capabilities that it
# is for.
CAPABILITIES = "aotc.capabilities"
# Function whose calls are replaced by its body after its kernels are outlined. Internal to
# kernels.launch_functions.
LAUNCH_FUNCTION = "aotc.launch_function"
# Integers on such a function: the numbers of its arguments that are constants of the module in
# every call. kernels.launch_functions → analysis.constants.
CONSTANT_ARGUMENTS = "aotc.constant_arguments"
# String on a gpu.module that aotc wrote, or on a function: the target that its kernels are launched
# on (a chip, any GPU, or the CPU device). What is launched on every target has none.
# kernels.attention.dispatch, lower.outlining → analysis.gpu_modules.
RUNS_ON = "aotc.runs_on"

# ── mapping of loops ──

# Array of integers on a loop or linalg operation, also by the module's author: the requested
# threads per block along x, y, z. → lower.mapping.
BLOCK_ATTRIBUTE = "aotc.block"
# Dictionary on a function, from places in the source to the block attributes there, which survive
# the lowering of the operations. Internal to lower.mapping.explicit_parallelism.
BLOCKS_ATTRIBUTE = "aotc.blocks"
# Function whose author decided what runs in parallel: its loops are not mapped to a GPU. Internal
# to lower.mapping.explicit_parallelism, across passes.
SEQUENTIAL = "aotc.sequential"

# ── code in a kernel ──

# gpu.module whose code some GPU without `redux.sync` runs. targets.cuda.stages →
# targets.cuda.reductions.
WITHOUT_REDUX = "aotc.without_redux"
# Loop over the points of a thread, to unroll. Internal to rewrites.points, across passes.
POINTS_ATTRIBUTE = "aotc.points"
# Such a loop whose points are added to the thread id along x: the thread may have consecutive
# points instead.
NEIGHBOURS = "aotc.neighbours"
# Loop of all threads of a block together: its bounds are the same for them. Internal to
# rewrites.points, across passes.
OF_BLOCK = "aotc.of_block"
# Integer on a load or store: it is one of this many that may become one vector access. Internal
# to rewrites.neighbour_accesses.
VECTOR_ATTRIBUTE = "aotc.vector"
# Load of a constant, which no kernel writes. builder.memory → targets.cuda.pdl_kernels.
READS_CONSTANT = "aotc.reads_constant"
# memref.extract_aligned_pointer_as_index: elements are only read by that address. kernels.cpu.tiles
# → analysis.access.
READS_BY_ADDRESS = "aotc.reads_by_address"
# vector.vscale that stands for the level of the CPU's instruction set; vectors are not scalable.
# kernels.cpu.levels → targets.cuda.lower, targets.cpu.support.
CPU_LEVEL = "aotc.cpu_level"
# nvgpu.tma.create.descriptor of f32: TMA rounds what it loads to tf32. kernels.hopper.tma →
# rewrites.tensor_map_types.
ROUNDS_TO_TF32 = "aotc.rounds_to_tf32"
# Integers on a descriptor in im2col mode, whose box is pixels and channels: the lower corners of
# all spatial dimensions, outermost first, then the upper corners, then the strides of the
# traversal. kernels.hopper.im2col → rewrites.tensor_map_types.
IM2COL = "aotc.im2col"

# ── placement of buffers, and streams ──

# Integer on an operation of the host, by which an analysis finds what it learned about it. Internal
# to lower.placement.host_code.
NUMBER_ATTRIBUTE = "aotc.number"
# gpu.alloc of a temporary that aotc created, as opposed to a buffer of the module.
# lower.mapping.build → lower.placement.automatic.
TEMPORARY = "aotc.temporary"
# gpu.alloc of host-shared memory for a result, which no host code accesses. A call of
# `module_names.PREPARE_RESULT` precedes it and tells the runtime so. lower.placement.managed →
# analysis.access, lower.host.results.
RESULT_ATTRIBUTE = "aotc.result"
# Symbol on a copy of a constant (`module_names.CPU_COPIES`): the name of the constant. Internal to
# rewrites.constant_copies.
COPY_OF = "aotc.copy_of"
# Function that enqueues all work on one stream. lower.placement.streams → analysis.access,
# host.streams.
ONE_STREAM = "aotc.one_stream"
