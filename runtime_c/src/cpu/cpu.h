// The CPU device: describes it, and runs a kernel's blocks on the cores.
#ifndef AOTC_RT_CPU_H
#define AOTC_RT_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "aotc_runtime.h"

// The number of threads that run kernels: AOTC_CPU_THREADS, or the number of CPUs that this process
// may use. 0, with the failure recorded, if AOTC_CPU_THREADS is invalid.
int32_t aotc_rt_cpu_thread_count(void);

// Describes the CPU device; false, with the failure recorded.
bool aotc_rt_describe_cpu(aotc_device *out_description);

// Runs a kernel that has a CPU form, and returns when all blocks are done, or when one has failed
// and no other is running. The sizes are checked against CUDA's limits and the kernel's before. A
// failure is recorded.
aotc_status aotc_rt_cpu_launch(const aotc_cpu_kernel *kernel, void *const *parameters,
                               const int64_t grid[3], const int64_t block[3],
                               int64_t dynamic_shared_bytes, int32_t thread_count);

// Keep the pool consistent across a fork: its lock is taken before and released in the parent; the
// child, which has none of the worker threads, forgets them.
void aotc_rt_cpu_before_fork(void);
void aotc_rt_cpu_after_fork_in_parent(void);
void aotc_rt_cpu_after_fork_in_child(void);

// Ends the worker threads; a later launch creates new ones. No launch may be running.
void aotc_rt_cpu_unload(void);

#endif // AOTC_RT_CPU_H
