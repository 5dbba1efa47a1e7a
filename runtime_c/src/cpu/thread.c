// Threads of the CPU device.
#include "thread.h"

#include <signal.h>
#include <stddef.h>

// What a thread has by default may be little: 128 KiB with musl, or what `ulimit -s` says. Kernels
// keep private arrays there; the guard is wide, as a function may go past it in one step.
#define STACK_BYTES ((size_t)8 << 20)
#define GUARD_BYTES ((size_t)1 << 20)

static bool start(pthread_t *out_thread, const pthread_attr_t *attributes, void *(*run)(void *),
                  void *argument) {
  // The program's signal handlers run on the program's threads.
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
  // Some C libraries take the guard out of the stack.
  bool is_started = pthread_attr_setstacksize(&attributes, STACK_BYTES + GUARD_BYTES) == 0 &&
                    pthread_attr_setguardsize(&attributes, GUARD_BYTES) == 0 &&
                    start(out_thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return is_started;
}
