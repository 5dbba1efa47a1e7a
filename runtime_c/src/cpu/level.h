// Which instruction set extensions the processor has.
#ifndef AOTC_RT_CPU_LEVEL_H
#define AOTC_RT_CPU_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

// On x86-64 the level of its psABI, with 1 in place of 2, for which nothing is compiled; then 5 to
// 7, as in aotc_runtime.h. 0 on other architectures. The environment variable AOTC_CPU_LEVEL (1 to
// 7) lowers it.
int64_t aotc_rt_cpu_level(void);

// Whether this process may use the tile registers of level 7. The first call asks the system, which
// then demands a larger alternate stack (sigaltstack) of every signal handler: only a kernel that
// would use the registers calls it.
bool aotc_rt_cpu_allows_tiles(void);

// Whether AOTC_CPU_LEVEL is valid or not set; otherwise records the failure.
bool aotc_rt_cpu_level_is_valid(void);

#endif // AOTC_RT_CPU_LEVEL_H
