// A driver of a made-up device that uses host memory and runs all work immediately: driver.h has
// everything the runtime needs from a driver, and nothing in it is specific to CUDA.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_entry.h"
#include "check.h"
#include "mlir_cuda_runtime.h"
#include "state.h"

// -------------------------------------------------------------------------------------------------
// The driver

#define MEMORY_BYTES 65536
#define OUT_OF_MEMORY 2

typedef struct toy_device {
  _Alignas(64) char memory[MEMORY_BYTES];
  size_t used;
  int live_memory, live_contexts, live_modules, live_streams, live_events;
  int depth; // of the context stack
  int launches;
} toy_device;
static toy_device the_device;

static const aotc_rt_result done = {.code = 0};

static bool toy_start(aotc_rt_driver_facts *out_facts) {
  *out_facts = (aotc_rt_driver_facts){.device_count = 1, .why_no_clusters = "toys have none"};
  return true;
}

static void toy_describe_failure(aotc_rt_result result, char *text, size_t bytes) {
  snprintf(text, bytes, "toy call %d failed with %d", (int)result.call, (int)result.code);
}

static bool toy_describe_device(int32_t ordinal, aotc_device *out_description) {
  *out_description = (aotc_device){
      .kind = AOTC_DEVICE_CUDA, .ordinal = ordinal, .name = "Toy", .multiprocessors = 1};
  return true;
}

// Contexts: there is one, which is only current after it was pushed.

static char the_context;

static aotc_rt_result toy_context_of(aotc_rt_stream stream, aotc_rt_context_handle *out_context) {
  (void)stream;
  *out_context = the_device.depth > 0 ? (aotc_rt_context_handle)(void *)&the_context : NULL;
  return done;
}

static aotc_rt_context *toy_context_open(aotc_rt_context_handle handle, int32_t ordinal) {
  aotc_rt_context *context = handle == NULL ? calloc(1, sizeof(*context)) : NULL;
  if (context != NULL) {
    context->handle = (aotc_rt_context_handle)(void *)&the_context;
    context->is_primary = true;
    toy_describe_device(ordinal, &context->description);
    ++the_device.live_contexts;
  }
  return context;
}

static aotc_rt_result toy_context_close(aotc_rt_context *context) {
  (void)context;
  --the_device.live_contexts;
  return done;
}

static void toy_context_empty(aotc_rt_context *context, bool is_current) {
  (void)context;
  (void)is_current;
}

static bool toy_context_exists(const aotc_rt_context *context) {
  (void)context;
  return true;
}

static aotc_rt_result toy_context_push(aotc_rt_context_handle handle) {
  (void)handle;
  ++the_device.depth;
  return done;
}

static aotc_rt_result toy_context_pop(void) {
  --the_device.depth;
  return done;
}

static aotc_rt_result toy_context_synchronize(void) {
  return done;
}

static aotc_rt_result toy_capture_mode_exchange(aotc_rt_capture_mode *mode) {
  (void)mode;
  return done;
}

// Modules: an image is a kernel's name, and the kernel adds 1 to an int.

static bool toy_module_load(aotc_rt_module *module, aotc_rt_module_handle *out_handle) {
  *out_handle = (aotc_rt_module_handle)module;
  ++the_device.live_modules;
  return true;
}

static aotc_rt_result toy_module_unload(const aotc_rt_module *module,
                                        aotc_rt_module_handle handle) {
  CHECK((const void *)handle == module);
  --the_device.live_modules;
  return done;
}

static bool toy_kernel_find(const aotc_rt_kernel *kernel, aotc_rt_module_handle handle,
                            aotc_rt_binding *binding) {
  (void)handle;
  if (strcmp(kernel->name, "increment") != 0) {
    aotc_rt_fail(AOTC_LAUNCH_FAILED, "a toy has no kernel '%s'", kernel->name);
    return false;
  }
  binding->function = (aotc_rt_function)(void *)&the_device;
  return true;
}

static aotc_rt_result toy_kernel_allow(aotc_rt_function function, aotc_rt_allowance what,
                                       int value) {
  (void)function;
  (void)what;
  (void)value;
  return done;
}

static aotc_rt_result toy_launch(const aotc_rt_binding *binding, const aotc_rt_launch *launch,
                                 aotc_rt_stream stream) {
  (void)binding;
  (void)stream;
  int *element = *(int **)launch->parameters[0];
  *element += (int)(launch->grid[0] * launch->block[0]);
  ++the_device.launches;
  return done;
}

// Streams and events

static aotc_rt_result toy_stream_create(aotc_rt_stream *out_stream) {
  *out_stream = (aotc_rt_stream)(uintptr_t)(0x100 + ++the_device.live_streams);
  return done;
}

static aotc_rt_result toy_stream_destroy(aotc_rt_stream stream) {
  (void)stream;
  --the_device.live_streams;
  return done;
}

static aotc_rt_result toy_stream_synchronize(aotc_rt_stream stream) {
  (void)stream;
  return done;
}

