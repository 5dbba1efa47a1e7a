// Threads of the CPU device: with a stack large enough for kernels, and with signals blocked.
#ifndef AOTC_RT_CPU_THREAD_H
#define AOTC_RT_CPU_THREAD_H

#include <pthread.h>
#include <stdbool.h>

// Starts a joinable thread; false if that fails.
bool aotc_rt_cpu_thread_start(pthread_t *out_thread, void *(*run)(void *), void *argument);

#endif // AOTC_RT_CPU_THREAD_H
