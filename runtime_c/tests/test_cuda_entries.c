// Calls of entries on a fake driver: where their pointers may be, and what is copied for that.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

// add() wrote all but the last element.
static void check_sum(const float *c, float first, float last) {
  for (int i = 0; i < 3; ++i) {
    CHECK(c[i] == first * (float)(i + 1));
  }
  CHECK(c[3] == last);
}

static void check_kinds(fake_kind a, fake_kind b, fake_kind c) {
  CHECK_INT(a, the_seen.kinds[0]);
  CHECK_INT(b, the_seen.kinds[1]);
  CHECK_INT(c, the_seen.kinds[2]);
}

// -------------------------------------------------------------------------------------------------
// Where pointers may be

static void device_pointers_are_used_in_place(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1), *b = entries_make(AOTC_MEMORY_DEVICE, 10);
  float *c = entries_make(AOTC_MEMORY_DEVICE, 0);
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(a), vector_at(b), vector_at(c)));
  check_sum(c, 11, 0);
  CHECK(the_seen.pointers[0] == a && the_seen.pointers[1] == b && the_seen.pointers[2] == c);
  CHECK_INT(0, driver->copy_count);
  CHECK_INT(3, driver->allocation_count);
  CHECK(driver->last_launch.stream == (void *)CU_STREAM_PER_THREAD);

  // One question for each pointer, and one wait; in a context that is current, nothing else.
  void *context = fake_context_make(0);
  fake_context_push(context);
  float *d = entries_make(AOTC_MEMORY_DEVICE, 2);
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(d), vector_at(d), vector_at(d)));
  int since = driver->call_count;
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(d), vector_at(d), vector_at(d)));
  CHECK_INT(3, entries_count_calls(driver, since, "cuPointerGetAttributes"));
  CHECK_INT(1, entries_count_calls(driver, since, "cuCtxGetCurrent"));
  CHECK_INT(1, entries_count_calls(driver, since, "cuCtxGetId")); // somebody else's context
  CHECK_INT(1, entries_count_calls(driver, since, "cuLaunchKernel"));
  CHECK_INT(1, entries_count_calls(driver, since, "cuStreamSynchronize"));
  // That it may wait although another thread captures a stream, and no longer.
  CHECK_INT(2, entries_count_calls(driver, since, "cuThreadExchangeStreamCaptureMode"));
  CHECK_INT(since + 9, driver->call_count);
  CHECK(fake_context_pop() == context);
  CHECK_TEXT("", driver->violation);
}

static void host_pointers_are_copied(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40}, c[] = {5, 6, 7, 8};
  for (int call = 1; call <= 3; ++call) {
    vector va = vector_at(a), vc = vector_at(c), before = va;
    void *values[] = {&va, &(vector){b, b, 0, 4, 1}, &vc};
    CHECK_INT(AOTC_OK, aotc_entry_call(&entry_add, values));
    check_sum(c, 11, 8);
    CHECK(memcmp(&va, &before, sizeof(va)) == 0); // the caller's descriptors are not changed
    check_kinds(FAKE_DEVICE, FAKE_DEVICE, FAKE_DEVICE);
    CHECK_INT(4 * call, driver->copy_count); // three in, one back
    CHECK_INT(3, driver->allocation_count);  // of the first call
  }
  CHECK_INT(0, fake_context_depth());
  CHECK_TEXT("", driver->violation);
}

static void what_the_gpu_reaches_otherwise_is_copied(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  entries_load("cuda");
  void *other = fake_context_make(1);
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  fake_context_push(other);
  float *far = entries_make(AOTC_MEMORY_DEVICE, 1);
  fake_context_pop();
  float pinned[] = {10, 20, 30, 40};
  mgpuMemHostRegister(pinned, sizeof(pinned));
  float *managed = entries_make(AOTC_MEMORY_MANAGED, 0);
  CHECK_INT(AOTC_OK,
            entries_call(&entry_add, vector_at(far), vector_at(pinned), vector_at(managed)));
  check_sum(managed, 11, 0);
  check_kinds(FAKE_DEVICE, FAKE_DEVICE, FAKE_MANAGED);
  CHECK(the_seen.pointers[0] != far && the_seen.pointers[2] == managed);
  CHECK_INT(2, driver->copy_count);
  // On the other GPU it is in place.
  fake_context_push(other);
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(far), vector_at(far), vector_at(far)));
  fake_context_pop();
  CHECK(the_seen.pointers[0] == far);
  CHECK_INT(2, driver->copy_count);
  CHECK_TEXT("", driver->violation);
}

