// Calls of entries on a fake driver: their streams, contexts and devices.
#include <dlfcn.h>
#include <stdlib.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

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

// Calls add() with all arguments at one address.
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
  driver->is_capturing = true; // then waiting is a violation
  int since = driver->call_count;
  CHECK_INT(AOTC_OK, enqueue(a, stream));
  CHECK_INT(1, entries_count_calls(driver, since, "cuLaunchKernel"));
  CHECK_INT(since + 3, driver->call_count); // query the context, check that it is alive, launch
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
  CHECK_INT(AOTC_OK, enqueue(a, stream)); // the fake driver rejects another context's function
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

// -------------------------------------------------------------------------------------------------
// Check mode, and a failing kernel

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
  CHECK_NO_FAILURE(); // the earlier failure is cleared
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
  // A current context is used, whatever its device.
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
  entries_check_sum(c, 2, 0);
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

int main(int argc, char **argv) {
  static const check_test tests[] = {
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
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
