// A module of kernels written in C, for tests of the CPU device.
#ifndef AOTC_CPU_MODULE_H
#define AOTC_CPU_MODULE_H

#include <stdint.h>

#include "aotc_runtime.h"

typedef struct cpu_sizes {
  int64_t x, y, z;
} cpu_sizes;

// Registers the kernels under the name "kernels", built for sm_90, and loads their module. They run
// on `threads` threads. To be called once.
void *cpu_module_load(const aotc_cpu_kernel *kernels, uint32_t count, const char *threads);

// Launches a kernel of one pointer as lowered code does, and waits for it.
void cpu_module_launch(void *module, const char *name, cpu_sizes grid, cpu_sizes block,
                       int32_t dynamic_shared_bytes, void *argument);

#endif // AOTC_CPU_MODULE_H
