// Gives everything back, and forgets which device was chosen.
#include <stdlib.h>

#include "aotc_entry.h"
#include "cpu.h"
#include "staging.h"
#include "state.h"

// Gives back what a context holds. What cannot be given back is forgotten.
static void empty_context_locked(aotc_rt_state *state, aotc_rt_context *context) {
  const aotc_rt_driver *driver = &state->driver;
  bool is_current = false;
  if (!state->is_driver_lost && aotc_rt_context_is_alive(driver, context)) {
    CUresult result = driver->ctx_push_current(context->handle);
    // Drivers older than CUDA 12 do not tell a context that was destroyed in another way.
    is_current = result != CUDA_ERROR_INVALID_CONTEXT &&
                 aotc_rt_check_release(driver, result, AOTC_RT_CALL_ctx_push_current,
                                       "to give back what is there");
  }
  if (is_current) {
    // Kernels that were enqueued may still use what is freed here.
    aotc_rt_check_release(driver, driver->ctx_synchronize(), AOTC_RT_CALL_ctx_synchronize,
                          "before everything is given back");
    aotc_rt_registrations_unload_locked(state, driver);
  }
  const aotc_rt_driver *caller = is_current ? driver : NULL;
  aotc_rt_staging_unload(caller, context);
  aotc_rt_streams_unload(caller, context);
  aotc_rt_tensor_maps_unload(caller, context);
  if (is_current) {
    CUcontext popped = NULL;
    aotc_rt_check_release(driver, driver->ctx_pop_current(&popped), AOTC_RT_CALL_ctx_pop_current,
                          "after everything is given back");
  }
}

static void free_context_locked(aotc_rt_state *state, aotc_rt_context *context) {
  const aotc_rt_driver *driver = &state->driver;
  if (!state->is_driver_lost) {
    aotc_rt_context_destroy_pool(driver, context);
  }
  if (context->is_primary && !state->is_driver_lost && !atomic_load(&context->is_gone)) {
    aotc_rt_check_release(driver, driver->primary_ctx_release(context->device),
                          AOTC_RT_CALL_primary_ctx_release, "cuda:%d",
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
  aotc_rt_error failure = {.status = AOTC_OK};
  thread->operation = "aotc_unload";
  thread->sink = &failure;
  aotc_rt_lock();
  unload_locked(state);
  aotc_rt_unlock();
  thread->sink = NULL;
  thread->operation = NULL;
  thread->last_launch = (aotc_rt_launch_label){.kernel = ""};
  aotc_rt_cpu_unload();
  return aotc_rt_replace_failure(&failure);
}
