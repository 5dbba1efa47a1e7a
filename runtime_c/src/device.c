// The device the program runs on: selected once, by the first call that needs one.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_entry.h"
#include "cpu/cpu.h"
#include "mlir_cuda_runtime.h"
#include "state.h"
#include "trace.h"
#include "weight_pages.h"

aotc_rt_state aotc_rt_state_of_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The driver of the GPUs a program may run on.
static const aotc_rt_driver *const gpu = &aotc_rt_cuda;

void aotc_rt_lock(void) {
  // Fails only for an invalid mutex, or one that this thread holds: neither can happen.
  pthread_mutex_lock(&aotc_rt_state_of_process.lock);
  ++aotc_rt_this_thread.lock_depth;
}

void aotc_rt_unlock(void) {
  --aotc_rt_this_thread.lock_depth;
  pthread_mutex_unlock(&aotc_rt_state_of_process.lock);
  aotc_rt_tell_untold();
}

// -------------------------------------------------------------------------------------------------
// The requested device

// "cuda" and "cuda:N"
static bool parse_gpu(const char *spec, aotc_rt_request *out_request) {
  size_t length = strlen(gpu->name);
  if (strncmp(spec, gpu->name, length) != 0) {
    return false;
  }
  if (spec[length] == '\0') {
    out_request->wish = AOTC_RT_GPU;
    return true;
  }
  // strtol would also accept signs and spaces.
  const char *number = spec + length + 1;
  if (spec[length] != ':' || number[0] < '0' || number[0] > '9') {
    return false;
  }
  char *end = NULL;
  errno = 0;
  long ordinal = strtol(number, &end, 10);
  if (errno != 0 || *end != '\0' || ordinal > INT32_MAX) {
    return false;
  }
  out_request->wish = AOTC_RT_GPU_ORDINAL;
  out_request->ordinal = (int32_t)ordinal;
  return true;
}

static bool parse_request(const char *spec, const char *source, aotc_rt_request *out_request) {
  *out_request = (aotc_rt_request){.wish = AOTC_RT_AUTO};
  if (strcmp(spec, "auto") == 0) {
    return true;
  }
  if (strcmp(spec, "cpu") == 0) {
    out_request->wish = AOTC_RT_CPU;
    return true;
  }
  if (parse_gpu(spec, out_request)) {
    return true;
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%s is '%s'; expected auto, %s, %s:N or cpu", source, spec,
               gpu->name, gpu->name);
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
  case AOTC_RT_GPU:
    aotc_rt_append(buffer, bytes, "%s", gpu->name);
    break;
  case AOTC_RT_GPU_ORDINAL:
    aotc_rt_append(buffer, bytes, "%s:%d", gpu->name, (int)request->ordinal);
    break;
  case AOTC_RT_CPU:
    aotc_rt_append(buffer, bytes, "cpu");
    break;
  }
  return buffer;
}

