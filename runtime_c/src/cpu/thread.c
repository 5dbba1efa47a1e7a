// Threads of the CPU device.
#include "thread.h"

#include <signal.h>
#include <stddef.h>

// The default stack can be small: 128 KiB with musl, or the value of `ulimit -s`. Kernels keep
// private arrays on it. The guard is wide because one function call may move the stack pointer past
// a small one.
#define STACK_BYTES ((size_t)8 << 20)
#define GUARD_BYTES ((size_t)1 << 20)

static bool start(pthread_t *out_thread, const pthread_attr_t *attributes, void *(*run)(void *),
                  void *argument) {
  // Signals are handled on the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
    return false;
  }
  bool is_started = pthread_create(out_thread, attributes, run, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_started;
}

bool aotc_rt_cpu_thread_start(pthread_t *out_thread, void *(*run)(void *), void *argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) {
    return false;
  }
  // Some C libraries count the guard as part of the stack.
  bool is_started = pthread_attr_setstacksize(&attributes, STACK_BYTES + GUARD_BYTES) == 0 &&
                    pthread_attr_setguardsize(&attributes, GUARD_BYTES) == 0 &&
                    start(out_thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return is_started;
}
