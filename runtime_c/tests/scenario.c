// Runs the scenario, and reruns it once for each of its driver calls, with that call failing.
#include "scenario.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "aotc_runtime.h"
#include "check.h"
#include "cuda/libcuda.h"
#include "mlir_cuda_runtime.h"

// -------------------------------------------------------------------------------------------------
// The fake driver's functions: looked up at run time, as nothing may link against libcuda

static void *find(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *address = library != NULL ? dlsym(library, name) : NULL;
  if (address == NULL) {
    fprintf(stderr, "the fake driver is not on LD_LIBRARY_PATH: %s\n", dlerror());
    exit(2);
  }
  return address;
}

fake_driver *scenario_driver(void) {
  fake_driver *(*get)(void) = NULL;
  void *address = find("fake_driver_get");
  memcpy(&get, &address, sizeof(get));
  return get();
}

void fake_work_late(int (*launched)(const char *kernel, void **parameters), void (*run)(int)) {
  void (*work_late)(int (*)(const char *, void **), void (*)(int)) = NULL;
  void *address = find("fake_work_late");
  memcpy(&work_late, &address, sizeof(work_late));
  work_late(launched, run);
}

int fake_context_depth(void) {
  int (*depth)(void) = NULL;
  void *address = find("fake_context_depth");
  memcpy(&depth, &address, sizeof(depth));
  return depth();
}

void *fake_context_make(int ordinal) {
  void *(*make)(int) = NULL;
  void *address = find("fake_context_make");
  memcpy(&make, &address, sizeof(make));
  return make(ordinal);
}

void fake_context_push(void *context) {
  void (*push)(void *) = NULL;
  void *address = find("fake_context_push");
  memcpy(&push, &address, sizeof(push));
  push(context);
}

void *fake_context_pop(void) {
  void *(*pop)(void) = NULL;
  void *address = find("fake_context_pop");
  memcpy(&pop, &address, sizeof(pop));
  return pop();
}

void fake_context_destroy(void *context) {
  void (*destroy)(void *) = NULL;
  void *address = find("fake_context_destroy");
  memcpy(&destroy, &address, sizeof(destroy));
  destroy(context);
}

fake_kind fake_kind_of(const void *pointer) {
  static fake_kind (*kind_of)(const void *);
  if (kind_of == NULL) {
    void *address = find("fake_kind_of");
    memcpy(&kind_of, &address, sizeof(kind_of));
  }
  return kind_of(pointer);
}

// -------------------------------------------------------------------------------------------------
// The program

static char image[] = FAKE_IMAGE("90", "add,scale");
static const aotc_cpu_kernel kernels[] = {
    {.name = "add", .why_not = "the test wants CUDA"},
    {.name = "scale", .why_not = "the test wants CUDA"},
};
static const aotc_module_info info = {
    .version = AOTC_MODULE_INFO_VERSION,
    .kernel_count = 2,
    .image = image,
    .image_bytes = sizeof(image),
    .name = "kernels",
    .built_for = "sm_90",
    .kernels = kernels,
};

// Checks that a returned pointer is NULL only after a failure.
static void *returned(void *pointer) {
  CHECK((pointer == NULL) == (aotc_status_get() != AOTC_OK));
  return pointer;
}

