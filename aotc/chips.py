"""The hardware properties of each GPU: the one table that all other modules use.

GPUs are identified by their compute capability, written as 10 times the major plus the minor
number: 90 for 9.0. Sizes are in bytes.

Sources:

- CUDA C++ Programming Guide, "Compute Capabilities": the tables of features and of technical
  specifications (warps, blocks, shared memory, registers, sizes of blocks, grids and clusters).
- cuda_occupancy.h of CUDA's headers: allocation granularity of shared memory and registers, and
  barriers. A test compares the occupancy of every row with that calculator.
- NVIDIA's whitepapers of the A100, H100 (the H200's multiprocessors are the same), Ada and RTX
  Blackwell GPUs, the data sheets of A40, L40S and HGX B200: multiprocessors and peaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

KIB = 1024
WARP = 32

# The same for every GPU of the table.
REGISTERS = 1 << 16  # per multiprocessor, and the maximum per block
MAX_THREAD_REGISTERS = 255
REGISTER_UNIT = 256  # allocation granularity of registers per warp
PARTITIONS = 4  # per multiprocessor; each has an equal share of its registers
MAX_BLOCK = (1024, 1024, 64)  # threads along x, y and z
MAX_BLOCK_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)  # blocks along x, y and z
# The shared memory of a block without opt-in, and the most static shared memory that ptxas accepts.
STATIC_SHARED_BYTES = 48 * KIB
# The maximum number of blocks in a cluster, if the kernel allows non-portable sizes, which our
# runtime requests. The portable maximum is 8.
MAX_CLUSTER = 16

# The first capability with: asynchronous copies to shared memory; reductions of a warp's integers
# by one instruction; clusters; an "a" variant, whose additional instructions (wgmma, tcgen05) run
# on that architecture alone.
FIRST_WITH_ASYNC_COPIES = 80
FIRST_WITH_REDUX = 80
FIRST_WITH_CLUSTERS = 90
FIRST_WITH_VARIANT = 90
# Orin, a system on a chip: its GPU does not run the cubins of other GPUs, nor the reverse. (CUDA
# C++ Programming Guide, "Binary Compatibility".)
TEGRA = (87,)


class Limits(Struct, frozen=True):
    """The limits of a multiprocessor and of one of its blocks.

    `shared` is the multiprocessor's shared memory, `block_shared` the maximum of a block whose
    launch opts in. The driver reserves `reserved_shared` in each block. `barriers` is the number of
    barriers per resident block; 0 means no limit (up to 8.x the calculator does not count them).
    """

    warps: int
    blocks: int
    shared: int
    block_shared: int
    shared_unit: int = 128
    reserved_shared: int = KIB
    barriers: int = 0


def _with(warps: int, blocks: int, shared_kib: int, *, barriers: int = 0) -> Limits:
    # A block can use all but the 1 KiB that the driver reserves.
    shared = shared_kib * KIB
    return Limits(warps, blocks, shared, shared - KIB, barriers=barriers)


LIMITS = {
    75: Limits(32, 16, 64 * KIB, 64 * KIB, shared_unit=256, reserved_shared=0),
    80: _with(64, 32, 164),
    86: _with(48, 16, 100),
    87: _with(48, 16, 164),
    89: _with(48, 24, 100),
    90: _with(64, 32, 228, barriers=2),
    100: _with(64, 32, 228, barriers=2),
    103: _with(64, 32, 228, barriers=1),
    120: _with(48, 24, 100, barriers=1),
    121: _with(48, 24, 100, barriers=1),
}


def block_shared_of(capabilities: Iterable[int]) -> int:
    """The shared memory that a block may use on every one of these GPUs."""
    return min(LIMITS[capability].block_shared for capability in capabilities)


# The shared memory of a block on all GPUs that have their own matmul kernels.
BLOCK_SHARED_BYTES = block_shared_of(one for one in LIMITS if one >= FIRST_WITH_ASYNC_COPIES)


class Peak(Struct, frozen=True):
    """The peak rate for an element type: multiply-adds per multiprocessor and clock, and the GPU's
    rate in 10^12 operations per second, where a multiply-add counts as two."""

    multiply_adds: int
    teraflops: float


class Gpu(Struct, frozen=True):
    """A GPU that represents its architecture: the largest for data centers or workstations.

    Peaks are without sparsity, with accumulation in f32 (f64 for f64, i32 for i8). `teraflops` are
    as NVIDIA publishes them; with the number of multiprocessors and the clock they give the
    multiply-adds (A100: 312e12 / 2 / 108 / 1.41e9 = 1024).
    """

    name: str
    multiprocessors: int
    peaks: Mapping[str, Peak]


# "tf32" is the rate for f32 operands that may be rounded to tf32.
GPUS = {
    80: Gpu(
        "A100",
        108,
        {
            "f16": Peak(1024, 312),
            "tf32": Peak(512, 156),
            "f32": Peak(64, 19.5),
            "f64": Peak(64, 19.5),
            "i8": Peak(2048, 624),
        },
    ),
    86: Gpu(
        "A40",
        84,
        {
            "f16": Peak(512, 149.7),
            "tf32": Peak(256, 74.8),
            "f32": Peak(128, 37.4),
            "f64": Peak(2, 0.585),
            "i8": Peak(1024, 299.3),
        },
    ),
    89: Gpu(
        "L40S",
        142,
        {
            "f16": Peak(512, 362),
            "tf32": Peak(256, 183),
            "f32": Peak(128, 91.6),
            "f64": Peak(2, 1.43),
            "i8": Peak(1024, 733),
            "f8": Peak(1024, 733),
        },
    ),
    90: Gpu(
        "H100 SXM",
        132,
        {
            "f16": Peak(2048, 989),
            "tf32": Peak(1024, 494),
            "f32": Peak(128, 67),
            "f64": Peak(128, 67),
            "i8": Peak(4096, 1979),
            "f8": Peak(4096, 1979),
        },
    ),
    100: Gpu(
        "B200",
        148,
        {
            "f16": Peak(4096, 2250),
            "tf32": Peak(2048, 1100),
            "f32": Peak(128, 75),
            "f64": Peak(64, 37),
            "i8": Peak(8192, 4500),
            "f8": Peak(8192, 4500),
        },
    ),
    120: Gpu(
        "RTX PRO 6000",
        188,
        {
            "f16": Peak(512, 503.8),
            "tf32": Peak(256, 251.9),
            "f32": Peak(128, 126),
            "f64": Peak(2, 1.97),
            "i8": Peak(1024, 1007),
            "f8": Peak(1024, 1007),
        },
    ),
}

# The GPUs that kernels were tuned for.
A100, H100 = GPUS[80], GPUS[90]
# The number of threads that fills a large GPU: all resident threads of an H100.
LARGE_GPU_THREADS = H100.multiprocessors * LIMITS[90].warps * WARP
# Maps a cluster size to the number of blocks in such clusters that run at once on an H200, as
# measured. A cluster runs within one GPC, and not all GPCs have the same number of multiprocessors.
H200_BLOCKS_IN_CLUSTERS = {2: 132, 3: 132, 4: 120, 8: 112}


def gpu_of(capability: int) -> Gpu:
    """The GPU that represents a capability: its own, or that of the next lower one in the table."""
    below = [one for one in GPUS if one <= capability]
    return GPUS[max(below, default=min(GPUS))]
