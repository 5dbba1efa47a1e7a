// Which device the program runs on: chosen once, by the first call that needs one.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_entry.h"
#include "cpu.h"
#include "mlir_cuda_runtime.h"
#include "state.h"

aotc_rt_state aotc_rt_state_of_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;

void aotc_rt_lock(void) {
  // Fails only for a mutex that is none, or that this thread holds: neither can be.
  pthread_mutex_lock(&aotc_rt_state_of_process.lock);
  ++aotc_rt_this_thread.lock_depth;
}

void aotc_rt_unlock(void) {
  --aotc_rt_this_thread.lock_depth;
  pthread_mutex_unlock(&aotc_rt_state_of_process.lock);
  aotc_rt_tell_untold();
}

// A child gets the locks as they are at the fork: nobody else may hold them then.
static void before_fork(void) {
  aotc_rt_lock();
  aotc_rt_cpu_before_fork();
  aotc_rt_hook_before_fork();
}

static void after_fork_in_parent(void) {
  aotc_rt_hook_after_fork();
  aotc_rt_cpu_after_fork_in_parent();
  aotc_rt_unlock();
}

// CUDA does not live through a fork: its calls fail in the child, or hang.
static void after_fork_in_child(void) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  state->is_driver_lost = state->is_driver_lost || state->has_driver;
  if (atomic_load(&state->phase) == AOTC_RT_ON_CUDA) {
    atomic_store(&state->phase, AOTC_RT_FORKED);
  }
  aotc_rt_hook_after_fork();
  aotc_rt_cpu_after_fork_in_child();
  aotc_rt_unlock();
}

#ifdef __GLIBC__

// pthread_atfork, but with a name for the handlers by which they can be taken back: libraries that
// are not linked with a compiler's own crtbegin do not lose theirs when they are closed, and the
// next fork would call code that is gone. Both functions are in the Linux Standard Base.
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *handle);
extern void __cxa_finalize(void *handle);
static char fork_handlers;

static void add_fork_handlers(void) {
  // Without memory for them, a fork while another thread holds a lock is not safe; nothing else.
  (void)__register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &fork_handlers);
}

__attribute__((destructor)) static void remove_fork_handlers(void) {
  __cxa_finalize(&fork_handlers);
}

#else

// musl never unloads a library, so its handlers may stay.
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

// -------------------------------------------------------------------------------------------------
// What is asked for

static bool parse_request(const char *spec, const char *source, aotc_rt_request *out_request) {
  *out_request = (aotc_rt_request){.wish = AOTC_RT_AUTO};
  if (strcmp(spec, "auto") == 0) {
    return true;
  }
  if (strcmp(spec, "cuda") == 0) {
    out_request->wish = AOTC_RT_CUDA;
    return true;
  }
  if (strcmp(spec, "cpu") == 0) {
    out_request->wish = AOTC_RT_CPU;
    return true;
  }
  // strtol would take signs and spaces as well.
  if (strncmp(spec, "cuda:", 5) == 0 && spec[5] >= '0' && spec[5] <= '9') {
    char *end = NULL;
    errno = 0;
    long ordinal = strtol(spec + 5, &end, 10);
    if (errno == 0 && *end == '\0' && ordinal <= INT32_MAX) {
      out_request->wish = AOTC_RT_CUDA_ORDINAL;
      out_request->ordinal = (int32_t)ordinal;
      return true;
    }
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%s is '%s'; expected auto, cuda, cuda:N or cpu", source,
               spec);
  return false;
}

static bool parse_environment(aotc_rt_request *out_request) {
  const char *spec = getenv("AOTC_DEVICE");
  if (spec == NULL || spec[0] == '\0') {
    *out_request = (aotc_rt_request){.wish = AOTC_RT_AUTO};
    return true;
  }
  return parse_request(spec, "AOTC_DEVICE", out_request);
}

static const char *wish_text(const aotc_rt_request *request, char *buffer, size_t bytes) {
  buffer[0] = '\0';
  switch (request->wish) {
  case AOTC_RT_AUTO:
    aotc_rt_append(buffer, bytes, "auto");
    break;
  case AOTC_RT_CUDA:
    aotc_rt_append(buffer, bytes, "cuda");
    break;
  case AOTC_RT_CUDA_ORDINAL:
    aotc_rt_append(buffer, bytes, "cuda:%d", (int)request->ordinal);
    break;
  case AOTC_RT_CPU:
    aotc_rt_append(buffer, bytes, "cpu");
    break;
  }
  return buffer;
}