static void launch_and_wait(void *module, int value) {
  void *parameters[] = {&value};
  void *function = returned(mgpuModuleGetFunction(module, "add"));
  void *stream = returned(mgpuStreamCreate());
  mgpuLaunchKernel(function, 4, 2, 1, 128, 1, 1, 0, stream, parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static void launch_in_own_context(void *module, int value) {
  void *context = fake_context_make(0);
  fake_context_push(context);
  launch_and_wait(module, value);
  CHECK(fake_context_pop() == context);
}

static void use_memory(void) {
  uint32_t ones[4] = {1, 1, 1, 1};
  uint32_t back[4] = {0};
  void *stream = returned(mgpuStreamCreate());
  void *plain = returned(mgpuMemAlloc(16, NULL, 0));
  void *ordered = returned(mgpuMemAlloc(16, stream, 0));
  void *later = returned(mgpuMemAlloc(16, stream, 0));
  uint32_t *shared = mgpuMemAlloc(4, stream, 1);
  CHECK(shared != NULL); // even after a failure, because host code uses it without checking
  CHECK_INT(0, *shared);
  *shared = 5;
  mgpuMemcpy(plain, ones, sizeof(ones), NULL);
  mgpuMemset32(ordered, 7, 4, stream);
  mgpuMemset16(ordered, 9, 1, stream);
  mgpuMemset32(plain, 8, 1, NULL);
  mgpuMemcpy(back, ordered, sizeof(back), stream);
  mgpuStreamSynchronize(stream);
  if (aotc_status_get() == AOTC_OK) {
    CHECK_INT(9, back[0]);
    CHECK_INT(7, back[3]);
  }
  mgpuMemFree(plain, stream);
  mgpuMemFree(ordered, stream);
  mgpuMemFree(later, NULL);
  mgpuMemFree(shared, stream);
  mgpuStreamDestroy(stream);
}

static void use_events(void) {
  void *first = returned(mgpuStreamCreate());
  void *second = returned(mgpuStreamCreate());
  void *event = returned(mgpuEventCreate());
  mgpuEventRecord(event, first);
  mgpuStreamWaitEvent(second, event);
  mgpuEventSynchronize(event);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(second);
  mgpuStreamDestroy(first);
}

static void use_host_memory(void) {
  static float elements[4][8];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } memref = {elements, elements, 0, {4, 8}, {8, 1}};
  mgpuMemHostRegisterMemRef(2, &memref, sizeof(float));
  mgpuMemHostUnregisterMemRef(2, &memref, sizeof(float));
}

static void launch_specially(void *module, bool is_new_driver) {
  int value = 5;
  void *parameters[] = {&value};
  void *function = returned(mgpuModuleGetFunction(module, "scale"));
  void *stream = returned(mgpuStreamCreate());
  mgpuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 100 * 1024, stream, parameters, NULL, 1);
  mgpuLaunchKernelCooperative(function, 2, 1, 1, 0, 0, 0, 32, 1, 1, 0, stream, parameters, NULL);
  if (is_new_driver) {
    mgpuLaunchClusterKernel(function, 2, 1, 1, 4, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
    mgpuLaunchClusterKernel(function, 16, 1, 1, 16, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
    mgpuLaunchKernelCooperative(function, 4, 1, 1, 2, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
  }
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static void make_tensor_map(void) {
  static uint16_t elements[128][64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } memref = {elements, elements, 0, {128, 64}, {64, 1}};
  int64_t box[] = {64, 64};
  void *map = returned(
      mgpuTensorMapEncodeTiledMemref(2, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 0, 0, box));
  void *same = returned(
      mgpuTensorMapEncodeTiledMemref(2, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 0, 0, box));
  CHECK(map == same || aotc_status_get() != AOTC_OK);
}

static void make_im2col_tensor_map(void) {
  static uint16_t elements[2][64][64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[3], strides[3];
  } memref = {elements, elements, 0, {2, 64, 64}, {4096, 64, 1}};
  const int64_t box[] = {32, 64};
  const int64_t lower[] = {0};
  const int64_t upper[] = {-2};
  const int64_t steps[] = {1};
  void *map = returned(aotc_tensor_map_encode_im2col(3, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0,
                                                     3, 0, 0, box, lower, upper, steps));
  CHECK(map != NULL || aotc_status_get() != AOTC_OK);
}

void scenario_launch(void *module, const char *name) {
  int value = 3;
  void *parameters[] = {&value};
  void *function = mgpuModuleGetFunction(module, name);
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, stream, parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

void scenario_run_program(bool is_new_driver) {
  aotc_module_register(&info);
  void *module = mgpuModuleLoad(image, sizeof(image));
  CHECK(module != NULL);
  launch_in_own_context(module, 1);
  mgpuSetDefaultDevice(0);
  launch_and_wait(module, 2);
  launch_in_own_context(module, 3); // the primary context now exists, but is not current
  use_memory();
  use_events();
  use_host_memory();
  launch_specially(module, is_new_driver);
  if (is_new_driver) {
    make_tensor_map();
    make_im2col_tensor_map();
  }
  mgpuModuleUnload(module);
}

// -------------------------------------------------------------------------------------------------
// The harness

// The status is also the thread's, as nothing has failed before.
static bool is_ok(aotc_status status) {
  CHECK_INT(aotc_status_get(), status);
  return status == AOTC_OK;
}

static bool time_copy(void *stream, void *to, const void *from, uint64_t bytes) {
  aotc_timer *timer = NULL;
  if (!is_ok(aotc_timer_open(&timer))) {
    CHECK(timer == NULL);
    return false;
  }
  double milliseconds = -1;
  bool is_timed = is_ok(aotc_timer_start(timer, stream)) &&
                  is_ok(aotc_memory_copy(to, from, bytes)) &&
                  is_ok(aotc_timer_stop(timer, stream, &milliseconds));
  if (is_timed) {
    CHECK(milliseconds == 2.5);
  }
  aotc_timer_close(timer);
  return is_timed && aotc_status_get() == AOTC_OK;
}

static void use_stream(void *stream) {
  int32_t sent = 42;
  int32_t got = 0;
  void *device = NULL;
  void *managed = NULL;
  void *host = NULL;
  if (is_ok(aotc_memory_allocate(AOTC_MEMORY_DEVICE, sizeof(sent), &device)) &&
      is_ok(aotc_memory_allocate(AOTC_MEMORY_MANAGED, 0, &managed)) &&
      is_ok(aotc_memory_allocate(AOTC_MEMORY_HOST, 0, &host)) &&
      time_copy(stream, device, &sent, sizeof(sent)) && is_ok(aotc_stream_adopt(stream, false)) &&
      is_ok(aotc_memory_copy(&got, device, sizeof(got))) && is_ok(aotc_stream_wait(stream))) {
    CHECK_INT(42, got);
  }
  aotc_stream_release();
  aotc_memory_free(AOTC_MEMORY_HOST, host);
  aotc_memory_free(AOTC_MEMORY_MANAGED, managed);
  aotc_memory_free(AOTC_MEMORY_DEVICE, device);
}

void scenario_run_harness(void) {
  aotc_module_register(&info);
  void *module = mgpuModuleLoad(image, sizeof(image));
  aotc_device device;
  aotc_device devices[4];
  int32_t count = 0;
  void *stream = NULL;
  if (is_ok(aotc_device_resolve(&device)) && is_ok(aotc_device_list(devices, 4, &count)) &&
      is_ok(aotc_stream_open(&stream))) {
    CHECK_INT(AOTC_DEVICE_CUDA, device.kind);
    CHECK_TEXT("Fake 0", device.name);
    CHECK_INT(2, count);
    use_stream(stream);
  }
  aotc_stream_close(stream);
  mgpuModuleUnload(module);
}

// -------------------------------------------------------------------------------------------------
// Failing every call

static void run_both(bool is_new_driver) {
  scenario_run_program(is_new_driver);
  if (aotc_status_get() == AOTC_OK) {
    scenario_run_harness();
  }
}

static bool is_in(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)) != NULL; at += length) {
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
      return true;
    }
  }
  return false;
}

void scenario_check_symbols(bool is_new_driver, const char *but) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  run_both(is_new_driver);
  CHECK_NO_FAILURE();
  CHECK_TEXT("", driver->violation);
  CHECK_INT(is_new_driver ? 8 : 5, driver->launch_count);
  CHECK(driver->call_count < FAKE_MAX_LOG);
  static const char *const symbols[] = {
#define SYMBOL(need, member, symbol, type) symbol,
      AOTC_RT_CUDA_SYMBOLS(SYMBOL)
#undef SYMBOL
  };
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); ++i) {
    bool is_called = false;
    for (int call = 0; call < driver->call_count; ++call) {
      is_called = is_called || strcmp(driver->log[call], symbols[i]) == 0;
    }
    check_note(symbols[i]);
    CHECK_INT(!is_in(but, symbols[i]), is_called);
  }
  check_note(NULL);
}