// Whether the selected device satisfies the new request.
static bool is_satisfied(const aotc_rt_state *state, const aotc_rt_request *request) {
  switch (request->wish) {
  case AOTC_RT_AUTO:
    return true;
  case AOTC_RT_GPU:
    return state->device.kind == gpu->kind;
  case AOTC_RT_GPU_ORDINAL:
    return state->device.kind == gpu->kind && state->device.ordinal == request->ordinal;
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
                            state->device.kind == gpu->kind ? gpu->name : "cpu",
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
  thread->entry_context = NULL; // the rest of the entry runs on another device
}

bool aotc_rt_wanted_ordinal(const aotc_rt_request *request, const aotc_rt_thread *thread,
                            int32_t *out_ordinal) {
  if (request->wish == AOTC_RT_GPU_ORDINAL) {
    *out_ordinal = request->ordinal;
    return true;
  }
  *out_ordinal = thread->default_ordinal;
  return thread->has_default_ordinal;
}

bool aotc_rt_outranks_current(const aotc_rt_request *request, const aotc_rt_thread *thread) {
  return request->wish == AOTC_RT_GPU_ORDINAL ||
         (thread->has_default_ordinal && !thread->prefers_current);
}

bool aotc_rt_check_ordinal(int32_t ordinal) {
  int count = aotc_rt_state_of_process.facts.device_count;
  if (ordinal < count) {
    return true;
  }
  aotc_rt_fail(AOTC_NO_DEVICE, "there is no %s:%d; the driver has %d GPU%s, from %s:0", gpu->name,
               (int)ordinal, count, count == 1 ? "" : "s", gpu->name);
  return false;
}

// -------------------------------------------------------------------------------------------------
// Selection

static bool load_driver_locked(aotc_rt_state *state) {
  if (state->is_driver_lost) {
    aotc_rt_fail_forked();
    return false;
  }
  if (state->driver == NULL && gpu->start(&state->facts)) {
    state->driver = aotc_rt_trace_driver(gpu);
  }
  return state->driver != NULL;
}

const aotc_rt_driver *aotc_rt_driver_to_release(const aotc_rt_state *state) {
  return state->is_driver_lost ? NULL : state->driver;
}

// Whether the program's images load in the context.
static bool try_context_locked(const aotc_rt_driver *driver, aotc_rt_context *context,
                               bool is_current) {
  aotc_rt_this_thread.context = context;
  bool fits =
      is_current || AOTC_RT_TRY(driver, context_push(context->handle), "the context to load on");
  if (fits) {
    fits = aotc_rt_modules_load_all_locked(driver, context);
    if (!fits) {
      aotc_rt_modules_drop_locked(driver, context);
    }
    if (!is_current) {
      fits = AOTC_RT_TRY(driver, context_pop(), "after loading") && fits;
    }
  }
  aotc_rt_this_thread.context = NULL;
  return fits;
}

// The rank of this process among those that an MPI launcher started on this machine; -1 without a
// launcher. As set by MPICH and its derivatives, Open MPI, Slurm and PALS.
static int32_t local_rank(void) {
  static const char *const variables[] = {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                          "SLURM_LOCALID", "PALS_LOCAL_RANKID"};
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i) {
    const char *text = getenv(variables[i]);
    if (text == NULL || text[0] < '0' || text[0] > '9') {
      continue;
    }
    char *end = NULL;
    errno = 0;
    long rank = strtol(text, &end, 10);
    if (errno == 0 && *end == '\0' && rank <= INT32_MAX) {
      return (int32_t)rank;
    }
  }
  return -1;
}