static void host_code_gets_managed_memory(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40}, c[4] = {0};
  CHECK_INT(AOTC_OK, entries_call(&entry_managed, vector_at(a), vector_at(b), vector_at(c)));
  check_kinds(FAKE_MANAGED, FAKE_DEVICE, FAKE_DEVICE);
  CHECK(a[0] == 2 && c[0] == 12);
  CHECK_INT(5, driver->copy_count); // A and C come back
  // Before the call, for the host code; in the call, as it asks; behind the call.
  CHECK_INT(4, entries_count_calls(driver, 0, "cuStreamSynchronize"));
  float *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  CHECK_INT(AOTC_OK, entries_call(&entry_managed, vector_at(device), vector_at(b), vector_at(c)));
  check_kinds(FAKE_MANAGED, FAKE_DEVICE, FAKE_DEVICE);
  CHECK(the_seen.pointers[0] != device && device[0] == 2);
  float *managed = entries_make(AOTC_MEMORY_MANAGED, 1);
  CHECK_INT(AOTC_OK, entries_call(&entry_managed, vector_at(managed), vector_at(b), vector_at(c)));
  CHECK(the_seen.pointers[0] == managed && managed[0] == 2);
}

static void what_only_the_host_uses_stays_there(void) {
  entries_load("cuda");
  float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40}, c[4] = {0};
  CHECK_INT(AOTC_OK, entries_call(&entry_host, vector_at(a), vector_at(b), vector_at(c)));
  CHECK(the_seen.pointers[0] == a && a[0] == 2 && c[0] == 12);
  float *device = entries_make(AOTC_MEMORY_DEVICE, 1);
  CHECK_INT(AOTC_OK, entries_call(&entry_host, vector_at(device), vector_at(b), vector_at(c)));
  check_kinds(FAKE_UNKNOWN, FAKE_DEVICE, FAKE_DEVICE);
  CHECK(the_seen.pointers[0] != device && device[0] == 2);
  // Beside a kernel that uses the same memory it is a copy that both reach.
  CHECK_INT(AOTC_OK, entries_call(&entry_host, vector_at(b), vector_at(b), vector_at(c)));
  check_kinds(FAKE_MANAGED, FAKE_MANAGED, FAKE_DEVICE);
  CHECK(the_seen.pointers[0] == the_seen.pointers[1]);
  CHECK(b[0] == 11 && c[0] == 22);
}

static void one_buffer_twice_stays_one(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float both[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40};
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(both), vector_at(b), vector_at(both)));
  CHECK(the_seen.pointers[0] == the_seen.pointers[2]);
  check_sum(both, 11, 4);
  CHECK_INT(3, driver->copy_count);
  CHECK_INT(2, driver->allocation_count);
}

static void ranges_that_overlap_share_a_buffer(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  // A and B overlap only by way of C.
  float room[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK_INT(AOTC_OK,
            entries_call(&entry_add, vector_at(room), vector_at(room + 6), vector_at(room + 3)));
  CHECK_INT(2, driver->copy_count);
  CHECK_INT(1, driver->allocation_count);
  CHECK_INT(40, driver->last_copy_bytes);
  CHECK_INT(6, the_seen.pointers[1] - the_seen.pointers[0]);
  CHECK_INT(3, the_seen.pointers[2] - the_seen.pointers[0]);
  float expected[10] = {1, 2, 3, 8, 10, 12, 7, 8, 9, 10};
  CHECK(memcmp(room, expected, sizeof(room)) == 0);
  // Neighbours do not overlap.
  float c[4] = {0};
  int before = driver->copy_count;
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(room), vector_at(room + 4), vector_at(c)));
  CHECK_INT(4, driver->copy_count - before);
}

static void call_nothing(void **values) {
  (void)values;
  ++the_seen.calls;
}

static _Thread_local uintptr_t the_addresses[ENTRIES_MAX];

static void note_addresses(void **values) {
  for (int i = 0; i < 2; ++i) {
    the_addresses[i] = (uintptr_t)((const vector *)values[i])->aligned;
  }
}

