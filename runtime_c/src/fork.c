// Forking: the child must get usable locks, and cannot use the driver.
#include <pthread.h>

#include "cpu/cpu.h"
#include "cpu/streams.h"
#include "state.h"

static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;

// A child gets the locks in their state at the fork: no other thread may hold them then.
static void before_fork(void) {
  aotc_rt_lock();
  aotc_rt_cpu_streams_before_fork();
  aotc_rt_cpu_before_fork();
  aotc_rt_hook_before_fork();
}

static void after_fork_in_parent(void) {
  aotc_rt_hook_after_fork();
  aotc_rt_cpu_after_fork_in_parent();
  aotc_rt_cpu_streams_after_fork_in_parent();
  aotc_rt_unlock();
}

// GPU drivers do not survive a fork: their calls fail or hang in the child.
static void after_fork_in_child(void) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  state->is_driver_lost = state->is_driver_lost || state->driver != NULL;
  if (atomic_load(&state->phase) == AOTC_RT_ON_GPU) {
    atomic_store(&state->phase, AOTC_RT_FORKED);
  }
  aotc_rt_hook_after_fork();
  aotc_rt_cpu_after_fork_in_child();
  aotc_rt_cpu_streams_after_fork_in_child();
  aotc_rt_unload_after_fork_in_child();
  aotc_rt_unlock();
}

#ifdef __GLIBC__

// Like pthread_atfork, but with a handle by which the handlers can be removed. Libraries that are
// not linked with a compiler's own crtbegin do not remove theirs when they are closed, and the next
// fork would call unmapped code. Both functions are in the Linux Standard Base.
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *handle);
extern void __cxa_finalize(void *handle);
static char fork_handlers;

static void add_fork_handlers(void) {
  // If there is no memory, only a fork while another thread holds a lock is unsafe.
  (void)__register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &fork_handlers);
}

__attribute__((destructor)) static void remove_fork_handlers(void) {
  __cxa_finalize(&fork_handlers);
}

#else

// musl never unloads a library, so its handlers can stay.
static void add_fork_handlers(void) {
  (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

#endif

void aotc_rt_fork_prepare(void) {
  (void)pthread_once(&fork_handlers_once, add_fork_handlers);
}

aotc_status aotc_rt_fail_forked(void) {
  return aotc_rt_fail(AOTC_UNSUPPORTED,
                      "the process was forked after it used CUDA: its driver works in the parent "
                      "only; fork before the first use, or start a new program (exec)");
}
