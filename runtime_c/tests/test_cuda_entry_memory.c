// Calls of entries on a fake driver: the memory of results and temporaries, and its allocators.
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

static const int64_t four[] = {4};
#define VECTOR(name_)                                                                              \
  .name = (name_), .type = "memref<4xf32>", .dtype = AOTC_DTYPE_F32, .rank = 1, .shape = four,     \
  .aliases = -1
static const aotc_value grow_arguments[] = {
    {VECTOR("A"), .is_read = true, .memory = AOTC_MEMORY_DEVICE},
    {VECTOR("B"), .is_read = true, .memory = AOTC_MEMORY_DEVICE},
};
static const aotc_value grow_results[] = {
    {VECTOR("made"), .memory = AOTC_MEMORY_MANAGED, .is_owned = true},
};

static const void *the_temporaries[2];
static uint64_t the_temporary_bytes = 1000;
static bool the_call_fails;

// Two consecutive temporaries, and a result that host code does not touch.
static void call_grow(void **values) {
  void *stream = mgpuStreamCreate();
  void *first = mgpuMemAlloc(the_temporary_bytes, stream, 0);
  aotc_result_prepare();
  void *made = mgpuMemAlloc(16, NULL, 1);
  void *second = mgpuMemAlloc(16, stream, 0);
  the_temporaries[0] = first;
  the_temporaries[1] = second;
  mgpuMemFree(first, stream);
  mgpuMemFree(second, stream);
  *(vector *)values[2] = (vector){made, made, 0, 4, 1};
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
  if (the_call_fails) {
    aotc_assertion_failed("a is b");
  }
}

static const aotc_entry entry_grow = {.name = "grow",
                                      .argument_count = 2,
                                      .result_count = 1,
                                      .arguments = grow_arguments,
                                      .results = grow_results,
                                      .call = call_grow};

static aotc_status grow(void *a, void *b, vector *out_made) {
  vector first = vector_at(a), second = vector_at(b);
  return aotc_entry_call(&entry_grow, (void *[]){&first, &second, out_made});
}

static aotc_status grow_on(void *stream, void *a, vector *out_made) {
  vector given = vector_at(a);
  return aotc_entry_enqueue(&entry_grow, (void *[]){&given, &given, out_made}, stream);
}

static void *open_stream(void) {
  void *stream = NULL;
  CHECK_INT(AOTC_OK, aotc_stream_open(&stream));
  return stream;
}

static void results_are_where_the_arguments_are(void) {
  entries_load("cuda");
  float host[] = {1, 2, 3, 4};
  void *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  void *managed = entries_make(AOTC_MEMORY_MANAGED, 1);
  const struct {
    void *a, *b;
    fake_kind kind;
  } cases[] = {
      {device, device, FAKE_DEVICE},    {device, managed, FAKE_DEVICE}, {host, host, FAKE_MANAGED},
      {managed, managed, FAKE_MANAGED}, {device, host, FAKE_MANAGED},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    vector made;
    CHECK_INT(AOTC_OK, grow(cases[i].a, cases[i].b, &made));
    CHECK_INT(cases[i].kind, fake_kind_of(made.allocated));
    CHECK_INT(AOTC_OK, aotc_entry_free(made.allocated));
  }
  vector made;
  CHECK_INT(AOTC_OK, grow_on(NULL, managed, &made));
  CHECK_INT(FAKE_DEVICE, fake_kind_of(made.allocated));
  CHECK_INT(AOTC_OK, aotc_entry_free_async(made.allocated, NULL));
  aotc_memory_free(AOTC_MEMORY_DEVICE, device);
  aotc_memory_free(AOTC_MEMORY_MANAGED, managed);
  CHECK_INT(1, scenario_driver()->live_memory); // the buffer that `host` was copied to
  CHECK_TEXT("", scenario_driver()->violation);
}

