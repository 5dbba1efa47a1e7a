// A launch on the CPU device: what its threads share, and the blocks that each of them runs.
#ifndef AOTC_RT_CPU_BLOCKS_H
#define AOTC_RT_CPU_BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"

#define AOTC_RT_SCRATCH_ALIGNMENT 128
#define AOTC_RT_FAILURE_BYTES 2048

// Where the pieces of a thread's scratch memory begin; the dynamic shared memory is at 0. A piece
// without bytes takes no room.
typedef struct aotc_rt_cpu_scratch {
  size_t shared, threads, states, arrivals, end;
} aotc_rt_cpu_scratch;

// The most shares of a launch: a share is a bit of what the pool knows of them.
#define AOTC_RT_CPU_SHARES 64

// Contiguous blocks of a launch, which one thread runs first, and others when they have none of
// their own: what the same thread ran in the last launch of a kernel is in its core's caches. Each
// has a cache line of its own.
typedef struct aotc_rt_cpu_share {
  _Alignas(64) _Atomic(uint64_t) next; // may run past `end`, by a chunk for each thread
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
  // Written by the thread that set has_failed; to be read when it takes part no more.
  char failure[AOTC_RT_FAILURE_BYTES];
} aotc_rt_cpu_launched;

// Sets `scratch` from the kernel and the sizes; false if that is more than any memory.
bool aotc_rt_cpu_lay_out_scratch(aotc_rt_cpu_launched *launched);

// Divides the blocks into `count` shares, at most AOTC_RT_CPU_SHARES.
void aotc_rt_cpu_divide(aotc_rt_cpu_launched *launched, aotc_rt_cpu_share *shares, int32_t count);

// Whether there are blocks that no thread took yet.
bool aotc_rt_cpu_has_blocks(const aotc_rt_cpu_launched *launched);

// Runs blocks on the calling thread until none are left, or one fails, and tells how many it ran:
// those of its share first, then those of the first share that has some. As the launching thread
// has the first share, the blocks that nobody took come behind all that it waits for, if blocks
// wait for earlier ones. `memory` is its scratch memory, or NULL if there is none.
uint64_t aotc_rt_cpu_run_blocks(aotc_rt_cpu_launched *launched, int32_t share, char *memory);

#endif // AOTC_RT_CPU_BLOCKS_H
