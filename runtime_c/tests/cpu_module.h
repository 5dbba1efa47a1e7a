// A module of kernels written in C, for tests of the CPU device.
#ifndef AOTC_CPU_MODULE_H
#define AOTC_CPU_MODULE_H

#include <pthread.h>
#include <stdint.h>

#include "aotc_runtime.h"

typedef struct cpu_sizes {
  int64_t x, y, z;
} cpu_sizes;

// Registers the kernels as module "kernels", built for sm_90. May be called only once.
void cpu_module_register(const aotc_cpu_kernel *kernels, uint32_t count);
// Loads the image used in the registration.
void *cpu_module_load_image(void);
// Registers and loads on the CPU device, with `threads` threads for kernels.
void *cpu_module_load(const aotc_cpu_kernel *kernels, uint32_t count, const char *threads);

// Launches a kernel with one pointer parameter, as lowered code does, and waits for it.
void cpu_module_launch(void *module, const char *name, cpu_sizes grid, cpu_sizes block,
                       int32_t dynamic_shared_bytes, void *argument);

// A kernel that adds 10000, 100 and 1 times the x, y and z sizes of the block to its block's
// counter (atomic_int).
void cpu_module_note_block(void *const *parameters, const aotc_cpu_block *block);
// Launches it as "note_block" with blocks of 3 x 2 x 1, and checks that each block ran once.
void cpu_module_check_coverage(void *module, int x, int y, int z);

// A kernel that records the thread that runs a block, and takes some time.
void cpu_module_note_runner(void *const *parameters, const aotc_cpu_block *block);
// The recorded threads, without duplicates.
extern pthread_t the_runners[64];
extern int the_runner_count;

#endif // AOTC_CPU_MODULE_H
