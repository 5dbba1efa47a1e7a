// The CPU device: describes it, runs a kernel's blocks on the cores.
#ifndef AOTC_RT_CPU_H
#define AOTC_RT_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "aotc_runtime.h"

// How many threads run kernels: AOTC_CPU_THREADS, else the CPUs that this process may use. 0, with
// the failure recorded, when AOTC_CPU_THREADS is no count.
int32_t aotc_rt_cpu_thread_count(void);

// Describes the CPU device; false, with the failure recorded.
bool aotc_rt_describe_cpu(aotc_device *out_description);

// Runs a kernel, which has a CPU form, and returns when every block is done, or one has failed and
// no other runs any more. Sizes are CUDA's and the kernel's, checked before. A failure is recorded.
aotc_status aotc_rt_cpu_launch(const aotc_cpu_kernel *kernel, void *const *parameters,
                               const int64_t grid[3], const int64_t block[3],
                               int64_t dynamic_shared_bytes, int32_t thread_count);

// Keep the worker threads right over a fork: taken before it, given back in the parent, forgotten
// in the child, which has none of them.
void aotc_rt_cpu_before_fork(void);
void aotc_rt_cpu_after_fork_in_parent(void);
void aotc_rt_cpu_after_fork_in_child(void);

// Ends the worker threads; a later launch makes new ones. No launch is under way.
void aotc_rt_cpu_unload(void);

#endif // AOTC_RT_CPU_H
