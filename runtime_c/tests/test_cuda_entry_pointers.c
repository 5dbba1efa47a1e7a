// Calls of entries on a fake driver: the memory of their pointers, and which is copied.
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

static void check_kinds(fake_kind a, fake_kind b, fake_kind c) {
  CHECK_INT(a, the_seen.kinds[0]);
  CHECK_INT(b, the_seen.kinds[1]);
  CHECK_INT(c, the_seen.kinds[2]);
}

static void device_pointers_are_used_in_place(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1), *b = entries_make(AOTC_MEMORY_DEVICE, 10);
  float *c = entries_make(AOTC_MEMORY_DEVICE, 0);
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(a), vector_at(b), vector_at(c)));
  entries_check_sum(c, 11, 0);
  CHECK(the_seen.pointers[0] == a && the_seen.pointers[1] == b && the_seen.pointers[2] == c);
  CHECK_INT(0, driver->copy_count);
  CHECK_INT(3, driver->allocation_count);
  CHECK(driver->last_launch.stream == (void *)CU_STREAM_PER_THREAD);

  // One query for each pointer, and one wait; with a current context, nothing else.
  void *context = fake_context_make(0);
  fake_context_push(context);
  float *d = entries_make(AOTC_MEMORY_DEVICE, 2);
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(d), vector_at(d), vector_at(d)));
  int since = driver->call_count;
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(d), vector_at(d), vector_at(d)));
  CHECK_INT(3, entries_count_calls(driver, since, "cuPointerGetAttributes"));
  CHECK_INT(1, entries_count_calls(driver, since, "cuCtxGetCurrent"));
  CHECK_INT(1, entries_count_calls(driver, since, "cuCtxGetId")); // a foreign context
  CHECK_INT(1, entries_count_calls(driver, since, "cuLaunchKernel"));
  CHECK_INT(1, entries_count_calls(driver, since, "cuStreamSynchronize"));
  // Waiting is allowed although another thread captures a stream; the mode is restored afterwards.
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
    entries_check_sum(c, 11, 8);
    CHECK(memcmp(&va, &before, sizeof(va)) == 0); // the caller's descriptors are unchanged
    check_kinds(FAKE_DEVICE, FAKE_DEVICE, FAKE_DEVICE);
    CHECK_INT(4 * call, driver->copy_count); // three in, one back
    CHECK_INT(3, driver->allocation_count);  // all in the first call
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
  entries_check_sum(managed, 11, 0);
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
  CHECK_INT(5, driver->copy_count); // A and C are copied back
  // Before the call, for host code; during the call, as requested; after the call.
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
  // If a kernel uses the same memory, it is a copy that both can access.
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
  entries_check_sum(both, 11, 4);
  CHECK_INT(3, driver->copy_count);
  CHECK_INT(2, driver->allocation_count);
}

static void ranges_that_overlap_share_a_buffer(void) {
  fake_driver *driver = scenario_driver();
  entries_load("cuda");
  // A and B only overlap through C.
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
  // Adjacent ranges do not overlap.
  float c[4] = {0};
  int before = driver->copy_count;
  CHECK_INT(AOTC_OK, entries_call(&entry_add, vector_at(room), vector_at(room + 4), vector_at(c)));
  CHECK_INT(4, driver->copy_count - before);
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
  float a[] = {40, 0, 30, 0, 20, 0, 10}; // reversed, with stride 2
  float b[] = {0, 0, 1, 2, 3, 4};        // from its third element
  float c[] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  vector va = {a, a + 6, 0, 4, -2}, vb = {b, b, 2, 4, 1}, vc = {c, c, 0, 4, 3};
  CHECK_INT(AOTC_OK, entries_call(&entry_strided, va, vb, vc));
  float expected[] = {11, -1, -1, 22, -1, -1, 33, -1, -1, -1};
  CHECK(memcmp(c, expected, sizeof(c)) == 0);
  CHECK_INT(40, driver->last_copy_bytes);
  // All elements at the same address.
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
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
