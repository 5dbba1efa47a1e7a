// Threads of the CPU device: with stacks for kernels, and without the program's signal handlers.
#ifndef AOTC_RT_CPU_THREAD_H
#define AOTC_RT_CPU_THREAD_H

#include <pthread.h>
#include <stdbool.h>

// Starts a thread, to be joined; false if there cannot be one.
bool aotc_rt_cpu_thread_start(pthread_t *out_thread, void *(*run)(void *), void *argument);

#endif // AOTC_RT_CPU_THREAD_H
