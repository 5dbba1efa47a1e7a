// The threads of a block that wait for each other: whose turn it is.
#ifndef AOTC_RT_CPU_STEPS_H
#define AOTC_RT_CPU_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"

#define AOTC_RT_WARP_SIZE 32

// Runs a block by its kernel's step function. `states` is room for one of each thread. False when
// threads are left that wait, and none can go on.
bool aotc_rt_cpu_run_steps(const aotc_cpu_kernel *kernel, void *const *parameters,
                           const aotc_cpu_block *block, int32_t *states);

// Appends how many threads wait where, and how many have ended.
void aotc_rt_cpu_describe_stop(const aotc_cpu_kernel *kernel, const aotc_cpu_block *block,
                               const int32_t *states, char *text, size_t bytes);

#endif // AOTC_RT_CPU_STEPS_H
