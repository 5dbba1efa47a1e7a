// Ranges for profilers: AOTC_NVTX=1. Where it is not set, a call of an entry has one look at a
// flag.
#ifndef AOTC_RT_NVTX_H
#define AOTC_RT_NVTX_H

#include <stdatomic.h>
#include <stdbool.h>

typedef enum aotc_rt_nvtx_phase {
  AOTC_RT_NVTX_UNKNOWN = 0, // the environment was not read yet
  AOTC_RT_NVTX_OFF,         // not asked for, or there is no profiler
  AOTC_RT_NVTX_ON,
} aotc_rt_nvtx_phase;

extern _Atomic(aotc_rt_nvtx_phase) aotc_rt_nvtx_phase_of_process;

// Finds the profiler if AOTC_NVTX=1 and that was not done, and begins a range of this thread, which
// aotc_rt_nvtx_end ends; false where there is none to end.
bool aotc_rt_nvtx_begin_range(const char *name);
void aotc_rt_nvtx_end(void);

static inline bool aotc_rt_nvtx_begin(const char *name) {
  return atomic_load_explicit(&aotc_rt_nvtx_phase_of_process, memory_order_acquire) !=
             AOTC_RT_NVTX_OFF &&
         aotc_rt_nvtx_begin_range(name);
}

#endif // AOTC_RT_NVTX_H