static aotc_rt_result toy_stream_wait_event(aotc_rt_stream stream, aotc_rt_event event) {
  (void)stream;
  (void)event;
  return done;
}

static aotc_rt_result toy_stream_is_capturing(aotc_rt_stream stream, bool *out_is_capturing) {
  (void)stream;
  *out_is_capturing = false;
  return done;
}

static aotc_rt_result toy_event_create(bool is_timed, aotc_rt_event *out_event) {
  (void)is_timed;
  *out_event = (aotc_rt_event)(uintptr_t)(0x200 + ++the_device.live_events);
  return done;
}

static aotc_rt_result toy_event_destroy(aotc_rt_event event) {
  (void)event;
  --the_device.live_events;
  return done;
}

static aotc_rt_result toy_event_record(aotc_rt_event event, aotc_rt_stream stream) {
  (void)event;
  (void)stream;
  return done;
}

static aotc_rt_result toy_event_synchronize(aotc_rt_event event) {
  (void)event;
  return done;
}

static aotc_rt_result toy_event_elapsed(aotc_rt_event start, aotc_rt_event stop,
                                        float *out_milliseconds) {
  (void)start;
  (void)stop;
  *out_milliseconds = 1.5F;
  return done;
}

// Memory: allocated consecutively.

static aotc_rt_result toy_memory_allocate(const aotc_rt_context *context, aotc_memory_kind kind,
                                          size_t bytes, aotc_rt_stream stream, void **out_pointer) {
  (void)context;
  (void)kind;
  (void)stream;
  if (bytes > MEMORY_BYTES - the_device.used) {
    return (aotc_rt_result){.code = OUT_OF_MEMORY, .call = 7, .status = AOTC_OUT_OF_MEMORY};
  }
  *out_pointer = the_device.memory + the_device.used;
  the_device.used += (bytes + 63) / 64 * 64;
  ++the_device.live_memory;
  return done;
}

static aotc_rt_result toy_memory_free(void *pointer, aotc_rt_stream stream) {
  (void)pointer;
  (void)stream;
  --the_device.live_memory;
  return done;
}

static aotc_rt_result toy_memory_is_ordered(const aotc_rt_context *context, const void *pointer,
                                            aotc_rt_stream stream, bool *out_is_ordered) {
  (void)context;
  (void)pointer;
  (void)stream;
  *out_is_ordered = false;
  return done;
}

static bool is_of_device(const void *pointer) {
  const char *start = the_device.memory;
  return (const char *)pointer >= start && (const char *)pointer < start + MEMORY_BYTES;
}

static aotc_rt_result toy_memory_locate(const void *pointer, aotc_rt_place *out_place) {
  bool is_here = is_of_device(pointer);
  *out_place = (aotc_rt_place){.is_known = is_here, .is_device = is_here, .ordinal = 0};
  return done;
}

static aotc_rt_result toy_memory_copy(void *to, const void *from, size_t bytes,
                                      aotc_rt_stream stream) {
  (void)stream;
  memmove(to, from, bytes);
  return done;
}

static aotc_rt_result toy_memory_fill(void *to, uint32_t value, size_t element_bytes, size_t count,
                                      aotc_rt_stream stream) {
  (void)stream;
  for (size_t i = 0; i < count; ++i) {
    memcpy((char *)to + i * element_bytes, &value, element_bytes);
  }
  return done;
}

static aotc_rt_result toy_memory_register(void *pointer, size_t bytes) {
  (void)pointer;
  (void)bytes;
  return done;
}

static aotc_rt_result toy_memory_unregister(void *pointer) {
  (void)pointer;
  return done;
}

static const aotc_rt_driver toy = {
    .name = "toy",
    .kind = AOTC_DEVICE_CUDA,
    .start = toy_start,
    .describe_failure = toy_describe_failure,
    .describe_device = toy_describe_device,
    .context_of = toy_context_of,
    .context_open = toy_context_open,
    .context_close = toy_context_close,
    .context_empty = toy_context_empty,
    .context_exists = toy_context_exists,
    .context_push = toy_context_push,
    .context_pop = toy_context_pop,
    .context_synchronize = toy_context_synchronize,
    .capture_mode_exchange = toy_capture_mode_exchange,
    .module_load = toy_module_load,
    .module_unload = toy_module_unload,
    .kernel_find = toy_kernel_find,
    .kernel_allow = toy_kernel_allow,
    .launch = toy_launch,
    .stream_create = toy_stream_create,
    .stream_destroy = toy_stream_destroy,
    .stream_synchronize = toy_stream_synchronize,
    .stream_wait_event = toy_stream_wait_event,
    .stream_is_capturing = toy_stream_is_capturing,
    .event_create = toy_event_create,
    .event_destroy = toy_event_destroy,
    .event_record = toy_event_record,
    .event_synchronize = toy_event_synchronize,
    .event_elapsed = toy_event_elapsed,
    .memory_allocate = toy_memory_allocate,
    .memory_free = toy_memory_free,
    .memory_is_ordered = toy_memory_is_ordered,
    .memory_locate = toy_memory_locate,
    .memory_copy = toy_memory_copy,
    .memory_fill = toy_memory_fill,
    .memory_register = toy_memory_register,
    .memory_unregister = toy_memory_unregister,
};