// Whether what was chosen is what is now asked for.
static bool is_satisfied(const aotc_rt_state *state, const aotc_rt_request *request) {
  switch (request->wish) {
  case AOTC_RT_AUTO:
    return true;
  case AOTC_RT_CUDA:
    return state->device.kind == AOTC_DEVICE_CUDA;
  case AOTC_RT_CUDA_ORDINAL:
    return state->device.kind == AOTC_DEVICE_CUDA && state->device.ordinal == request->ordinal;
  case AOTC_RT_CPU:
    return state->device.kind == AOTC_DEVICE_CPU;
  }
  return false;
}

aotc_status aotc_device_request(const char *spec) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_this_thread.operation = "aotc_device_request";
  aotc_rt_request request;
  bool is_valid =
      spec != NULL ? parse_request(spec, "the device", &request) : parse_environment(&request);
  aotc_status status = is_valid ? AOTC_OK : AOTC_INVALID_ARGUMENT;
  if (is_valid) {
    aotc_rt_lock();
    if (atomic_load(&state->phase) == AOTC_RT_UNRESOLVED) {
      state->has_request = spec != NULL;
      state->request = request;
    } else if (!is_satisfied(state, &request)) {
      char wish[32];
      status = aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                            "'%s' comes too late: the program uses %s:%d (%s) already",
                            wish_text(&request, wish, sizeof(wish)),
                            state->device.kind == AOTC_DEVICE_CUDA ? "cuda" : "cpu",
                            (int)state->device.ordinal, state->device.name);
    }
    aotc_rt_unlock();
  }
  aotc_rt_this_thread.operation = NULL;
  return status;
}

void mgpuSetDefaultDevice(int32_t ordinal) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (thread->error.status != AOTC_OK) {
    return;
  }
  if (ordinal < 0) {
    thread->operation = "mgpuSetDefaultDevice";
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no device %d", (int)ordinal);
    thread->operation = NULL;
    return;
  }
  thread->has_default_ordinal = true;
  thread->prefers_current = false;
  thread->default_ordinal = ordinal;
  thread->entry_context = NULL; // the rest of the entry is for another device
}

// The device that is asked for by number, by the user first, else by the program.
static bool wanted_ordinal(const aotc_rt_request *request, const aotc_rt_thread *thread,
                           int32_t *out_ordinal) {
  if (request->wish == AOTC_RT_CUDA_ORDINAL) {
    *out_ordinal = request->ordinal;
    return true;
  }
  *out_ordinal = thread->default_ordinal;
  return thread->has_default_ordinal;
}

// Whether a context of another device that is current gives way to the wanted device.
static bool outranks_current(const aotc_rt_request *request, const aotc_rt_thread *thread) {
  return request->wish == AOTC_RT_CUDA_ORDINAL ||
         (thread->has_default_ordinal && !thread->prefers_current);
}

static bool check_ordinal(const aotc_rt_driver *driver, int32_t ordinal) {
  if (ordinal < driver->device_count) {
    return true;
  }
  aotc_rt_fail(AOTC_NO_DEVICE, "there is no cuda:%d; the driver has %d GPU%s, from cuda:0",
               (int)ordinal, driver->device_count, driver->device_count == 1 ? "" : "s");
  return false;
}

// -------------------------------------------------------------------------------------------------
// The choice

static bool load_driver_locked(aotc_rt_state *state) {
  if (state->is_driver_lost) {
    aotc_rt_fail_forked();
    return false;
  }
  if (!state->has_driver) {
    state->has_driver = aotc_rt_driver_load(&state->driver);
  }
  return state->has_driver;
}

// Whether the program's images load on the context.
static bool try_context_locked(const aotc_rt_driver *driver, aotc_rt_context *context,
                               bool is_current) {
  aotc_rt_this_thread.context = context;
  bool fits = is_current ||
              AOTC_RT_TRY(driver, ctx_push_current, (context->handle), "the context to load on");
  if (fits) {
    fits = aotc_rt_modules_load_all_locked(driver, context);
    if (!fits) {
      aotc_rt_modules_drop_locked(driver, context);
    }
    if (!is_current) {
      CUcontext popped = NULL;
      fits = AOTC_RT_TRY(driver, ctx_pop_current, (&popped), "after loading") && fits;
    }
  }
  aotc_rt_this_thread.context = NULL;
  return fits;
}

