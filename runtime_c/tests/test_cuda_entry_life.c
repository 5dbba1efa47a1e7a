// Calls of entries on a fake driver: the hook, threads, forks, and unloading.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

// -------------------------------------------------------------------------------------------------
// The hook

typedef struct heard {
  int count;
  int32_t status;
  char message[256];
} heard;

static void hear(int32_t status, const char *message, void *data) {
  heard *h = data;
  ++h->count;
  h->status = status;
  snprintf(h->message, sizeof(h->message), "%s", message);
}

static void hook_hears_each_failure_once(void) {
  heard h = {0};
  entries_load("cuda");
  aotc_error_hook_set(hear, &h);
  vector none = vector_at(NULL);
  for (int i = 1; i <= 2; ++i) {
    CHECK_INT(AOTC_INVALID_ARGUMENT, entries_call(&entry_add, none, none, none));
    CHECK_INT(i, h.count);
    CHECK_INT(AOTC_INVALID_ARGUMENT, h.status);
    CHECK_TEXT("add: argument 'A' (memref<4xf32>): the pointer is NULL", h.message);
  }
  aotc_stream_close(&h); // a failure returned to a caller no longer counts
  CHECK_INT(3, h.count);
  aotc_stream_close(&h); // the first failure stays: nothing new is recorded
  CHECK_INT(3, h.count);
  aotc_error_clear();
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_request("tpu"));
  CHECK_INT(4, h.count);
  aotc_error_hook_set(NULL, NULL);
  aotc_error_clear();
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_request("tpu"));
  CHECK_INT(4, h.count);
}

// A hook that would deadlock if the runtime's lock were held.
static void hear_and_lock(int32_t status, const char *message, void *data) {
  hear(status, message, data);
  aotc_device_is_resolved();
  int32_t count = 0;
  aotc_device_list(NULL, 0, &count);
}

static void hook_hears_what_was_tried_under_the_lock(void) {
  heard h = {0};
  scenario_driver()->device_count = 0;
  entries_load("cuda");
  aotc_error_hook_set(hear_and_lock, &h);
  float c[4] = {0};
  CHECK_INT(AOTC_NO_DEVICE, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_INT(1, h.count);
  CHECK_CONTAINS(h.message, "add: device 'cuda' cannot be used: no GPU");
  // A failed attempt is not a failure.
  CHECK_INT(AOTC_OK, aotc_device_request("auto"));
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_INT(1, h.count);
}

// -------------------------------------------------------------------------------------------------
// Threads

typedef struct worker {
  pthread_t thread;
  int number;
  int wrong;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  // Some sizes are used by one thread only, others by several.
  enum { MOST = 3000 };
  float *a = malloc(MOST * sizeof(float)), *c = malloc(MOST * sizeof(float));
  for (int round = 0; round < 200; ++round) {
    int64_t size = 4 + (round * 7919 + w->number) % (MOST - 4);
    for (int64_t i = 0; i < size; ++i) {
      a[i] = (float)(w->number * 1000 + i % 100);
      c[i] = -1;
    }
    vector va = {a, a, 0, size, 1}, vc = {c, c, 0, size, 1};
    if (entries_call(&entry_strided, va, va, vc) != AOTC_OK) {
      ++w->wrong;
    }
    for (int64_t i = 0; i + 1 < size; ++i) {
      w->wrong += c[i] != 2 * a[i];
    }
    w->wrong += c[size - 1] != -1;
  }
  free(a);
  free(c);
  return NULL;
}

static void threads_call_at_once(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  worker workers[8];
  for (int i = 0; i < 8; ++i) {
    workers[i] = (worker){.number = i};
    CHECK_INT(0, pthread_create(&workers[i].thread, NULL, work, &workers[i]));
  }
  for (int i = 0; i < 8; ++i) {
    pthread_join(workers[i].thread, NULL);
    CHECK_INT(0, workers[i].wrong);
  }
  CHECK_INT(1600, driver->launch_count);
  CHECK(driver->allocation_count <= 8 * 2 * 8); // two for each thread, in a few size classes
  CHECK_INT(1, driver->primary_references);
  CHECK_TEXT("", driver->violation);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_memory);
}

// -------------------------------------------------------------------------------------------------
// Forks

static const char forked[] = "the process was forked after it used CUDA";

