// Calls of entries on a fake driver: ownership of results, and every driver call failing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

// -------------------------------------------------------------------------------------------------
// Results

static const int64_t four[] = {4};
static const aotc_value make_arguments[] = {
    {.name = "A",
     .type = "memref<4xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 1,
     .shape = four,
     .is_read = true,
     .memory = AOTC_MEMORY_DEVICE,
     .aliases = -1},
    {.name = "n", .type = "i32", .dtype = AOTC_DTYPE_I32, .rank = -1, .aliases = -1},
};
#define OWNED(name_, memory_)                                                                      \
  {.name = (name_),                                                                                \
   .type = "memref<4xf32>",                                                                        \
   .dtype = AOTC_DTYPE_F32,                                                                        \
   .rank = 1,                                                                                      \
   .shape = four,                                                                                  \
   .memory = (memory_),                                                                            \
   .is_owned = true,                                                                               \
   .aliases = -1}
static const aotc_value make_results[] = {
    {.name = "same",
     .type = "memref<4xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 1,
     .shape = four,
     .aliases = 0},
    OWNED("device", AOTC_MEMORY_DEVICE),
    OWNED("managed", AOTC_MEMORY_MANAGED),
    OWNED("host", AOTC_MEMORY_HOST),
    OWNED("again", AOTC_MEMORY_DEVICE), // the memory of "device"
    {.name = "sum", .type = "i64", .dtype = AOTC_DTYPE_I64, .rank = -1, .aliases = -1},
    // Not declared to alias an argument, but it does.
    {.name = "chosen",
     .type = "memref<4xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 1,
     .shape = four,
     .aliases = -1},
};

static bool the_call_fails;

static void call_make(void **values) {
  const vector *a = values[0];
  vector *results[7];
  for (int i = 0; i < 7; ++i) {
    results[i] = values[2 + i];
  }
  void *device = mgpuMemAlloc(16, mgpuStreamCreate(), 0);
  void *managed = mgpuMemAlloc(16, NULL, 1);
  *results[0] = *a;
  *results[1] = (vector){device, device, 0, 4, 1};
  *results[2] = (vector){managed, managed, 0, 4, 1};
  void *host = malloc(16);
  *results[3] = (vector){host, host, 0, 4, 1};
  *results[4] = *results[1];
  *(int64_t *)values[7] = *(const int32_t *)values[1] + 1;
  *results[6] = (vector){a->allocated, (float *)a->aligned + 1, 0, 3, 1};
  if (the_call_fails) {
    aotc_assertion_failed("a is b");
  }
}

static const aotc_entry entry_make = {.name = "make",
                                      .argument_count = 2,
                                      .result_count = 7,
                                      .arguments = make_arguments,
                                      .results = make_results,
                                      .call = call_make};

typedef struct made {
  vector a;
  int32_t n;
  vector same, device, managed, host, again;
  int64_t sum;
  vector chosen;
} made;

static aotc_status call_made(made *m, float *a, bool wants_results) {
  m->a = vector_at(a);
  m->n = 41;
  void *values[] = {&m->a,    &m->n,     &m->same, &m->device, &m->managed,
                    &m->host, &m->again, &m->sum,  &m->chosen};
  for (int i = 2; i < 9 && !wants_results; ++i) {
    values[i] = NULL;
  }
  return aotc_entry_call(&entry_make, values);
}