// Finds a GPU that the program's images load on, in the order of preference.
static aotc_rt_context *start_cuda_locked(aotc_rt_state *state, const aotc_rt_request *request) {
  const aotc_rt_thread *thread = &aotc_rt_this_thread;
  const aotc_rt_driver *driver = &state->driver;
  CUcontext current = NULL;
  if (!load_driver_locked(state) ||
      !AOTC_RT_TRY(driver, ctx_get_current, (&current), "asking for the thread's context")) {
    return NULL;
  }
  int32_t ordinal = 0;
  bool has_ordinal = wanted_ordinal(request, thread, &ordinal);
  if (has_ordinal && !check_ordinal(driver, ordinal)) {
    return NULL;
  }

  if (current != NULL) {
    aotc_rt_context *context = aotc_rt_context_of_locked(driver, current);
    if (context == NULL) {
      return NULL;
    }
    if (!outranks_current(request, thread) || context->description.ordinal == ordinal) {
      return try_context_locked(driver, context, true) ? context : NULL;
    }
  }

  int32_t first = has_ordinal ? ordinal : 0;
  int32_t end = has_ordinal ? ordinal + 1 : driver->device_count;
  for (int32_t i = first; i < end; ++i) {
    aotc_rt_context *context = aotc_rt_context_primary_locked(driver, i);
    if (context == NULL) {
      continue;
    }
    if (try_context_locked(driver, context, false)) {
      // What the GPUs before it said is no failure.
      aotc_rt_this_thread.sink->status = AOTC_OK;
      return context;
    }
    aotc_rt_context_drop_locked(driver, context);
  }
  if (end - first > 1) {
    aotc_rt_append(thread->sink->message, sizeof(thread->sink->message),
                   "; nor can any other of the %d GPUs be used", (int)(end - first));
  }
  return NULL;
}

static bool choose_cpu_locked(aotc_rt_state *state, const aotc_rt_request *request,
                              const char *reason) {
  aotc_device device;
  if (!aotc_rt_describe_cpu(&device)) {
    return false;
  }
  device.reason[0] = '\0';
  aotc_rt_append(device.reason, sizeof(device.reason), "%s", reason);
  state->device = device;
  state->choice = *request;
  atomic_store_explicit(&state->phase, AOTC_RT_ON_CPU, memory_order_release);
  return true;
}

static bool resolve_locked(aotc_rt_state *state) {
  aotc_rt_request request;
  if (state->has_request) {
    request = state->request;
  } else if (!parse_environment(&request)) {
    return false;
  }
  if (request.wish == AOTC_RT_CPU) {
    return choose_cpu_locked(state, &request, "");
  }
  const char *checks = getenv("AOTC_CHECK");
  state->checks_launches = checks != NULL && checks[0] != '\0' && strcmp(checks, "0") != 0;
  bool has_images = state->modules != NULL || state->infos != NULL;
  if (request.wish == AOTC_RT_AUTO && !has_images) {
    return choose_cpu_locked(state, &request, "the program holds no GPU code");
  }

  // Whatever goes wrong is the reason for the CPU, or part of the message.
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  const char *operation = thread->operation;
  aotc_rt_error failure = {.status = AOTC_OK};
  thread->operation = NULL;
  thread->sink = &failure;
  aotc_rt_context *context = start_cuda_locked(state, &request);
  thread->sink = NULL;
  thread->operation = operation;
  if (context != NULL) {
    state->device = context->description;
    state->choice = request;
    atomic_store_explicit(&state->phase, AOTC_RT_ON_CUDA, memory_order_release);
    return true;
  }

  if (request.wish != AOTC_RT_AUTO) {
    char wish[32];
    aotc_rt_fail(failure.status, "device '%s' cannot be used: %s",
                 wish_text(&request, wish, sizeof(wish)), failure.message);
    return false;
  }
  // Kernels without a CPU form are told apart when they are launched: then there is a name to tell.
  if (state->infos != NULL) {
    return choose_cpu_locked(state, &request, failure.message);
  }
  aotc_rt_fail(failure.status,
               "device 'auto': no GPU can be used: %s; and the CPU cannot be used: the program "
               "registered no CPU kernels",
               failure.message);
  return false;
}

