// A thread's failure: recorded once, and reported until it is cleared.
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "aotc_entry.h"
#include "state.h"
#include "weight_pages.h"

_Thread_local aotc_rt_thread aotc_rt_this_thread;

// -------------------------------------------------------------------------------------------------
// The hook

typedef struct hook {
  aotc_error_hook function;
  void *data;
} hook;

static pthread_mutex_t the_hook_lock = PTHREAD_MUTEX_INITIALIZER;
static hook the_hook;           // protected by its lock
static atomic_bool is_hook_set; // usually not

void aotc_error_hook_set(aotc_error_hook function, void *data) {
  aotc_rt_fork_prepare();
  pthread_mutex_lock(&the_hook_lock);
  the_hook = (hook){.function = function, .data = data};
  atomic_store(&is_hook_set, function != NULL);
  pthread_mutex_unlock(&the_hook_lock);
}

static void tell(const aotc_rt_error *error) {
  if (!atomic_load_explicit(&is_hook_set, memory_order_acquire)) {
    return;
  }
  pthread_mutex_lock(&the_hook_lock);
  hook set = the_hook;
  pthread_mutex_unlock(&the_hook_lock);
  if (set.function != NULL) {
    set.function((int32_t)error->status, error->message, set.data);
  }
}

void aotc_rt_tell_untold(void) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (thread->has_untold && thread->lock_depth == 0) {
    thread->has_untold = false;
    tell(&thread->error);
  }
}

void aotc_rt_hook_before_fork(void) {
  pthread_mutex_lock(&the_hook_lock);
}

void aotc_rt_hook_after_fork(void) {
  pthread_mutex_unlock(&the_hook_lock);
}

// -------------------------------------------------------------------------------------------------
// Failures

aotc_status aotc_rt_fail(aotc_status status, const char *format, ...) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_rt_error *error = thread->sink != NULL ? thread->sink : &thread->error;
  thread->latest = status;
  if (error->status != AOTC_OK) {
    return status; // the first failure is the cause of the later ones
  }

  error->status = status;
  error->message[0] = '\0';
  // A failure in a sink becomes part of another message, which already has these parts.
  if (thread->entry != NULL && error != thread->sink) {
    aotc_rt_append(error->message, sizeof(error->message), "%s: ", thread->entry);
  }
  if (thread->operation != NULL) {
    aotc_rt_append(error->message, sizeof(error->message), "%s: ", thread->operation);
  }
  size_t used = strlen(error->message);
  va_list values;
  va_start(values, format);
  int written = vsnprintf(error->message + used, sizeof(error->message) - used, format, values);
  va_end(values);
  if (written < 0) {
    error->message[used] = '\0';
    aotc_rt_append(error->message, sizeof(error->message),
                   "failed, and the message cannot be made");
  }
  if (thread->context != NULL) {
    const aotc_device *device = &thread->context->description;
    aotc_rt_append(error->message, sizeof(error->message), "; device cuda:%d (%s, sm_%d%d)",
                   (int)device->ordinal, device->name, (int)device->capability_major,
                   (int)device->capability_minor);
  }
  if (error == thread->sink) {
    return status;
  }
  if (thread->lock_depth > 0) {
    thread->has_untold = true;
  } else {
    tell(error);
  }
  return status;
}

aotc_status aotc_rt_replace_failure(const aotc_rt_error *failure) {
  if (failure->status == AOTC_OK) {
    return AOTC_OK;
  }
  aotc_error_clear();
  return aotc_rt_fail(failure->status, "%s", failure->message);
}

void aotc_rt_append(char *text, size_t bytes, const char *format, ...) {
  size_t used = strlen(text);
  va_list values;
  va_start(values, format);
  int written = vsnprintf(text + used, bytes - used, format, values);
  va_end(values);
  if (written < 0) {
    text[used] = '\0';
  }
}

static const aotc_rt_error *latest_failure(void) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_rt_weight_pages_tell(thread);
  return thread->error.status != AOTC_OK ? &thread->error : &thread->told;
}

aotc_status aotc_status_get(void) {
  return latest_failure()->status;
}

const char *aotc_error_message(void) {
  return latest_failure()->message;
}

void aotc_error_clear(void) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  thread->error.status = AOTC_OK;
  thread->error.message[0] = '\0';
  thread->told.status = AOTC_OK;
  thread->told.message[0] = '\0';
  thread->least_weights_budget = 0;
}

void aotc_error_set_aside(void) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_rt_weight_pages_tell(thread);
  thread->aside = thread->error;
  aotc_error_clear();
}

bool aotc_is_stopped(void) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_rt_weight_pages_tell(thread);
  thread->aside.status = AOTC_OK;
  return thread->error.status != AOTC_OK;
}

void aotc_error_adopt(aotc_status status, const char *message) {
  if (status != AOTC_OK) {
    aotc_rt_fail(status, "%s", message);
  }
}

// Defined in this file because generated objects refer to it weakly, which does not extract an
// archive member: a program that asks for the status has it.
void aotc_assertion_failed(const char *message) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (thread->aside.status != AOTC_OK) {
    aotc_rt_replace_failure(&thread->aside);
    thread->aside.status = AOTC_OK;
    return;
  }
  aotc_rt_fail(AOTC_ASSERTION_FAILED, "assertion failed: %s", message);
}

void aotc_allocation_failed(const char *message) {
  aotc_rt_fail(AOTC_OUT_OF_MEMORY, "%s", message);
}

const char *aotc_status_name(aotc_status status) {
  switch (status) {
  case AOTC_OK:
    return "AOTC_OK";
  case AOTC_INVALID_ARGUMENT:
    return "AOTC_INVALID_ARGUMENT";
  case AOTC_NO_DEVICE:
    return "AOTC_NO_DEVICE";
  case AOTC_NO_IMAGE:
    return "AOTC_NO_IMAGE";
  case AOTC_NO_CPU_KERNEL:
    return "AOTC_NO_CPU_KERNEL";
  case AOTC_OUT_OF_MEMORY:
    return "AOTC_OUT_OF_MEMORY";
  case AOTC_LAUNCH_FAILED:
    return "AOTC_LAUNCH_FAILED";
  case AOTC_DRIVER_FAILED:
    return "AOTC_DRIVER_FAILED";
  case AOTC_UNSUPPORTED:
    return "AOTC_UNSUPPORTED";
  case AOTC_ASSERTION_FAILED:
    return "AOTC_ASSERTION_FAILED";
  case AOTC_NO_WEIGHTS:
    return "AOTC_NO_WEIGHTS";
  }
  return "AOTC_UNKNOWN";
}
