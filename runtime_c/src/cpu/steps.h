// Scheduling of the threads of a block that synchronize with each other.
#ifndef AOTC_RT_CPU_STEPS_H
#define AOTC_RT_CPU_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"

#define AOTC_RT_WARP_SIZE 32

// The named barrier that a thread arrived at last, and the barrier's completion count at that time.
typedef struct aotc_rt_cpu_arrival {
  int32_t barrier;
  uint32_t completions;
} aotc_rt_cpu_arrival;

// The threads of a block: a state and an arrival for each, and the named barriers.
typedef struct aotc_rt_cpu_threads {
  int32_t *states;
  aotc_rt_cpu_arrival *arrivals;
  int32_t arrived[AOTC_CPU_BARRIERS]; // threads since the last completion
  uint32_t completions[AOTC_CPU_BARRIERS];
} aotc_rt_cpu_threads;

// Runs a block by its kernel's step function. False if threads are waiting and none can continue.
bool aotc_rt_cpu_run_steps(const aotc_cpu_kernel *kernel, void *const *parameters,
                           const aotc_cpu_block *block, aotc_rt_cpu_threads *threads);

// The `arrive` function of aotc_cpu_block, for a valid barrier.
void aotc_rt_cpu_arrive(aotc_rt_cpu_threads *threads, const aotc_cpu_block *block, int64_t thread,
                        int32_t barrier, int32_t count);

// Appends the number of threads waiting at each place, and the number that have ended.
void aotc_rt_cpu_describe_stop(const aotc_cpu_kernel *kernel, const aotc_cpu_block *block,
                               const int32_t *states, char *text, size_t bytes);

#endif // AOTC_RT_CPU_STEPS_H
