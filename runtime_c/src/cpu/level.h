// Which instructions the processor has, beyond those that all of its architecture have.
#ifndef AOTC_RT_CPU_LEVEL_H
#define AOTC_RT_CPU_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

// On x86-64 the level of its psABI, but 1 for 2: nothing is compiled for that; then 5 and 6, as in
// aotc_runtime.h. 0 on others. The environment's AOTC_CPU_LEVEL (1 to 6) makes it lower.
int64_t aotc_rt_cpu_level(void);

// Whether AOTC_CPU_LEVEL is a level, or not set; else records the failure.
bool aotc_rt_cpu_level_is_valid(void);

#endif // AOTC_RT_CPU_LEVEL_H