static void shared_buffers_keep_elements_aligned(void) {
  static const int64_t two[] = {2};
  static const aotc_value arguments[] = {
      {.name = "A",
       .type = "memref<2xi16>",
       .dtype = AOTC_DTYPE_I16,
       .rank = 1,
       .shape = two,
       .is_read = true,
       .memory = AOTC_MEMORY_DEVICE,
       .aliases = -1},
      {.name = "B",
       .type = "memref<2xf64>",
       .dtype = AOTC_DTYPE_F64,
       .rank = 1,
       .shape = two,
       .is_read = true,
       .memory = AOTC_MEMORY_DEVICE,
       .aliases = -1},
  };
  static const aotc_entry entry = {
      .name = "mixed", .argument_count = 2, .arguments = arguments, .call = note_addresses};
  entries_load("cuda");
  _Alignas(16) char room[64] = {0};
  vector a = {room + 6, room + 6, 0, 2, 1}, b = {room + 8, room + 8, 0, 2, 1};
  void *values[] = {&a, &b};
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry, values));
  CHECK_INT(2, the_addresses[1] - the_addresses[0]);
  CHECK_INT(0, the_addresses[1] % 8);
}

static void strided_ranges_are_copied_whole(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float a[] = {40, 0, 30, 0, 20, 0, 10}; // backwards, every other
  float b[] = {0, 0, 1, 2, 3, 4};        // from its third element
  float c[] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  vector va = {a, a + 6, 0, 4, -2}, vb = {b, b, 2, 4, 1}, vc = {c, c, 0, 4, 3};
  CHECK_INT(AOTC_OK, entries_call(&entry_strided, va, vb, vc));
  float expected[] = {11, -1, -1, 22, -1, -1, 33, -1, -1, -1};
  CHECK(memcmp(c, expected, sizeof(c)) == 0);
  CHECK_INT(40, driver->last_copy_bytes);
  // All elements in one place.
  float one = 5;
  CHECK_INT(AOTC_OK, entries_call(&entry_strided, (vector){&one, &one, 0, 4, 0}, vb, vc));
  CHECK(c[0] == 6 && c[6] == 8);
}

static void nothing_is_nowhere(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  vector none = {NULL, NULL, 0, 0, 1}, odd = {(void *)3, (void *)3, 7, 0, -5};
  CHECK_INT(AOTC_OK, entries_call(&entry_strided, none, odd, none));
  CHECK_INT(1, driver->launch_count);
  CHECK_INT(0, driver->copy_count);
  CHECK_INT(0, entries_count_calls(driver, 0, "cuPointerGetAttributes"));
  CHECK(the_seen.pointers[1] == (void *)3);
}

static void call_many(void **values) {
  for (int i = 0; i < ENTRIES_MAX; ++i) {
    *(float *)((const vector *)values[i])->aligned += 1;
  }
}

static void many_arguments(void) {
  static const int64_t one[] = {1};
  aotc_value arguments[ENTRIES_MAX];
  float elements[ENTRIES_MAX];
  vector vectors[ENTRIES_MAX];
  void *values[ENTRIES_MAX];
  for (int i = 0; i < ENTRIES_MAX; ++i) {
    arguments[i] = (aotc_value){.name = "x",
                                .type = "memref<1xf32>",
                                .dtype = AOTC_DTYPE_F32,
                                .rank = 1,
                                .shape = one,
                                .is_read = true,
                                .is_written = true,
                                .memory = AOTC_MEMORY_DEVICE,
                                .aliases = -1};
    elements[i] = (float)i;
    aotc_entry_describe(&arguments[i], &elements[i], NULL, &vectors[i]);
    values[i] = &vectors[i];
  }
  const aotc_entry entry = {
      .name = "many", .argument_count = ENTRIES_MAX, .arguments = arguments, .call = call_many};
  entries_load("cuda");
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry, values));
  for (int i = 0; i < ENTRIES_MAX; ++i) {
    CHECK(elements[i] == (float)i + 1);
  }
}

// -------------------------------------------------------------------------------------------------
// Streams and contexts

static void adoption_and_context_are_as_before(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  void *stream = NULL;
  CHECK_INT(AOTC_OK, aotc_stream_open(&stream));
  CHECK_INT(AOTC_OK, aotc_stream_adopt(stream, true));
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(a), vector_at(a), vector_at(a)));
  CHECK(mgpuStreamCreate() == stream);
  CHECK_INT(AOTC_OK,
            aotc_entry_enqueue(&entry_add,
                               (void *[]){&(vector){a, a, 0, 4, 1}, &(vector){a, a, 0, 4, 1},
                                          &(vector){a, a, 0, 4, 1}},
                               NULL));
  CHECK(driver->last_launch.stream == (void *)CU_STREAM_LEGACY);
  CHECK(mgpuStreamCreate() == stream);
  aotc_stream_release();
  CHECK_INT(0, fake_context_depth());
}