static void results_are_the_callers(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {1, 2, 3, 4};
  made m;
  memset(&m, 0xff, sizeof(m));
  CHECK_INT(AOTC_OK, call_made(&m, a, true));
  CHECK(m.same.allocated == a && m.same.aligned == a && m.same.size == 4);
  CHECK(m.chosen.allocated == a && m.chosen.aligned == a + 1);
  CHECK_INT(FAKE_DEVICE, fake_kind_of(m.device.aligned));
  CHECK_INT(FAKE_MANAGED, fake_kind_of(m.managed.aligned));
  CHECK(m.again.allocated == m.device.allocated);
  CHECK_INT(42, m.sum);
  CHECK_INT(3, driver->live_memory); // with the buffer of A
  CHECK_INT(AOTC_OK, aotc_entry_free(m.device.allocated));
  CHECK_INT(AOTC_OK, aotc_entry_free(m.managed.allocated));
  CHECK_INT(AOTC_OK, aotc_entry_free(m.host.allocated));
  CHECK_INT(AOTC_OK, aotc_entry_free(NULL));
  CHECK_INT(1, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

static void unwanted_results_are_freed(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  made m;
  CHECK_INT(AOTC_OK, call_made(&m, a, false));
  CHECK_INT(1, driver->live_memory);
  // Only one of two with the same memory.
  vector va = vector_at(a), device;
  int32_t n = 0;
  void *values[] = {&va, &n, NULL, &device, NULL, NULL, NULL, NULL, NULL};
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry_make, values));
  CHECK_INT(2, driver->live_memory);
  CHECK_INT(FAKE_DEVICE, fake_kind_of(device.aligned));
  CHECK_INT(AOTC_OK, aotc_entry_free(device.allocated));
  CHECK_TEXT("", driver->violation);
}

static void call_same(void **values) {
  vector result = *(const vector *)values[0];
  *(float *)result.aligned = 9;
  *(vector *)values[1] = result;
}

static void call_return(void **values) {
  *(vector *)values[1] = *(const vector *)values[0];
}

// The aligned pointer may be outside of the elements' range.
static void results_have_the_callers_address(void) {
  static const int64_t dynamic[] = {AOTC_DYNAMIC};
  static const aotc_value value = {.name = "A",
                                   .type = "memref<?xf32, strided<[?], offset: ?>>",
                                   .dtype = AOTC_DTYPE_F32,
                                   .rank = 1,
                                   .shape = dynamic,
                                   .strides = dynamic,
                                   .offset = AOTC_DYNAMIC,
                                   .is_read = true,
                                   .memory = AOTC_MEMORY_DEVICE,
                                   .aliases = 0};
  static const aotc_entry entry = {.name = "return",
                                   .argument_count = 1,
                                   .result_count = 1,
                                   .arguments = &value,
                                   .results = &value,
                                   .call = call_return};
  entries_load("cuda");
  float a[8] = {0};
  vector v = {a, a, 5, 2, 1}, result;
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry, (void *[]){&v, &result}));
  CHECK(result.allocated == a && result.aligned == a && result.offset == 5);
  CHECK_INT(1, scenario_driver()->copy_count);
}

// The same descriptor may be used for an argument and a result.
static void descriptors_may_be_shared(void) {
  static const aotc_entry entry = {.name = "same",
                                   .argument_count = 1,
                                   .result_count = 1,
                                   .arguments = make_arguments,
                                   .results = make_results,
                                   .call = call_same};
  entries_load("cuda");
  float a[] = {1, 2, 3, 4};
  vector v = vector_at(a);
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry, (void *[]){&v, &v}));
  CHECK(v.allocated == a && v.aligned == a && v.size == 4);
  float *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  v = vector_at(device);
  CHECK_INT(AOTC_OK, aotc_entry_enqueue(&entry, (void *[]){&v, &v}, NULL));
  CHECK(v.allocated == device && device[0] == 9);
}

static bool is_zero(const void *memory, size_t bytes) {
  const char *at = memory;
  for (size_t i = 0; i < bytes; ++i) {
    if (at[i] != 0) {
      return false;
    }
  }
  return true;
}

static bool are_results_zero(const made *m) {
  return is_zero(&m->same, sizeof(vector)) && is_zero(&m->device, sizeof(vector)) &&
         is_zero(&m->managed, sizeof(vector)) && is_zero(&m->host, sizeof(vector)) &&
         is_zero(&m->again, sizeof(vector)) && is_zero(&m->sum, sizeof(int64_t)) &&
         is_zero(&m->chosen, sizeof(vector));
}

