// The contexts in use.
#include "state.h"

int32_t aotc_rt_capability(const aotc_device *description) {
  return 10 * description->capability_major + description->capability_minor;
}

int32_t aotc_compute_capability(void) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "aotc_compute_capability")) {
    return 0;
  }
  int32_t capability = scope.context != NULL ? aotc_rt_capability(&scope.context->description) : 0;
  aotc_rt_end(&scope);
  return capability;
}

// Adds a context to the list.
static aotc_rt_context *add_locked(aotc_rt_context *context) {
  if (context != NULL) {
    context->next = atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_relaxed);
    atomic_store_explicit(&aotc_rt_state_of_process.contexts, context, memory_order_release);
  }
  return context;
}

bool aotc_rt_context_is_alive(const aotc_rt_driver *driver, aotc_rt_context *context) {
  if (atomic_load_explicit(&context->is_gone, memory_order_relaxed)) {
    return false;
  }
  if (context->is_primary || driver->context_exists(context)) {
    return true;
  }
  atomic_store_explicit(&context->is_gone, true, memory_order_relaxed);
  return false;
}

aotc_rt_context *aotc_rt_context_find(const aotc_rt_driver *driver, aotc_rt_context_handle handle) {
  aotc_rt_context *context =
      atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_acquire);
  for (; context != NULL; context = context->next) {
    if (context->handle == handle && aotc_rt_context_is_alive(driver, context)) {
      return context;
    }
  }
  return NULL;
}

aotc_rt_context *aotc_rt_context_find_primary(int32_t ordinal) {
  aotc_rt_context *context =
      atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_acquire);
  while (context != NULL && !(context->is_primary && context->description.ordinal == ordinal &&
                              !atomic_load_explicit(&context->is_gone, memory_order_relaxed))) {
    context = context->next;
  }
  return context;
}

aotc_rt_context *aotc_rt_context_find_any(void) {
  aotc_rt_context *context =
      atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_acquire);
  while (context != NULL && atomic_load_explicit(&context->is_gone, memory_order_relaxed)) {
    context = context->next;
  }
  return context;
}

aotc_rt_context *aotc_rt_context_of_locked(const aotc_rt_driver *driver,
                                           aotc_rt_context_handle current) {
  aotc_rt_context *context = aotc_rt_context_find(driver, current);
  // Another thread may have added it.
  return context != NULL ? context : add_locked(driver->context_open(current, 0));
}

aotc_rt_context *aotc_rt_context_primary_locked(const aotc_rt_driver *driver, int32_t ordinal) {
  aotc_rt_context *context = aotc_rt_context_find_primary(ordinal);
  return context != NULL ? context : add_locked(driver->context_open(NULL, ordinal));
}

void aotc_rt_context_drop_locked(const aotc_rt_driver *driver, aotc_rt_context *context) {
  atomic_store_explicit(&context->is_gone, true, memory_order_relaxed);
  AOTC_RT_TRY(driver, context_close(context), "%s:%d", driver->name,
              (int)context->description.ordinal);
}

bool aotc_rt_context_enter_to_release(const aotc_rt_driver *driver, aotc_rt_context *context,
                                      const char *why) {
  if (!aotc_rt_context_is_alive(driver, context)) {
    return false;
  }
  aotc_rt_result result = driver->context_push(context->handle);
  // Some drivers only report a destroyed context when it is used.
  return result.meaning != AOTC_RT_NO_SUCH_CONTEXT &&
         aotc_rt_check_release(driver, result, "%s", why);
}