// The arguments of add(), all at one place.
static aotc_status enqueue(void *pointer, void *stream) {
  vector v = vector_at(pointer);
  void *values[] = {&v, &v, &v};
  return aotc_entry_enqueue(&entry_add, values, stream);
}

static void enqueue_only_launches(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  void *context = fake_context_make(0);
  fake_context_push(context);
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  void *stream = NULL;
  CHECK_INT(AOTC_OK, aotc_stream_open(&stream));
  CHECK_INT(AOTC_OK, enqueue(a, stream));
  driver->is_capturing = true; // then a wait is a violation
  int since = driver->call_count;
  CHECK_INT(AOTC_OK, enqueue(a, stream));
  CHECK_INT(1, entries_count_calls(driver, since, "cuLaunchKernel"));
  CHECK_INT(since + 3, driver->call_count); // which context, is it still the same, launch
  CHECK(driver->last_launch.stream == stream);
  CHECK_INT(AOTC_OK, enqueue(a, NULL));
  CHECK(driver->last_launch.stream == (void *)CU_STREAM_LEGACY);
  CHECK_INT(AOTC_OK, enqueue(a, (void *)CU_STREAM_PER_THREAD));
  CHECK(driver->last_launch.stream == (void *)CU_STREAM_PER_THREAD);
  CHECK_INT(0, entries_count_calls(driver, 0, "cuStreamGetCtx"));
  CHECK_INT(0, driver->copy_count);
  CHECK_TEXT("", driver->violation);
}

static void enqueue_goes_where_the_stream_is(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  entries_load("cuda");
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  fake_context_push(fake_context_make(1));
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  void *stream = NULL;
  CHECK_INT(AOTC_OK, aotc_stream_open(&stream));
  fake_context_pop();
  CHECK_INT(AOTC_OK, enqueue(a, stream)); // the fake driver would refuse another context's function
  CHECK_INT(1, entries_count_calls(driver, 0, "cuStreamGetCtx"));
  CHECK_INT(0, fake_context_depth());
  CHECK_INT(AOTC_OK, enqueue(a, NULL));
  CHECK_INT(1, entries_count_calls(driver, 0, "cuStreamGetCtx"));
  CHECK_TEXT("", driver->violation);
}

static void enqueue_refuses_what_must_wait(void) {
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_MANAGED, 1);
  vector v = vector_at(a);
  void *values[] = {&v, &v, &v};
  CHECK_INT(AOTC_UNSUPPORTED, aotc_entry_enqueue(&entry_managed, values, NULL));
  CHECK_TEXT("managed: host code of 'managed' reads what a kernel wrote", aotc_error_message());
  v.size = 5;
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_enqueue(&entry_add, values, NULL));
  CHECK_TEXT("add: argument 'A' (memref<4xf32>): dimension 0 has size 5, the type says 4",
             aotc_error_message());
  CHECK_INT(0, scenario_driver()->launch_count);
}

static void check_mode_looks_at_pointers(void) {
  setenv("AOTC_CHECK", "1", 1);
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float plain[] = {1, 2, 3, 4};
  CHECK_INT(AOTC_INVALID_ARGUMENT, enqueue(plain, NULL));
  CHECK_CONTAINS(aotc_error_message(), "add: argument 'A' (memref<4xf32>): the GPU cannot reach");
  CHECK_INT(0, driver->launch_count);
  aotc_error_clear();
  mgpuMemHostRegister(plain, sizeof(plain));
  CHECK_INT(AOTC_OK, enqueue(plain, NULL));
  CHECK_INT(1, driver->launch_count);
}