typedef struct inherited {
  float *device;
  void *stream, *event;
  void *stand_in;
} inherited;

static void use_cuda_in_child(void *argument) {
  const inherited *in = argument;
  fake_driver *driver = scenario_driver();
  int calls = driver->call_count;
  float c[4] = {0};
  CHECK_INT(AOTC_UNSUPPORTED, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_CONTAINS(aotc_error_message(), "add: the process was forked after it used CUDA: ");
  vector none = vector_at(NULL);
  CHECK_INT(AOTC_INVALID_ARGUMENT, entries_call(&entry_add, none, none, none));
  vector v = vector_at(in->device);
  CHECK_INT(AOTC_UNSUPPORTED, aotc_entry_enqueue(&entry_add, (void *[]){&v, &v, &v}, in->stream));
  aotc_error_clear();
  CHECK(mgpuStreamCreate() == NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, forked);
  CHECK(mgpuMemAlloc(8, NULL, 0) == NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, forked);
  CHECK_INT(AOTC_UNSUPPORTED, aotc_device_resolve(NULL));
  CHECK_FAILED(AOTC_UNSUPPORTED, forked);
  CHECK_INT(AOTC_UNSUPPORTED, aotc_device_set(0));
  CHECK_FAILED(AOTC_UNSUPPORTED, forked);
  void *memory = NULL;
  CHECK_INT(AOTC_UNSUPPORTED, aotc_memory_allocate(AOTC_MEMORY_DEVICE, 8, &memory));
  CHECK_FAILED(AOTC_UNSUPPORTED, forked);
  CHECK_INT(AOTC_UNSUPPORTED, aotc_stream_wait(in->stream));
  CHECK_FAILED(AOTC_UNSUPPORTED, forked);
  aotc_device devices[2];
  int32_t count = 0;
  CHECK_INT(AOTC_OK, aotc_device_list(devices, 2, &count));
  CHECK_INT(1, count);
  CHECK_CONTAINS(devices[0].reason, forked);
  // Releasing has no effect.
  CHECK_INT(AOTC_OK, aotc_entry_free(in->device));
  CHECK_INT(AOTC_OK, aotc_memory_free(AOTC_MEMORY_DEVICE, in->device));
  mgpuMemFree(in->device, NULL);
  mgpuStreamDestroy(in->stream);
  mgpuEventDestroy(in->event);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK(aotc_device_is_resolved());
  mgpuModuleUnload(entries_module());
  CHECK_NO_FAILURE();
  CHECK_INT(calls, driver->call_count);
}

static void child_of_a_cuda_process_is_told(void) {
  entries_load("cuda");
  float c[4] = {0};
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  inherited in = {.device = entries_make(AOTC_MEMORY_DEVICE, 1),
                  .stream = mgpuStreamCreate(),
                  .event = mgpuEventCreate()};
  CHECK(check_in_child(use_cuda_in_child, &in));
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
}

static void list_in_child(void *unused) {
  (void)unused;
  int calls = scenario_driver()->call_count;
  float c[4] = {0};
  CHECK_INT(AOTC_UNSUPPORTED, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_CONTAINS(aotc_error_message(), "device 'cuda' cannot be used: the process was forked");
  CHECK_INT(AOTC_OK, aotc_device_request("auto"));
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_DEVICE_CPU, device.kind);
  CHECK_CONTAINS(device.reason, forked);
  CHECK_INT(calls, scenario_driver()->call_count);
}

// The driver was started, but no device was selected.
static void child_of_a_process_that_listed(void) {
  entries_load("cuda");
  int32_t count = 0;
  CHECK_INT(AOTC_OK, aotc_device_list(NULL, 0, &count));
  CHECK(check_in_child(list_in_child, NULL));
}

static void call_in_child(void *argument) {
  float *c = argument;
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK(c[0] == 8);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
}

static void child_on_the_cpu_goes_on(void) {
  entries_load("cpu");
  float c[] = {4, 0, 0, 0};
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  CHECK(check_in_child(call_in_child, c));
}

static void child_before_the_first_use_uses_cuda(void) {
  entries_load("cuda");
  float c[] = {4, 0, 0, 0};
  aotc_error_hook_set(NULL, NULL); // installs the fork handlers
  CHECK(check_in_child(call_in_child, c));
}

// -------------------------------------------------------------------------------------------------
// Unloading

static void unload_gives_everything_back(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  entries_load("cuda");
  static uint16_t elements[128][64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } memref = {elements, elements, 0, {128, 64}, {64, 1}};
  int64_t box[] = {64, 64};
  void *own = fake_context_make(0), *destroyed = fake_context_make(1);
  CHECK_INT(AOTC_OK, aotc_unload()); // with nothing to release
  for (int round = 0; round < 3; ++round) {
    CHECK(!aotc_device_is_resolved());
    float a[] = {1, 2, 3, 4}, c[4] = {0};
    for (int32_t ordinal = 0; ordinal < 2; ++ordinal) {
      CHECK_INT(AOTC_OK, aotc_device_set(ordinal));
      CHECK_INT(AOTC_OK, entries_call(&entry_managed, vector_at(a), vector_at(a), vector_at(c)));
      mgpuStreamDestroy(mgpuStreamCreate());
    }
    fake_context_push(own);
    CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(a), vector_at(a), vector_at(c)));
    fake_context_pop();
    if (round == 0) {
      fake_context_push(destroyed);
      float *there = entries_make(AOTC_MEMORY_DEVICE, 1);
      vector v = vector_at(there);
      CHECK_INT(AOTC_OK, aotc_entry_enqueue(&entry_add, (void *[]){&v, &v, &v}, NULL));
      CHECK_INT(AOTC_OK, aotc_entry_free(there));
      mgpuStreamDestroy(mgpuStreamCreate());
      fake_context_pop();
      fake_context_destroy(destroyed);
      CHECK(fake_context_make(1) == destroyed); // the address is reused
    }
    CHECK(mgpuTensorMapEncodeTiledMemref(2, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 0, 3, 0, 0,
                                         box) != NULL);
    mgpuMemHostRegister(elements, sizeof(elements));
    driver->fail_symbol = "cuMemAllocManaged";
    driver->fail_at = 1;
    driver->fail_result = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(mgpuMemAlloc(8, NULL, 1) != NULL);
    CHECK_FAILED(AOTC_OUT_OF_MEMORY, "");
    CHECK(driver->live_memory > 3 && driver->live_streams > 1);
    CHECK_INT(AOTC_OK, aotc_unload());
    CHECK_INT(0, driver->live_memory);
    CHECK_INT(0, driver->live_streams);
    CHECK_INT(0, driver->live_pools);
    CHECK_INT(0, driver->live_modules);
    CHECK_INT(0, driver->live_registrations);
    CHECK_INT(0, driver->live_events);
    CHECK_INT(0, driver->primary_references);
    CHECK_INT(0, fake_context_depth());
  }
  CHECK_NO_FAILURE();
  CHECK_TEXT("", driver->violation);
}

