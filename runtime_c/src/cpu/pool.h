// The threads that run the blocks of launches, and their scratch memory.
#ifndef AOTC_RT_CPU_POOL_H
#define AOTC_RT_CPU_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"

// Runs a launch on the calling thread and at most thread_count - 1 others. Returns when none of
// them runs its blocks any more; false, with the failure recorded, if there is no memory for it.
bool aotc_rt_cpu_pool_run(aotc_rt_cpu_launched *launched, int32_t thread_count);

#endif // AOTC_RT_CPU_POOL_H