static bool resolve(void) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  if (atomic_load_explicit(&state->phase, memory_order_acquire) != AOTC_RT_UNRESOLVED) {
    return true;
  }
  aotc_rt_fork_prepare();
  aotc_rt_lock();
  bool is_resolved = atomic_load(&state->phase) != AOTC_RT_UNRESOLVED || resolve_locked(state);
  aotc_rt_unlock();
  return is_resolved;
}

aotc_status aotc_device_resolve(aotc_device *out_device) {
  aotc_rt_this_thread.operation = "aotc_device_resolve";
  bool is_resolved = resolve();
  aotc_rt_this_thread.operation = NULL;
  if (!is_resolved) {
    return aotc_rt_this_thread.latest;
  }
  if (atomic_load_explicit(&aotc_rt_state_of_process.phase, memory_order_acquire) ==
      AOTC_RT_FORKED) {
    aotc_rt_this_thread.operation = "aotc_device_resolve";
    aotc_status status = aotc_rt_fail_forked();
    aotc_rt_this_thread.operation = NULL;
    return status;
  }
  if (out_device != NULL) {
    *out_device = aotc_rt_state_of_process.device;
  }
  return AOTC_OK;
}

bool aotc_device_is_resolved(void) {
  return atomic_load(&aotc_rt_state_of_process.phase) != AOTC_RT_UNRESOLVED;
}

// -------------------------------------------------------------------------------------------------
// The list

static bool list_locked(aotc_rt_state *state, aotc_device *out_devices, int32_t capacity,
                        int32_t *out_count) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  const char *operation = thread->operation;
  aotc_rt_error failure = {.status = AOTC_OK};
  thread->operation = NULL;
  thread->sink = &failure; // a missing driver is no failure here
  bool has_driver = load_driver_locked(state);
  thread->sink = NULL;
  thread->operation = operation;

  int32_t gpus = has_driver ? state->driver.device_count : 0;
  for (int32_t i = 0; i < gpus && i < capacity; ++i) {
    CUdevice device = 0;
    if (!aotc_rt_describe_gpu(&state->driver, i, &device, &out_devices[i])) {
      return false;
    }
  }
  if (gpus < capacity) {
    aotc_device *cpu = &out_devices[gpus];
    if (!aotc_rt_describe_cpu(cpu)) {
      return false;
    }
    cpu->reason[0] = '\0';
    aotc_rt_append(cpu->reason, sizeof(cpu->reason), "%s", failure.message);
  }
  *out_count = gpus + 1;
  return true;
}

aotc_status aotc_device_list(aotc_device *out_devices, int32_t capacity, int32_t *out_count) {
  aotc_rt_this_thread.operation = "aotc_device_list";
  bool is_listed = false;
  if (out_count == NULL || capacity < 0 || (out_devices == NULL && capacity > 0)) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no place for the list");
  } else {
    *out_count = 0;
    aotc_rt_fork_prepare();
    aotc_rt_lock();
    is_listed = list_locked(&aotc_rt_state_of_process, out_devices, capacity, out_count);
    aotc_rt_unlock();
  }
  aotc_rt_this_thread.operation = NULL;
  return is_listed ? AOTC_OK : aotc_rt_this_thread.latest;
}

// -------------------------------------------------------------------------------------------------
// The thread's device

static aotc_status refuse_gpu(int32_t ordinal, const char *why) {
  return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "cuda:%d cannot be used: %s", (int)ordinal, why);
}

static aotc_status check_gpu_locked(aotc_rt_state *state, int32_t ordinal) {
  aotc_rt_phase phase = atomic_load(&state->phase);
  if (phase == AOTC_RT_FORKED) {
    return aotc_rt_fail_forked();
  }
  if (phase == AOTC_RT_ON_CPU) {
    return refuse_gpu(ordinal, "the program uses the CPU already");
  }
  aotc_rt_request request = state->request;
  if (phase == AOTC_RT_UNRESOLVED && !state->has_request && !parse_environment(&request)) {
    return aotc_rt_this_thread.latest;
  }
  if (phase == AOTC_RT_UNRESOLVED && request.wish == AOTC_RT_CPU) {
    return refuse_gpu(ordinal, "the CPU was requested");
  }
  return load_driver_locked(state) && check_ordinal(&state->driver, ordinal)
             ? AOTC_OK
             : aotc_rt_this_thread.latest;
}

