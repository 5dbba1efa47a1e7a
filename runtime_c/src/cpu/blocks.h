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

typedef struct aotc_rt_cpu_launched {
  const aotc_cpu_kernel *kernel;
  void *const *parameters;
  int64_t grid[3], block[3];
  int64_t dynamic_shared_bytes;
  int64_t level; // aotc_cpu_block's
  uint64_t block_count, chunk;
  aotc_rt_cpu_scratch scratch;
  _Atomic(uint64_t) next_block; // may run past block_count, by a chunk for each thread
  atomic_bool has_failed;
  // Written by the thread that set has_failed; to be read when it takes part no more.
  char failure[AOTC_RT_FAILURE_BYTES];
} aotc_rt_cpu_launched;

// Sets `scratch` from the kernel and the sizes; false if that is more than any memory.
bool aotc_rt_cpu_lay_out_scratch(aotc_rt_cpu_launched *launched);

// Runs blocks on the calling thread until none are left, or one fails, and tells how many it ran.
// `memory` is its scratch memory, or NULL if there is none.
uint64_t aotc_rt_cpu_run_blocks(aotc_rt_cpu_launched *launched, char *memory);

#endif // AOTC_RT_CPU_BLOCKS_H