static void unload_chooses_anew(void) {
  entries_load("cuda");
  float c[] = {4, 0, 0, 0};
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(AOTC_OK, aotc_device_set(AOTC_CPU));
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK(the_seen.pointers[0] == c);
  CHECK_INT(1, scenario_driver()->launch_count);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(AOTC_OK, aotc_device_request(NULL));
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_INT(2, scenario_driver()->launch_count);
}

static void unload_tells_what_failed(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float c[4] = {0};
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  driver->fail_symbol = "cuMemFree_v2";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_UNKNOWN;
  CHECK_INT(AOTC_DRIVER_FAILED, aotc_unload());
  CHECK_CONTAINS(aotc_error_message(), "aotc_unload: cuMemFree failed with CUDA_ERROR_UNKNOWN");
  CHECK(!aotc_device_is_resolved());
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  driver->is_shut_down = true; // as at process exit
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_NO_FAILURE();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(hook_hears_each_failure_once),
      CHECK_TEST(hook_hears_what_was_tried_under_the_lock),
      CHECK_TEST(threads_call_at_once),
      CHECK_TEST(child_of_a_cuda_process_is_told),
      CHECK_TEST(child_of_a_process_that_listed),
      CHECK_TEST(child_on_the_cpu_goes_on),
      CHECK_TEST(child_before_the_first_use_uses_cuda),
      CHECK_TEST(unload_gives_everything_back),
      CHECK_TEST(unload_chooses_anew),
      CHECK_TEST(unload_tells_what_failed),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