// Finds the first GPU, in order of preference, that the program's images load on.
static aotc_rt_context *start_gpu_locked(aotc_rt_state *state, const aotc_rt_request *request) {
  const aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (!load_driver_locked(state)) {
    return NULL;
  }
  const aotc_rt_driver *driver = state->driver;
  aotc_rt_context_handle current = NULL;
  if (!AOTC_RT_TRY(driver, context_of(NULL, &current), "asking for the thread's context")) {
    return NULL;
  }
  int32_t ordinal = 0;
  bool has_ordinal = aotc_rt_wanted_ordinal(request, thread, &ordinal);
  if (has_ordinal && !aotc_rt_check_ordinal(ordinal)) {
    return NULL;
  }

  if (current != NULL) {
    aotc_rt_context *context = aotc_rt_context_of_locked(driver, current);
    if (context == NULL) {
      return NULL;
    }
    if (!aotc_rt_outranks_current(request, thread) || context->description.ordinal == ordinal) {
      return try_context_locked(driver, context, true) ? context : NULL;
    }
  }

  // Each process on a machine gets its own GPU, as long as there are enough.
  int32_t rank = local_rank();
  if (!has_ordinal && rank >= 0 && state->facts.device_count > 0) {
    ordinal = rank % state->facts.device_count;
    has_ordinal = true;
  }
  int32_t first = has_ordinal ? ordinal : 0;
  int32_t end = has_ordinal ? ordinal + 1 : state->facts.device_count;
  for (int32_t i = first; i < end; ++i) {
    aotc_rt_context *context = aotc_rt_context_primary_locked(driver, i);
    if (context == NULL) {
      continue;
    }
    if (try_context_locked(driver, context, false)) {
      // The failures of the GPUs tried before are ignored.
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

// Whether an environment variable is 1; *out_is_on is unchanged if the variable is not set.
static bool parse_flag(const char *variable, bool *out_is_on) {
  const char *text = getenv(variable);
  if (text == NULL || text[0] == '\0') {
    return true;
  }
  *out_is_on = strcmp(text, "0") != 0;
  if (!*out_is_on || strcmp(text, "1") == 0) {
    return true;
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%s is '%s'; expected 0 or 1", variable, text);
  return false;
}

static bool resolve_locked(aotc_rt_state *state) {
  aotc_rt_request request;
  if (state->has_request) {
    request = state->request;
  } else if (!parse_environment(&request)) {
    return false;
  }
  bool has_ranges = false; // only validated here: nvtx.c reads it itself, earlier than this
  bool wants_graphs = true;
  state->checks_launches = false;
  if (!parse_flag("AOTC_CHECK", &state->checks_launches) || !parse_flag("AOTC_NVTX", &has_ranges) ||
      !parse_flag("AOTC_GRAPHS", &wants_graphs) || !aotc_rt_weights_budget_resolve_locked(state)) {
    return false;
  }
  if (request.wish == AOTC_RT_CPU) {
    return choose_cpu_locked(state, &request, "");
  }
  bool has_images = state->modules != NULL || state->infos != NULL;
  if (request.wish == AOTC_RT_AUTO && !has_images) {
    return choose_cpu_locked(state, &request, "the program holds no GPU code");
  }

  // A failure is the reason for using the CPU, or becomes part of the message.
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  const char *operation = thread->operation;
  aotc_rt_error failure = {.status = AOTC_OK};
  thread->operation = NULL;
  thread->sink = &failure;
  aotc_rt_context *context = start_gpu_locked(state, &request);
  thread->sink = NULL;
  thread->operation = operation;
  if (context != NULL) {
    state->device = context->description;
    state->choice = request;
    // A launch that is waited for cannot be part of a graph.
    state->uses_graphs = wants_graphs && state->facts.has_graphs && !state->checks_launches;
    atomic_store_explicit(&state->phase, AOTC_RT_ON_GPU, memory_order_release);
    return true;
  }

  if (request.wish != AOTC_RT_AUTO) {
    char wish[32];
    aotc_rt_fail(failure.status, "device '%s' cannot be used: %s",
                 wish_text(&request, wish, sizeof(wish)), failure.message);
    return false;
  }
  // Kernels without a CPU form are reported when they are launched, because then the name is known.
  if (state->infos != NULL) {
    return choose_cpu_locked(state, &request, failure.message);
  }
  aotc_rt_fail(failure.status,
               "device 'auto': no GPU can be used: %s; and the CPU cannot be used: the program "
               "registered no CPU kernels",
               failure.message);
  return false;
}

bool aotc_rt_resolve(void) {
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
  bool is_resolved = aotc_rt_resolve();
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
// Listing devices

static bool list_locked(aotc_rt_state *state, aotc_device *out_devices, int32_t capacity,
                        int32_t *out_count) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  const char *operation = thread->operation;
  aotc_rt_error failure = {.status = AOTC_OK};
  thread->operation = NULL;
  thread->sink = &failure; // a missing driver is not a failure here
  bool has_driver = load_driver_locked(state);
  thread->sink = NULL;
  thread->operation = operation;

  int32_t gpus = has_driver ? state->facts.device_count : 0;
  for (int32_t i = 0; i < gpus && i < capacity; ++i) {
    if (!state->driver->describe_device(i, &out_devices[i])) {
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

int32_t aotc_default_device_get(void) {
  const aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (thread->entry_context != NULL) {
    return thread->entry_context->description.ordinal;
  }
  return thread->has_default_ordinal ? thread->default_ordinal : -1;
}

void aotc_default_device_adopt(int32_t ordinal) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  thread->has_default_ordinal = ordinal >= 0;
  thread->prefers_current = false;
  thread->default_ordinal = ordinal;
}

static aotc_status refuse_gpu(int32_t ordinal, const char *why) {
  return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "%s:%d cannot be used: %s", gpu->name, (int)ordinal,
                      why);
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
  return load_driver_locked(state) && aotc_rt_check_ordinal(ordinal) ? AOTC_OK
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
