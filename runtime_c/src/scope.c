// A call's scope: the context it works in, which is made current and restored afterwards.
#include "mlir_cuda_runtime.h"
#include "state.h"

// Uses the thread's current context, unless it is on another device than the wanted one.
static bool use_current(aotc_rt_scope *scope, aotc_rt_context_handle current, bool must_be_ordinal,
                        int32_t ordinal) {
  aotc_rt_context *context = aotc_rt_context_find(scope->driver, current);
  if (context == NULL && !scope->is_release) {
    aotc_rt_lock();
    context = aotc_rt_context_of_locked(scope->driver, current);
    aotc_rt_unlock();
  }
  if (context != NULL && (!must_be_ordinal || context->description.ordinal == ordinal)) {
    scope->context = context;
    scope->is_current = true;
  }
  return context != NULL || scope->is_release;
}

static bool use_primary(aotc_rt_scope *scope, int32_t ordinal) {
  scope->context = aotc_rt_context_find_primary(ordinal);
  if (scope->context == NULL && scope->is_release) {
    // What is released belongs to a known context; no new one is created for that.
    scope->context = aotc_rt_context_find_any();
  } else if (scope->context == NULL && aotc_rt_check_ordinal(ordinal)) {
    aotc_rt_lock();
    scope->context = aotc_rt_context_primary_locked(scope->driver, ordinal);
    aotc_rt_unlock();
  }
  return scope->context != NULL;
}

// Makes the context of a caller's stream current if the thread has none.
static bool enter_context_of(aotc_rt_scope *scope, aotc_rt_stream stream,
                             aotc_rt_context_handle *out_current) {
  aotc_rt_context_handle context = NULL;
  if (stream == NULL) {
    return true;
  }
  if (!AOTC_RT_TRY(scope->driver, context_of(stream, &context),
                   "asking for the context of the caller's stream")) {
    return false;
  }
  if (context == NULL) {
    return true; // a default stream
  }
  if (!AOTC_RT_TRY(scope->driver, context_push(context),
                   "making the context of the caller's stream current")) {
    return false;
  }
  scope->is_pushed = true;
  *out_current = context;
  return true;
}

static bool find_context(aotc_rt_scope *scope, aotc_rt_stream stream) {
  const aotc_rt_state *state = &aotc_rt_state_of_process;
  int32_t ordinal = 0;
  bool has_ordinal = aotc_rt_wanted_ordinal(&state->choice, scope->thread, &ordinal);
  aotc_rt_context_handle current = NULL;
  if (!AOTC_RT_TRY_IN(scope, context_of(NULL, &current), "asking for the thread's context") ||
      (current == NULL && !enter_context_of(scope, stream, &current)) ||
      (current != NULL &&
       !use_current(scope, current,
                    !scope->is_pushed && aotc_rt_outranks_current(&state->choice, scope->thread),
                    ordinal))) {
    return false;
  }
  if (scope->context == NULL &&
      !use_primary(scope, has_ordinal ? ordinal : state->device.ordinal)) {
    return false;
  }
  scope->thread->context = scope->context;
  return true;
}

static bool begin(aotc_rt_scope *out_scope, const char *operation, bool is_release,
                  aotc_rt_stream stream) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  *out_scope = (aotc_rt_scope){.thread = thread, .is_release = is_release};
  thread->operation = operation;
  aotc_rt_phase phase = atomic_load_explicit(&state->phase, memory_order_acquire);
  if (phase == AOTC_RT_UNRESOLVED && !is_release && aotc_rt_resolve()) {
    phase = atomic_load_explicit(&state->phase, memory_order_acquire);
  }
  bool has_begun = phase == AOTC_RT_ON_CPU;
  if (phase == AOTC_RT_ON_GPU) {
    out_scope->driver = state->driver;
    if (thread->entry_context != NULL) {
      out_scope->context = thread->entry_context;
      out_scope->is_current = true;
      thread->context = thread->entry_context;
      has_begun = true;
    } else {
      has_begun = find_context(out_scope, stream);
    }
  } else if (phase == AOTC_RT_FORKED && !is_release) {
    aotc_rt_fail_forked();
  }
  if (!has_begun) {
    aotc_rt_end(out_scope);
  }
  return has_begun;
}

bool aotc_rt_begin(aotc_rt_scope *out_scope, const char *operation) {
  return begin(out_scope, operation, false, NULL);
}

bool aotc_rt_begin_on_stream(aotc_rt_scope *out_scope, const char *operation,
                             aotc_rt_stream stream) {
  return begin(out_scope, operation, false, stream);
}

bool aotc_rt_begin_unless_failed(aotc_rt_scope *out_scope, const char *operation) {
  return aotc_rt_this_thread.error.status == AOTC_OK && begin(out_scope, operation, false, NULL);
}

bool aotc_rt_begin_release(aotc_rt_scope *out_scope, const char *operation) {
  return begin(out_scope, operation, true, NULL);
}

bool aotc_rt_make_current(aotc_rt_scope *scope) {
  if (scope->driver == NULL || scope->is_current) {
    return true;
  }
  scope->is_pushed =
      AOTC_RT_TRY_IN(scope, context_push(scope->context->handle), "making %s:%d current",
                     scope->driver->name, (int)scope->context->description.ordinal);
  scope->is_current = scope->is_pushed;
  return scope->is_pushed;
}

bool aotc_rt_end(aotc_rt_scope *scope) {
  bool is_restored =
      !scope->is_pushed || AOTC_RT_TRY_IN(scope, context_pop(), "restoring the thread's context");
  scope->thread->operation = NULL;
  scope->thread->context = NULL;
  return is_restored;
}

bool aotc_rt_capture_relax(const aotc_rt_driver *driver, aotc_rt_capture_mode *out_before) {
  *out_before = AOTC_RT_CAPTURE_RELAXED;
  return AOTC_RT_TRY(driver, capture_mode_exchange(out_before), "beside captures of streams");
}

bool aotc_rt_capture_restore(const aotc_rt_driver *driver, aotc_rt_capture_mode before) {
  return AOTC_RT_TRY(driver, capture_mode_exchange(&before), "beside captures of streams");
}
