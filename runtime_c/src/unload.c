// Releases everything, and resets the selected device.
#include <pthread.h>
#include <stdlib.h>

#include "aotc_entry.h"
#include "cpu/cpu.h"
#include "cpu/streams.h"
#include "graphs.h"
#include "staging.h"
#include "state.h"
#include "upload.h"
#include "weight_pages.h"

// Held during aotc_unload: stopping the threads takes several steps, for which the state's lock is
// not held, as kernels that still run may need it.
static pthread_mutex_t the_unload_lock = PTHREAD_MUTEX_INITIALIZER;

// Releases a context's objects. Those that cannot be released are forgotten.
static void empty_context_locked(aotc_rt_state *state, aotc_rt_context *context) {
  const aotc_rt_driver *driver = state->driver;
  bool is_current = !state->is_driver_lost &&
                    aotc_rt_context_enter_to_release(driver, context, "to give back what is there");
  if (is_current) {
    // Enqueued kernels may still be using what is freed here.
    AOTC_RT_TRY_RELEASE(driver, context_synchronize(), "before everything is given back");
    aotc_rt_registrations_unload_locked(state, driver);
  }
  const aotc_rt_driver *caller = is_current ? driver : NULL;
  aotc_rt_graphs_unload(caller, context);
  aotc_rt_weight_pages_unload(caller, context, NULL);
  aotc_rt_staging_unload(caller, context);
  aotc_rt_upload_unload(caller, context);
  aotc_rt_streams_unload(caller, context);
  driver->context_empty(context, is_current);
  if (is_current) {
    AOTC_RT_TRY_RELEASE(driver, context_pop(), "after everything is given back");
  }
}

static void free_context_locked(aotc_rt_state *state, aotc_rt_context *context) {
  if (!state->is_driver_lost) {
    AOTC_RT_TRY_RELEASE(state->driver, context_close(context), "%s:%d", state->driver->name,
                        (int)context->description.ordinal);
  }
  free(context);
}

static void unload_locked(aotc_rt_state *state) {
  aotc_rt_context *context = atomic_load(&state->contexts);
  for (aotc_rt_context *c = context; c != NULL; c = c->next) {
    empty_context_locked(state, c);
  }
  aotc_rt_modules_unload_locked(state);
  aotc_rt_registrations_unload_locked(state, NULL);
  aotc_rt_stand_ins_unload_locked(state);
  aotc_rt_host_unload();
  atomic_store(&state->contexts, NULL);
  while (context != NULL) {
    aotc_rt_context *next = context->next;
    free_context_locked(state, context);
    context = next;
  }
  atomic_store_explicit(&state->phase, AOTC_RT_UNRESOLVED, memory_order_release);
}

aotc_status aotc_unload(void) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (atomic_load(&state->phase) == AOTC_RT_FORKED) {
    return AOTC_OK;
  }
  pthread_mutex_lock(&the_unload_lock);
  aotc_rt_cpu_streams_stop(false);
  aotc_rt_error failure = {.status = AOTC_OK};
  thread->operation = "aotc_unload";
  thread->sink = &failure;
  aotc_rt_lock();
  struct aotc_rt_caller_memory *callers = aotc_rt_caller_memory_take_locked(state);
  unload_locked(state);
  aotc_rt_unlock();
  aotc_rt_caller_memory_unload(callers);
  thread->sink = NULL;
  thread->operation = NULL;
  thread->last_launch = (aotc_rt_launch_label){.kernel = ""};
  aotc_rt_cpu_unload();
  pthread_mutex_unlock(&the_unload_lock);
  return aotc_rt_replace_failure(&failure);
}

// The thread that held the lock is not in the child.
void aotc_rt_unload_after_fork_in_child(void) {
  pthread_mutex_init(&the_unload_lock, NULL);
}