// The status that the table in aotc_runtime.h specifies for a failed call.
static aotc_status expected_status(const char *symbol, int result) {
  if (result == CUDA_ERROR_ILLEGAL_ADDRESS) {
    return AOTC_LAUNCH_FAILED;
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    return AOTC_OUT_OF_MEMORY;
  }
  return is_in("cuModuleGetFunction cuFuncGetAttribute cuFuncSetAttribute cuLaunchKernel "
               "cuLaunchKernelEx cuLaunchCooperativeKernel",
               symbol)
             ? AOTC_LAUNCH_FAILED
             : AOTC_DRIVER_FAILED;
}

// Calls allowed after a failure: those that release, restore or query.
static const char *const calls_after_failure =
    "cuGetErrorName cuGetErrorString cuCtxGetCurrent cuCtxGetId cuCtxPushCurrent_v2 "
    "cuCtxPopCurrent_v2 cuCtxSynchronize cuStreamSynchronize cuThreadExchangeStreamCaptureMode "
    "cuDevicePrimaryCtxRelease_v2 cuMemFree_v2 cuMemFreeAsync cuMemHostUnregister "
    "cuMemPoolDestroy cuEventDestroy_v2 cuModuleUnload cuLibraryUnload cuPointerGetAttribute";
// Objects that remain after a failed release.
static const char *const releasing_calls =
    "cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxGetCurrent cuCtxGetId cuCtxSynchronize "
    "cuDevicePrimaryCtxRelease_v2 cuMemFree_v2 cuMemFreeAsync cuMemHostUnregister "
    "cuEventDestroy_v2 "
    "cuModuleUnload cuLibraryUnload cuPointerGetAttribute";

