// Ranges for profilers, enabled by AOTC_NVTX=1. Otherwise the cost is one test of a flag for each
// call of an entry.
#ifndef AOTC_RT_NVTX_H
#define AOTC_RT_NVTX_H

#include <stdatomic.h>
#include <stdbool.h>

typedef enum aotc_rt_nvtx_phase {
  AOTC_RT_NVTX_UNKNOWN = 0, // the environment has not been read yet
  AOTC_RT_NVTX_OFF,         // not enabled, or there is no profiler
  AOTC_RT_NVTX_ON,
} aotc_rt_nvtx_phase;

extern _Atomic(aotc_rt_nvtx_phase) aotc_rt_nvtx_phase_of_process;

// Looks for the profiler on the first call, if AOTC_NVTX=1, and begins a range on this thread,
// which aotc_rt_nvtx_end ends; false if no range was begun.
bool aotc_rt_nvtx_begin_range(const char *name);
void aotc_rt_nvtx_end(void);

static inline bool aotc_rt_nvtx_begin(const char *name) {
  return atomic_load_explicit(&aotc_rt_nvtx_phase_of_process, memory_order_acquire) !=
             AOTC_RT_NVTX_OFF &&
         aotc_rt_nvtx_begin_range(name);
}

#endif // AOTC_RT_NVTX_H