// -------------------------------------------------------------------------------------------------
// Programs on the device

static char image[] = "increment";
static void *the_module;

// As if device.c had found this driver instead of CUDA's.
static void start(void) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  CHECK(toy.start(&state->facts));
  state->driver = &toy;
  the_module = mgpuModuleLoad(image, sizeof(image));
  setenv("AOTC_DEVICE", "cuda", 1);
}

static void launch(void *element, const char *kernel) {
  void *parameters[] = {&element};
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(mgpuModuleGetFunction(the_module, kernel), 2, 1, 1, 3, 1, 1, 0, stream,
                   parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static void use_everything(void) {
  int host[2] = {0};
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  int *element = mgpuMemAlloc(sizeof(host), stream, 0);
  CHECK(is_of_device(element));
  mgpuMemset32(element, 10, 1, stream);
  mgpuMemset16(element + 1, 7, 2, stream);
  mgpuEventRecord(event, stream);
  mgpuStreamWaitEvent(stream, event);
  mgpuEventSynchronize(event);
  launch(element, "increment");
  mgpuMemcpy(host, element, sizeof(host), stream);
  CHECK_INT(16, host[0]);
  CHECK_INT(0x70007, host[1]);
  mgpuMemHostRegister(host, sizeof(host));
  mgpuMemHostUnregister(host);
  mgpuMemFree(element, stream);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
}

static void time_nothing(void) {
  aotc_timer *timer = NULL;
  double milliseconds = 0;
  CHECK_INT(AOTC_OK, aotc_timer_open(&timer));
  CHECK_INT(AOTC_OK, aotc_timer_start(timer, NULL));
  CHECK_INT(AOTC_OK, aotc_timer_stop(timer, NULL, &milliseconds));
  CHECK(milliseconds == 1.5);
  aotc_timer_close(timer);
}

static void program_runs_and_gives_everything_back(void) {
  start();
  use_everything();
  time_nothing();
  CHECK_INT(1, the_device.launches);
  CHECK_NO_FAILURE();
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, the_device.live_memory);
  CHECK_INT(0, the_device.live_contexts);
  CHECK_INT(0, the_device.live_modules);
  CHECK_INT(0, the_device.live_streams);
  CHECK_INT(0, the_device.live_events);
  CHECK_INT(0, the_device.depth);
}

static void increment_on_device(void **values) {
  const aotc_rt_memref *memref = values[0];
  CHECK(is_of_device(memref->aligned));
  launch(memref->aligned, "increment");
}

static void entry_gets_memory_of_the_device(void) {
  static const int64_t shape[] = {2};
  static const aotc_value argument = {
      .name = "x",
      .type = "memref<2xi32>",
      .dtype = AOTC_DTYPE_I32,
      .rank = 1,
      .shape = shape,
      .is_read = true,
      .is_written = true,
      .memory = AOTC_MEMORY_DEVICE,
  };
  static const aotc_entry entry = {
      .name = "entry", .argument_count = 1, .arguments = &argument, .call = increment_on_device};
  int host[2] = {1, 2};
  int64_t descriptor[5];
  void *values[] = {descriptor};
  start();
  aotc_entry_describe(&argument, host, NULL, descriptor);
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry, values));
  CHECK_NO_FAILURE();
  CHECK_INT(7, host[0]);
  CHECK_INT(2, host[1]);
}

static void failures_are_told_in_its_words(void) {
  start();
  CHECK(mgpuMemAlloc(MEMORY_BYTES + 1, NULL, 0) == NULL);
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "mgpuMemAlloc: toy call 7 failed with 2: 65537 bytes");
  launch(NULL, "decrement");
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "a toy has no kernel 'decrement'");
  void *stream = mgpuStreamCreate();
  mgpuLaunchClusterKernel(mgpuModuleGetFunction(the_module, "increment"), 2, 1, 1, 2, 1, 1, 1, 1, 1,
                          0, stream, NULL, NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, "toys have none: kernel 'increment'");
  CHECK_INT(0, the_device.depth);
}

static void tensor_maps_are_of_cuda(void) {
  int map[32];
  uint64_t sizes[] = {64};
  uint32_t ones[] = {1};
  start();
  mgpuTensorMapEncodeTiled(map, 0, 1, map, sizes, NULL, ones, ones, 0, 0, 0, 0);
  CHECK_FAILED(AOTC_UNSUPPORTED, "TMA descriptors");
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(program_runs_and_gives_everything_back),
      CHECK_TEST(entry_gets_memory_of_the_device),
      CHECK_TEST(failures_are_told_in_its_words),
      CHECK_TEST(tensor_maps_are_of_cuda),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