typedef struct attempt {
  bool is_new_driver;
  int result;
  int call;        // the call to fail, from 1; 0 for none
  int *call_count; // the number of calls; set by the attempt with call 0
} attempt;

static void check_failure(const fake_driver *driver, int result) {
  const char *symbol = driver->failed_symbol;
  CHECK(symbol != NULL);
  if (symbol == NULL) {
    return;
  }
  char note[128];
  snprintf(note, sizeof(note), "%s failed with %d, call %d", symbol, result,
           driver->failed_index + 1);
  check_note(note);

  // A context without an id is assumed to be a new one.
  if (aotc_status_get() == AOTC_OK) {
    CHECK_TEXT("cuCtxGetId", symbol);
    return;
  }
  char name[64];
  snprintf(name, sizeof(name), "%s failed with", symbol);
  char *version = strstr(name, "_v2");
  if (version != NULL) {
    memmove(version, version + 3, strlen(version + 3) + 1);
  }
  CHECK_TEXT(aotc_status_name(expected_status(symbol, result)),
             aotc_status_name(aotc_status_get()));
  CHECK_CONTAINS(aotc_error_message(), name);
  if (result == CUDA_ERROR_ILLEGAL_ADDRESS) {
    CHECK_CONTAINS(aotc_error_message(), "a kernel launched earlier failed while running");
  }
  for (int i = driver->failed_index + 1; i < driver->call_count; ++i) {
    if (!is_in(calls_after_failure, driver->log[i])) {
      CHECK_TEXT("", driver->log[i]);
    }
  }
}

static int live_things(const fake_driver *driver) {
  // Primary contexts, pooled streams and the slab of tensor maps are kept and not counted.
  return driver->live_memory + driver->live_events + driver->live_modules +
         driver->live_registrations;
}

static void run_attempt(void *argument) {
  const attempt *a = argument;
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  driver->fail_at = a->call;
  driver->fail_result = a->result;
  run_both(a->is_new_driver);
  if (a->call == 0) {
    *a->call_count = driver->call_count;
  } else {
    check_failure(driver, a->result);
  }

  // After clearing the failure the runtime works again, and nothing is leaked except by a failed
  // release.
  aotc_error_clear();
  driver->fail_at = 0;
  run_both(a->is_new_driver);
  CHECK_NO_FAILURE();
  CHECK_INT(0, fake_context_depth());
  CHECK_TEXT("", driver->violation);
  int slabs = a->is_new_driver ? 1 : 0;
  bool is_release = driver->failed_symbol != NULL && is_in(releasing_calls, driver->failed_symbol);
  CHECK(live_things(driver) >= slabs);
  CHECK(live_things(driver) <= slabs + (is_release ? 2 : 0)); // a timer has two events
  check_note(NULL);
}

void scenario_fail_every_call(bool is_new_driver, int result) {
  // Shared with the children; other memory they write is private.
  int *call_count =
      mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(call_count != MAP_FAILED);
  if (call_count == MAP_FAILED) {
    return;
  }
  attempt a = {.is_new_driver = is_new_driver, .result = result, .call_count = call_count};
  CHECK(check_in_child(run_attempt, &a));
  CHECK(*call_count > 100);
  for (a.call = 1; a.call <= *call_count; ++a.call) {
    CHECK(check_in_child(run_attempt, &a));
  }
  munmap(call_count, sizeof(int));
}