static void check_mode_waits_for_each_launch(void) {
  setenv("AOTC_CHECK", "1", 1);
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  CHECK_INT(AOTC_OK, enqueue(a, NULL));
  CHECK_INT(1, entries_count_calls(driver, 0, "cuStreamSynchronize"));
  driver->asynchronous_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK_INT(AOTC_LAUNCH_FAILED, enqueue(a, NULL));
  CHECK_TEXT(
      "add: mgpuLaunchKernel: cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_ADDRESS "
      "(700, as the test asked for): waiting for this launch alone (AOTC_CHECK): kernel "
      "'add' of module 'kernels', built for sm_90, grid 1 x 1 x 1, block 32 x 1 x 1, 0 bytes "
      "of dynamic shared memory; device cuda:0 (Fake 0, sm_90)",
      aotc_error_message());
  driver->asynchronous_result = CUDA_ERROR_UNKNOWN;
  CHECK_INT(AOTC_LAUNCH_FAILED, enqueue(a, NULL));
  driver->is_capturing = true;
  CHECK_INT(AOTC_OK, enqueue(a, NULL));
  CHECK_TEXT("", driver->violation);
}

static void without_check_mode_nothing_waits(void) {
  setenv("AOTC_CHECK", "0", 1);
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  CHECK_INT(AOTC_OK, enqueue(a, NULL));
  CHECK_INT(0, entries_count_calls(scenario_driver(), 0, "cuStreamSynchronize"));
  CHECK_INT(0, entries_count_calls(scenario_driver(), 0, "cuStreamIsCapturing"));
}

static void failing_kernel_is_named(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float c[] = {5, 6, 7, 8};
  driver->asynchronous_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK_INT(AOTC_LAUNCH_FAILED, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_CONTAINS(aotc_error_message(),
                 "add: cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK_CONTAINS(aotc_error_message(), "this thread's last launch was kernel 'add'");
  driver->asynchronous_result = 0;
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_NO_FAILURE(); // the earlier failure is forgotten
}

// -------------------------------------------------------------------------------------------------
// Devices

static void device_set_is_for_threads_without_a_context(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  entries_load(NULL);
  CHECK_INT(AOTC_OK, aotc_device_set(1));
  float c[4] = {0};
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(1, device.ordinal);
  CHECK_INT(1, driver->primary_references);
  // A context that is current is used, whatever its device is.
  void *context = fake_context_make(0);
  fake_context_push(context);
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1);
  int since = driver->call_count;
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(a), vector_at(a), vector_at(a)));
  CHECK(the_seen.pointers[0] == a);
  CHECK_INT(0, entries_count_calls(driver, since, "cuCtxPushCurrent_v2"));
  CHECK(fake_context_pop() == context);
  CHECK_INT(AOTC_OK, aotc_device_set(0));
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
  CHECK_INT(2, driver->primary_references);
  CHECK_INT(AOTC_NO_DEVICE, aotc_device_set(2));
  CHECK_TEXT("aotc_device_set: there is no cuda:2; the driver has 2 GPUs, from cuda:0",
             aotc_error_message());
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_set(-2));
  CHECK_TEXT("aotc_device_set: there is no device -2; expected a GPU's number, or -1: the CPU",
             aotc_error_message());
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_set(AOTC_CPU));
  CHECK_CONTAINS(aotc_error_message(), "'cpu' comes too late");
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(c), vector_at(c), vector_at(c)));
}

static void device_set_cpu(void) {
  entries_load(NULL);
  CHECK_INT(AOTC_OK, aotc_device_set(AOTC_CPU));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_set(0));
  CHECK_TEXT("aotc_device_set: cuda:0 cannot be used: the CPU was requested", aotc_error_message());
  float a[] = {1, 2, 3, 4}, c[4] = {0};
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(a), vector_at(a), vector_at(c)));
  check_sum(c, 2, 0);
  CHECK(the_seen.pointers[0] == a && the_seen.pointers[2] == c);
  CHECK_INT(AOTC_OK, enqueue(c, NULL));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_set(0));
  CHECK_CONTAINS(aotc_error_message(), "the program uses the CPU already");
  CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL);
  CHECK_INT(AOTC_INVALID_ARGUMENT,
            entries_call(&entry_add, vector_at(a), vector_at(NULL), vector_at(c)));
  void *owned = NULL;
  CHECK_INT(AOTC_OK, aotc_memory_allocate(AOTC_MEMORY_DEVICE, 8, &owned));
  CHECK_INT(AOTC_OK, aotc_entry_free(owned));
}

// -------------------------------------------------------------------------------------------------
// What is refused

static const int64_t shape_2x3[] = {2, 3};
static const int64_t shape_dynamic[] = {AOTC_DYNAMIC, AOTC_DYNAMIC};
static const int64_t strides_8x1[] = {8, 1};
static const aotc_value value_2x3 = {.name = "x",
                                     .type = "memref<2x3xf32>",
                                     .dtype = AOTC_DTYPE_F32,
                                     .rank = 2,
                                     .shape = shape_2x3,
                                     .aliases = -1};
