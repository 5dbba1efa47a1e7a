// A launch on the CPU device: the state its threads share, and running its blocks.
#ifndef AOTC_RT_CPU_BLOCKS_H
#define AOTC_RT_CPU_BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"

#define AOTC_RT_SCRATCH_ALIGNMENT 128
#define AOTC_RT_FAILURE_BYTES 2048

// Offsets of the pieces of a thread's scratch memory; the dynamic shared memory is at 0. An empty
// piece takes no space.
typedef struct aotc_rt_cpu_scratch {
  size_t shared, threads, states, arrivals, end;
} aotc_rt_cpu_scratch;

// The maximum number of shares of a launch; the pool keeps one bit for each.
#define AOTC_RT_CPU_SHARES 64

// A contiguous range of a launch's blocks. One thread runs it first and other threads steal from it
// when their own shares are empty: the blocks that a thread ran in the previous launch of a kernel
// are in its core's caches. Each share has its own cache line.
typedef struct aotc_rt_cpu_share {
  _Alignas(64) _Atomic(uint64_t) next; // may exceed `end`, by one chunk for each thread
  uint64_t end;
} aotc_rt_cpu_share;

typedef struct aotc_rt_cpu_launched {
  const aotc_cpu_kernel *kernel;
  void *const *parameters;
  int64_t grid[3], block[3];
  int64_t dynamic_shared_bytes;
  int64_t level; // aotc_cpu_block's
  uint64_t block_count, chunk;
  aotc_rt_cpu_scratch scratch;
  aotc_rt_cpu_share *shares;
  int32_t share_count;
  atomic_bool has_failed;
  // Written by the thread that set has_failed; read after that thread has left the launch.
  char failure[AOTC_RT_FAILURE_BYTES];
} aotc_rt_cpu_launched;

// Sets `scratch` from the kernel and the sizes; false if the total overflows.
bool aotc_rt_cpu_lay_out_scratch(aotc_rt_cpu_launched *launched);

// Divides the blocks into `count` shares, at most AOTC_RT_CPU_SHARES.
void aotc_rt_cpu_divide(aotc_rt_cpu_launched *launched, aotc_rt_cpu_share *shares, int32_t count);

// Whether there are blocks that no thread has taken yet.
bool aotc_rt_cpu_has_blocks(const aotc_rt_cpu_launched *launched);

// Runs blocks on the calling thread until none are left or one fails, and returns how many it ran.
// It runs the blocks of its share first, then those of the first share that has some left. The
// launching thread has the first share, so it never waits for a block that comes after the ones it
// is running, if blocks wait for earlier ones. `memory` is its scratch memory, or NULL if none is
// needed.
uint64_t aotc_rt_cpu_run_blocks(aotc_rt_cpu_launched *launched, int32_t share, char *memory);

#endif // AOTC_RT_CPU_BLOCKS_H