// Only the announced result is in device memory; others are for host code.
static void announcement_is_for_one_allocation(void) {
  entries_load("cuda");
  aotc_result_prepare();
  void *unordered = mgpuMemAlloc(16, NULL, 1); // outside of an entry
  CHECK_INT(FAKE_MANAGED, fake_kind_of(unordered));
  mgpuMemFree(unordered, NULL);
}

static void enqueued_calls_wait_for_nothing(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  void *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  void *stream = open_stream();
  vector made;
  for (int i = 0; i < 4; ++i) {
    driver->is_capturing = i == 1;
    the_call_fails = i == 2;
    int since = driver->call_count;
    CHECK_INT(i == 2 ? AOTC_ASSERTION_FAILED : AOTC_OK,
              grow_on(stream, device, i == 3 ? NULL : &made));
    if (i < 2) {
      CHECK_INT(AOTC_OK, aotc_entry_free_async(made.allocated, stream));
    }
    CHECK_INT(3, entries_count_calls(driver, since, "cuMemAllocFromPoolAsync"));
    CHECK_INT(3, entries_count_calls(driver, since, "cuMemFreeAsync"));
    CHECK_INT(0, entries_count_calls(driver, since, "cuMemAllocManaged"));
    CHECK_INT(0, entries_count_calls(driver, since, "cuStreamSynchronize"));
    CHECK_INT(0, entries_count_calls(driver, since, "cuCtxSynchronize"));
  }
  CHECK_INT(1, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

// -------------------------------------------------------------------------------------------------
// Allocators

typedef struct allocator {
  int live;
  int released;
  bool is_empty;
  uint64_t bytes; // in the last call of either function
  int32_t device;
  void *stream;
  void *memory[8];
} allocator;

static void *allocate(uint64_t bytes, int32_t device, void *stream, void *data) {
  allocator *of = data;
  of->bytes = bytes;
  of->device = device;
  of->stream = stream;
  return of->is_empty ? NULL : of->memory[of->live++];
}

static void release(void *pointer, uint64_t bytes, int32_t device, void *stream, void *data) {
  allocator *of = data;
  CHECK(pointer == of->memory[0] || pointer == of->memory[1] || pointer == of->memory[2] ||
        pointer == of->memory[3]);
  of->bytes = bytes;
  of->device = device;
  of->stream = stream;
  ++of->released;
}

static void start(allocator *of) {
  for (int i = 0; i < 3; ++i) {
    of->memory[i] = entries_make(AOTC_MEMORY_DEVICE, 1);
  }
  CHECK_INT(AOTC_OK, aotc_allocator_set(allocate, release, of));
}

static void misaligned_memory_is_refused(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  void *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  allocator of = {.live = 0};
  start(&of);
  of.memory[3] = (char *)of.memory[0] + 128;
  of.live = 3;
  vector made;
  CHECK_INT(AOTC_INVALID_ARGUMENT, grow(device, device, &made));
  CHECK(strstr(aotc_error_message(), "which is not aligned to 256 bytes") != NULL);
  CHECK_INT(1, of.released);
  CHECK(made.allocated == NULL);
  CHECK_INT(AOTC_OK, aotc_allocator_set(NULL, NULL, NULL));
  CHECK_TEXT("", driver->violation);
}

static void memory_is_the_callers_allocators(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  void *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  void *stream = open_stream();
  allocator of = {.live = 0};
  start(&of);
  int live = driver->live_memory, since = driver->call_count;
  vector made;
  CHECK_INT(AOTC_OK, grow_on(stream, device, &made));
  CHECK_INT(3, of.live);
  CHECK_INT(2, of.released);
  CHECK(of.stream == stream && of.bytes == 16 && of.device == 0);
  CHECK(the_temporaries[0] == of.memory[0] && made.allocated == of.memory[1]);
  CHECK_INT(AOTC_OK, aotc_entry_free_async(made.allocated, NULL));
  CHECK_INT(3, of.released);
  CHECK(of.stream == CU_STREAM_LEGACY);

  of.live = 0;
  CHECK_INT(AOTC_OK, grow(device, device, &made));
  CHECK(of.stream == CU_STREAM_PER_THREAD);
  CHECK_INT(AOTC_OK, aotc_entry_free(made.allocated));
  CHECK_INT(6, of.released);
  CHECK(of.stream == NULL);
  CHECK_INT(0, entries_count_calls(driver, since, "cuMemAllocFromPoolAsync"));
  CHECK_INT(0, entries_count_calls(driver, since, "cuCtxSynchronize"));

  of.is_empty = true;
  CHECK_INT(AOTC_OUT_OF_MEMORY, grow(device, device, &made));
  CHECK_TEXT("grow: mgpuMemAlloc: the caller's allocator has no 1000 bytes; device cuda:0 "
             "(Fake 0, sm_90)",
             aotc_error_message());
  CHECK(made.allocated == NULL);
  CHECK_INT(live, driver->live_memory);

  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_allocator_set(allocate, NULL, NULL));
  aotc_error_clear();
  CHECK_INT(AOTC_OK, aotc_allocator_set(NULL, NULL, NULL));
  CHECK_INT(AOTC_OK, grow(device, device, &made));
  CHECK_INT(live + 1, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

static void unload_returns_the_callers_memory(void) {
  entries_load("cuda");
  allocator of = {.live = 0};
  start(&of);
  vector made;
  CHECK_INT(AOTC_OK, grow_on(NULL, entries_make(AOTC_MEMORY_DEVICE, 1), &made));
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(3, of.released);
}

static void workspace_has_the_temporaries(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  void *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  void *space = NULL;
  CHECK_INT(AOTC_OK, aotc_memory_allocate(AOTC_MEMORY_DEVICE, 2048, &space));
  CHECK_INT(AOTC_OK, aotc_workspace_set(space, 1040));
  vector made;
  for (int i = 0; i < 2; ++i) {
    int live = driver->live_memory;
    CHECK_INT(AOTC_OK, grow(device, device, &made));
    CHECK(the_temporaries[0] == space && the_temporaries[1] == (char *)space + 1024);
    CHECK_INT(live + 1, driver->live_memory);
    CHECK(made.allocated < space || (char *)made.allocated >= (char *)space + 2048);
  }
  the_temporary_bytes = 1041; // does not fit: allocated from the pool
  CHECK_INT(AOTC_OK, grow(device, device, &made));
  CHECK(the_temporaries[0] != space && the_temporaries[1] == space);

  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_workspace_set((char *)space + 16, 1024));
  aotc_error_clear();
  CHECK_INT(AOTC_OK, aotc_workspace_set(NULL, 1024));
  CHECK_INT(AOTC_OK, grow(device, device, &made));
  CHECK(the_temporaries[1] != space);
  CHECK_TEXT("", driver->violation);
}

static void cpu_device_uses_none_of_it(void) {
  entries_load("cpu");
  allocator of = {.live = 0};
  CHECK_INT(AOTC_OK, aotc_allocator_set(allocate, release, &of));
  float a[] = {1, 2, 3, 4};
  vector made;
  CHECK_INT(AOTC_OK, grow_on(NULL, a, &made));
  CHECK_INT(0, of.live);
  ((float *)made.aligned)[3] = 4;
  CHECK_INT(AOTC_OK, aotc_entry_free_async(made.allocated, NULL));
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(results_are_where_the_arguments_are),
      CHECK_TEST(announcement_is_for_one_allocation),
      CHECK_TEST(enqueued_calls_wait_for_nothing),
      CHECK_TEST(memory_is_the_callers_allocators),
      CHECK_TEST(misaligned_memory_is_refused),
      CHECK_TEST(unload_returns_the_callers_memory),
      CHECK_TEST(workspace_has_the_temporaries),
      CHECK_TEST(cpu_device_uses_none_of_it),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