static const aotc_value value_any = {.name = "x",
                                     .type = "memref<?x?xf64>",
                                     .dtype = AOTC_DTYPE_F64,
                                     .rank = 2,
                                     .shape = shape_dynamic,
                                     .aliases = -1};
static const aotc_value value_strided = {.name = "x",
                                         .type =
                                             "memref<2x3xcomplex<f64>, strided<[8, 1], offset: 2>>",
                                         .dtype = AOTC_DTYPE_C128,
                                         .rank = 2,
                                         .shape = shape_2x3,
                                         .strides = strides_8x1,
                                         .offset = 2,
                                         .aliases = -1};
static const aotc_value value_free = {.name = "x",
                                      .type = "memref<?x?xi8, strided<[?, ?], offset: ?>>",
                                      .dtype = AOTC_DTYPE_I8,
                                      .rank = 2,
                                      .shape = shape_dynamic,
                                      .strides = shape_dynamic,
                                      .offset = AOTC_DYNAMIC,
                                      .aliases = -1};

typedef struct matrix {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} matrix;

static aotc_status try_matrix(const aotc_value *value, matrix m) {
  const aotc_entry entry = {
      .name = "f", .argument_count = 1, .arguments = value, .call = call_nothing};
  return aotc_entry_call(&entry, (void *[]){&m});
}

static void check_refused(const aotc_value *value, matrix m, const char *why) {
  the_seen.calls = 0;
  CHECK_INT(AOTC_INVALID_ARGUMENT, try_matrix(value, m));
  char expected[256];
  snprintf(expected, sizeof(expected), "f: argument 'x' (%s): %s", value->type, why);
  CHECK_TEXT(expected, aotc_error_message());
  CHECK_INT(0, the_seen.calls);
  CHECK(!aotc_device_is_resolved());
}