static void results_of_a_failed_call_are_zero(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {1, 2, 3, 4};
  made m;
  memset(&m, 0xff, sizeof(m));
  CHECK_INT(AOTC_INVALID_ARGUMENT, call_made(&m, NULL, true));
  CHECK(are_results_zero(&m));
  the_call_fails = true;
  for (int wants = 0; wants < 2; ++wants) {
    memset(&m, 0xff, sizeof(m));
    CHECK_INT(AOTC_ASSERTION_FAILED, call_made(&m, a, wants != 0));
    CHECK_TEXT("make: assertion failed: a is b", aotc_error_message());
    CHECK(wants == 0 || are_results_zero(&m));
    CHECK_INT(1, driver->live_memory);
  }
  CHECK_TEXT("", driver->violation);
  setenv("AOTC_DEVICE", "cpu", 1);
  CHECK_INT(AOTC_OK, aotc_unload());
  memset(&m, 0xff, sizeof(m));
  CHECK_INT(AOTC_ASSERTION_FAILED, call_made(&m, a, true));
  CHECK(are_results_zero(&m));
}

static void memory_of_another_gpu_is_freed_there(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  CHECK_INT(AOTC_OK, aotc_device_set(1));
  void *stream = mgpuStreamCreate();
  void *b = mgpuMemAlloc(16, stream, 0);
  CHECK_INT(AOTC_OK, aotc_entry_free(a));
  CHECK_INT(AOTC_OK, aotc_device_set(0));
  CHECK_INT(AOTC_OK, aotc_entry_free(b));
  CHECK_INT(0, driver->live_memory);
  CHECK_INT(0, fake_context_depth());
  CHECK_TEXT("", driver->violation);
}

// A successful free keeps the message of the previous call; a failing one has its own.
static void free_keeps_the_message(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1), *b = entries_make(AOTC_MEMORY_DEVICE, 1);
  vector none = vector_at(NULL);
  CHECK_INT(AOTC_INVALID_ARGUMENT, entries_call(&entry_add, none, none, none));
  CHECK_INT(AOTC_OK, aotc_entry_free(a));
  CHECK_CONTAINS(aotc_error_message(), "add: argument 'A'");
  driver->fail_symbol = "cuMemFree_v2";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_UNKNOWN;
  CHECK_INT(AOTC_DRIVER_FAILED, aotc_entry_free(b));
  CHECK_CONTAINS(aotc_error_message(), "aotc_entry_free: cuMemFree failed with");
}

// -------------------------------------------------------------------------------------------------
// Failures

static void out_of_memory_empties_the_pool(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float c[] = {1, 2, 3, 4};
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_INT(1, driver->live_memory);
  // A larger buffer: the driver has enough memory once the first one is freed.
  static float large[3][4096];
  vector v[3];
  void *values[3];
  for (int i = 0; i < 3; ++i) {
    v[i] = (vector){large[i], large[i], 0, 4096, 1};
    values[i] = &v[i];
  }
  driver->fail_symbol = "cuMemAlloc_v2";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry_strided, values));
  CHECK_INT(1, entries_count_calls(driver, 0, "cuMemFree_v2"));
  CHECK_INT(3, driver->live_memory);
  // None at all.
  driver->fail_at = 1;
  driver->fail_count = 2;
  float before = c[0];
  CHECK_INT(AOTC_OUT_OF_MEMORY, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_TEXT("add: cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2, as the test asked for): "
             "argument 'A' (memref<4xf32>): a buffer of 4096 bytes to copy to; device cuda:0 "
             "(Fake 0, sm_90)",
             aotc_error_message());
  CHECK_INT(0, driver->live_memory);
  CHECK_INT(2, driver->launch_count);
  CHECK(c[0] == before);
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK(c[0] == 2 * before);
  CHECK_TEXT("", driver->violation);
}