aotc_status aotc_device_set(int32_t ordinal) {
  aotc_error_clear();
  if (ordinal == AOTC_CPU) {
    return aotc_device_request("cpu");
  }
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  thread->operation = "aotc_device_set";
  aotc_status status = AOTC_OK;
  if (ordinal < 0) {
    status = aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                          "there is no device %d; expected a GPU's number, or -1: the CPU",
                          (int)ordinal);
  } else {
    aotc_rt_fork_prepare();
    aotc_rt_lock();
    status = check_gpu_locked(&aotc_rt_state_of_process, ordinal);
    aotc_rt_unlock();
  }
  if (status == AOTC_OK) {
    thread->has_default_ordinal = true;
    thread->prefers_current = true;
    thread->default_ordinal = ordinal;
  }
  thread->operation = NULL;
  return status;
}

// -------------------------------------------------------------------------------------------------
// Calls

// The thread's current context, unless it is on another device than the wanted one.
static bool use_current(aotc_rt_scope *scope, CUcontext current, bool must_be_ordinal,
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
    // What is to be released was made in a context that is known; a new one is not started for it.
    scope->context = aotc_rt_context_find_any();
  } else if (scope->context == NULL && check_ordinal(scope->driver, ordinal)) {
    aotc_rt_lock();
    scope->context = aotc_rt_context_primary_locked(scope->driver, ordinal);
    aotc_rt_unlock();
  }
  return scope->context != NULL;
}

// The context of a stream of the caller's becomes current, where none is. The default streams are
// of whichever is current.
static bool enter_context_of(aotc_rt_scope *scope, CUstream stream, CUcontext *out_current) {
  CUcontext context = NULL;
  if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    return true;
  }
  if (!AOTC_RT_TRY(scope->driver, stream_get_ctx, (stream, &context),
                   "asking for the context of the caller's stream") ||
      !AOTC_RT_TRY(scope->driver, ctx_push_current, (context),
                   "making the context of the caller's stream current")) {
    return false;
  }
  scope->is_pushed = true;
  *out_current = context;
  return true;
}

static bool find_context(aotc_rt_scope *scope, CUstream stream) {
  const aotc_rt_state *state = &aotc_rt_state_of_process;
  int32_t ordinal = 0;
  bool has_ordinal = wanted_ordinal(&state->choice, scope->thread, &ordinal);
  CUcontext current = NULL;
  if (!AOTC_RT_TRY_IN(scope, ctx_get_current, (&current), "asking for the thread's context") ||
      (current == NULL && !enter_context_of(scope, stream, &current)) ||
      (current != NULL &&
       !use_current(scope, current,
                    !scope->is_pushed && outranks_current(&state->choice, scope->thread),
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
                  CUstream stream) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  *out_scope = (aotc_rt_scope){.thread = thread, .is_release = is_release};
  thread->operation = operation;
  aotc_rt_phase phase = atomic_load_explicit(&state->phase, memory_order_acquire);
  if (phase == AOTC_RT_UNRESOLVED && !is_release && resolve()) {
    phase = atomic_load_explicit(&state->phase, memory_order_acquire);
  }
  bool has_begun = phase == AOTC_RT_ON_CPU;
  if (phase == AOTC_RT_ON_CUDA) {
    out_scope->driver = &state->driver;
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

bool aotc_rt_begin_on_stream(aotc_rt_scope *out_scope, const char *operation, CUstream stream) {
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
      AOTC_RT_TRY_IN(scope, ctx_push_current, (scope->context->handle), "making cuda:%d current",
                     (int)scope->context->description.ordinal);
  scope->is_current = scope->is_pushed;
  return scope->is_pushed;
}

bool aotc_rt_end(aotc_rt_scope *scope) {
  CUcontext popped = NULL;
  bool is_restored = !scope->is_pushed || AOTC_RT_TRY_IN(scope, ctx_pop_current, (&popped),
                                                         "restoring the thread's context");
  scope->thread->operation = NULL;
  scope->thread->context = NULL;
  return is_restored;
}

bool aotc_rt_capture_relax(const aotc_rt_driver *driver, CUstreamCaptureMode *out_before) {
  *out_before = CU_STREAM_CAPTURE_MODE_RELAXED;
  return AOTC_RT_TRY(driver, thread_exchange_capture_mode, (out_before),
                     "beside captures of streams");
}

bool aotc_rt_capture_restore(const aotc_rt_driver *driver, CUstreamCaptureMode before) {
  return AOTC_RT_TRY(driver, thread_exchange_capture_mode, (&before), "beside captures of streams");
}