static void bad_arguments_are_refused(void) {
  entries_load("cuda");
  static _Alignas(16) char m[4096];
  const int64_t huge = INT64_MAX / 8;
  check_refused(&value_2x3, (matrix){m, NULL, 0, {2, 3}, {3, 1}}, "the pointer is NULL");
  check_refused(&value_2x3, (matrix){m, m, 0, {2, 4}, {4, 1}},
                "dimension 1 has size 4, the type says 3");
  check_refused(&value_2x3, (matrix){m, m, 0, {2, 3}, {4, 1}},
                "dimension 0 has stride 4, the type says 3");
  check_refused(&value_2x3, (matrix){m, m, 0, {2, 3}, {3, -1}},
                "dimension 1 has stride -1, the type says 1");
  check_refused(&value_2x3, (matrix){m, m, 1, {2, 3}, {3, 1}}, "the offset is 1, the type says 0");
  check_refused(&value_any, (matrix){m, m, 0, {2, -3}, {-3, 1}},
                "dimension 1 has the negative size -3");
  check_refused(&value_any, (matrix){m, m, 0, {0, -1}, {1, 1}},
                "dimension 1 has the negative size -1");
  check_refused(&value_any, (matrix){m, m, 0, {INT64_MAX, 2}, {2, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_any, (matrix){m, m, 0, {huge, 1}, {1, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_any, (matrix){m, m, 0, {huge + 1, 1}, {1, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_strided, (matrix){m, m, 2, {2, 3}, {3, 1}},
                "dimension 0 has stride 3, the type says 8");
  check_refused(&value_strided, (matrix){m, m, 0, {2, 3}, {8, 1}},
                "the offset is 0, the type says 2");
  check_refused(&value_free, (matrix){m, m, 0, {3, 3}, {INT64_MAX, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_free, (matrix){m, m, INT64_MAX, {3, 3}, {3, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_free, (matrix){m, m, INT64_MIN, {1, 1}, {1, 1}},
                "it reaches beyond the end of memory");
  check_refused(&value_free, (matrix){m, (void *)2, 0, {4, 1}, {-1, 1}},
                "it reaches beyond the end of memory");
  check_refused(&value_free, (matrix){m, (void *)UINTPTR_MAX, 0, {2, 1}, {1, 1}},
                "it reaches beyond the end of memory");
  char text[128];
  snprintf(text, sizeof(text), "the pointer %p is not aligned to 8 bytes, as its elements must be",
           (void *)(m + 4));
  check_refused(&value_any, (matrix){m, m + 4, 0, {1, 1}, {1, 1}}, text);
  snprintf(text, sizeof(text), "the pointer %p is not aligned to 8 bytes, as its elements must be",
           (void *)(m + 12));
  check_refused(&value_strided, (matrix){m, m + 12, 2, {2, 3}, {8, 1}}, text);
  CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL);

  // And what is fine.
  setenv("AOTC_DEVICE", "cpu", 1);
  CHECK_INT(AOTC_OK, try_matrix(&value_2x3, (matrix){NULL, m + 4, 0, {2, 3}, {3, 1}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_any, (matrix){NULL, m, 0, {1, 3}, {77, 1}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_any, (matrix){NULL, m, 0, {3, 1}, {1, -9}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_any, (matrix){NULL, NULL, 5, {0, INT64_MAX}, {9, 9}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_strided, (matrix){m, m + 8, 2, {2, 3}, {8, 1}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_free, (matrix){m, m + 1, 7, {2, 3}, {0, -4}}));
  CHECK_INT(6, the_seen.calls);
}

static void missing_values_are_refused(void) {
  static const aotc_value scalar = {
      .name = "n", .type = "i32", .dtype = AOTC_DTYPE_I32, .rank = -1, .aliases = -1};
  const aotc_entry entry = {
      .name = "f", .argument_count = 1, .arguments = &scalar, .call = call_nothing};
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry, (void *[]){NULL}));
  CHECK_TEXT("f: argument 'n' (i32): there is no value", aotc_error_message());
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry_add, (void *[]){NULL, NULL, NULL}));
  CHECK_TEXT("add: argument 'A' (memref<4xf32>): there is no descriptor", aotc_error_message());
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry_add, NULL));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(NULL, NULL));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_enqueue(NULL, NULL, NULL));
}

static void descriptors_are_packed(void) {
  static char m[8];
  matrix d;
  aotc_entry_describe(&value_any, m, (int64_t[]){5, 7}, &d);
  CHECK(d.allocated == m && d.aligned == m && d.offset == 0);
  CHECK(d.sizes[0] == 5 && d.sizes[1] == 7 && d.strides[0] == 7 && d.strides[1] == 1);
  aotc_entry_describe(&value_strided, m, NULL, &d);
  CHECK(d.offset == 2 && d.sizes[0] == 2 && d.sizes[1] == 3);
  CHECK(d.strides[0] == 8 && d.strides[1] == 1);
  aotc_entry_describe(&value_free, m, (int64_t[]){0, 0}, &d);
  CHECK(d.offset == 0 && d.strides[0] == 1 && d.strides[1] == 1);
  aotc_entry_describe(&value_any, m, (int64_t[]){INT64_MAX, INT64_MAX}, &d);
  CHECK_INT(AOTC_INVALID_ARGUMENT, try_matrix(&value_any, d));
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(device_pointers_are_used_in_place),
      CHECK_TEST(host_pointers_are_copied),
      CHECK_TEST(what_the_gpu_reaches_otherwise_is_copied),
      CHECK_TEST(host_code_gets_managed_memory),
      CHECK_TEST(what_only_the_host_uses_stays_there),
      CHECK_TEST(one_buffer_twice_stays_one),
      CHECK_TEST(ranges_that_overlap_share_a_buffer),
      CHECK_TEST(shared_buffers_keep_elements_aligned),
      CHECK_TEST(strided_ranges_are_copied_whole),
      CHECK_TEST(nothing_is_nowhere),
      CHECK_TEST(many_arguments),
      CHECK_TEST(adoption_and_context_are_as_before),
      CHECK_TEST(enqueue_only_launches),
      CHECK_TEST(enqueue_goes_where_the_stream_is),
      CHECK_TEST(enqueue_refuses_what_must_wait),
      CHECK_TEST(check_mode_looks_at_pointers),
      CHECK_TEST(check_mode_waits_for_each_launch),
      CHECK_TEST(without_check_mode_nothing_waits),
      CHECK_TEST(failing_kernel_is_named),
      CHECK_TEST(device_set_is_for_threads_without_a_context),
      CHECK_TEST(device_set_cpu),
      CHECK_TEST(bad_arguments_are_refused),
      CHECK_TEST(missing_values_are_refused),
      CHECK_TEST(descriptors_are_packed),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