static void failed_call_changes_nothing(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {1, 2, 3, 4}, c[] = {5, 6, 7, 8};
  driver->fail_symbol = "cuLaunchKernel";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_INVALID_VALUE;
  CHECK_INT(AOTC_LAUNCH_FAILED,
            entries_call(&entry_managed, vector_at(a), vector_at(a), vector_at(c)));
  CHECK_CONTAINS(aotc_error_message(), "managed: mgpuLaunchKernel: cuLaunchKernel failed with");
  CHECK(a[0] == 1 && c[0] == 5);
  CHECK_INT(AOTC_OK, entries_call(&entry_managed, vector_at(a), vector_at(a), vector_at(c)));
  CHECK(a[0] == 2 && c[0] == 4);
}

typedef struct attempt {
  int result;
  int call;
  int *call_count;
} attempt;

// One call of each kind, until the first failure.
static aotc_status call_all(made *m, float *a) {
  float b[] = {10, 20, 30, 40};
  void *device = NULL;
  void *managed = NULL;
  aotc_status status = aotc_memory_allocate(AOTC_MEMORY_DEVICE, 16, &device);
  if (status == AOTC_OK) {
    status = aotc_memory_allocate(AOTC_MEMORY_MANAGED, 16, &managed);
  }
  for (int i = 0; status == AOTC_OK && i < 4; ++i) {
    ((float *)device)[i] = (float)(i + 1);
  }
  if (status == AOTC_OK) {
    status = entries_call(&entry_add, vector_at(a), vector_at(device), vector_at(managed));
  }
  if (status == AOTC_OK) {
    status = entries_call(&entry_managed, vector_at(a), vector_at(b), vector_at(a));
  }
  if (status == AOTC_OK) {
    vector v = vector_at(managed);
    void *stream = NULL;
    status = aotc_stream_open(&stream);
    if (status == AOTC_OK) {
      status = aotc_entry_enqueue(&entry_add, (void *[]){&v, &v, &v}, stream);
      aotc_stream_close(stream);
    }
  }
  if (status == AOTC_OK) {
    status = call_made(m, a, true);
  }
  return status;
}

static void free_all(made *m) {
  aotc_entry_free(m->device.allocated);
  aotc_entry_free(m->managed.allocated);
  aotc_entry_free(m->host.allocated);
}

static void run_attempt(void *argument) {
  const attempt *t = argument;
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {1, 2, 3, 4};
  made m;
  memset(&m, 0, sizeof(m));
  driver->fail_at = t->call;
  driver->fail_result = t->result;
  aotc_status status = call_all(&m, a);
  char note[128];
  snprintf(note, sizeof(note), "%s failed with %d, call %d",
           driver->failed_symbol != NULL ? driver->failed_symbol : "nothing", t->result, t->call);
  check_note(note);
  if (t->call == 0) {
    *t->call_count = driver->call_count;
    CHECK_INT(AOTC_OK, status);
  } else {
    CHECK(driver->failed_symbol != NULL);
    bool is_retried = t->result == CUDA_ERROR_OUT_OF_MEMORY && status == AOTC_OK;
    CHECK(is_retried || status != AOTC_OK);
    CHECK_INT(is_retried ? AOTC_OK : aotc_status_get(), status);
    if (!is_retried) {
      char name[64];
      snprintf(name, sizeof(name), "%s", driver->failed_symbol);
      char *version = strstr(name, "_v2");
      if (version != NULL) {
        *version = '\0';
      }
      CHECK_CONTAINS(aotc_error_message(), name);
      CHECK(are_results_zero(&m));
      CHECK(a[3] == 4);
      aotc_status expected = t->result == CUDA_ERROR_OUT_OF_MEMORY ? AOTC_OUT_OF_MEMORY : status;
      CHECK_INT(expected, status);
    }
  }
  CHECK_INT(0, fake_context_depth());
  free_all(&m);

  // Later calls succeed, and everything can be released. The two results of call_all() remain.
  driver->fail_at = 0;
  aotc_error_clear();
  int live = driver->live_memory;
  float b[] = {1, 2, 3, 4};
  CHECK_INT(AOTC_OK, call_all(&m, b));
  CHECK(b[0] == 12);
  free_all(&m);
  CHECK(driver->live_memory - live <= 2 + 4);
  CHECK_INT(AOTC_OK, aotc_unload());
  bool is_popping = driver->failed_symbol != NULL &&
                    strcmp(driver->failed_symbol, "cuThreadExchangeStreamCaptureMode") == 0;
  CHECK(driver->live_memory <= 4);
  CHECK(is_popping || driver->live_memory >= 2);
  CHECK_INT(0, driver->live_streams);
  CHECK_INT(0, driver->live_modules);
  CHECK_INT(0, driver->primary_references);
  CHECK_TEXT("", driver->violation);
  check_note(NULL);
}

static void fail_every_call(int result) {
  int *call_count =
      mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  attempt t = {.result = result, .call_count = call_count};
  CHECK(check_in_child(run_attempt, &t));
  CHECK(*call_count > 40);
  for (t.call = 1; t.call <= *call_count; ++t.call) {
    CHECK(check_in_child(run_attempt, &t));
  }
  munmap(call_count, sizeof(int));
}

static void every_call_fails_unknown(void) {
  fail_every_call(CUDA_ERROR_UNKNOWN);
}

static void every_call_fails_out_of_memory(void) {
  fail_every_call(CUDA_ERROR_OUT_OF_MEMORY);
}

static void every_call_fails_in_check_mode(void) {
  setenv("AOTC_CHECK", "1", 1);
  fail_every_call(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void run_unload_attempt(void *argument) {
  const attempt *t = argument;
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {1, 2, 3, 4};
  made m;
  CHECK_INT(AOTC_OK, call_all(&m, a));
  free_all(&m);
  int since = driver->call_count;
  driver->fail_at = t->call;
  driver->fail_result = t->result;
  aotc_status status = aotc_unload();
  if (t->call == 0) {
    *t->call_count = driver->call_count - since;
    CHECK_INT(1, entries_count_calls(driver, since, "cuStreamDestroy_v2"));
  }
  check_note(driver->failed_symbol);
  CHECK_INT(t->call == 0 ? AOTC_OK : aotc_status_get(), status);
  CHECK(t->call == 0 || status != AOTC_OK);
  CHECK(t->call == 0 || strncmp(aotc_error_message(), "aotc_unload: cu", 15) == 0);
  CHECK(!aotc_device_is_resolved());
  CHECK_INT(0, fake_context_depth());
  driver->fail_at = 0;
  aotc_error_clear();
  float b[] = {1, 2, 3, 4};
  CHECK_INT(AOTC_OK, call_all(&m, b));
  CHECK(b[0] == 12);
  free_all(&m);
  CHECK_TEXT("", driver->violation);
  check_note(NULL);
}

static void every_call_of_unload_fails(void) {
  int *call_count =
      mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  attempt t = {.result = CUDA_ERROR_UNKNOWN, .call_count = call_count};
  CHECK(check_in_child(run_unload_attempt, &t));
  CHECK(*call_count >= 8);
  for (t.call = 1; t.call <= *call_count; ++t.call) {
    CHECK(check_in_child(run_unload_attempt, &t));
  }
  munmap(call_count, sizeof(int));
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(results_are_the_callers),
      CHECK_TEST(unwanted_results_are_freed),
      CHECK_TEST(results_have_the_callers_address),
      CHECK_TEST(descriptors_may_be_shared),
      CHECK_TEST(results_of_a_failed_call_are_zero),
      CHECK_TEST(memory_of_another_gpu_is_freed_there),
      CHECK_TEST(free_keeps_the_message),
      CHECK_TEST(out_of_memory_empties_the_pool),
      CHECK_TEST(failed_call_changes_nothing),
      CHECK_TEST(every_call_fails_unknown),
      CHECK_TEST(every_call_fails_out_of_memory),
      CHECK_TEST(every_call_fails_in_check_mode),
      CHECK_TEST(every_call_of_unload_fails),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
