// The runtime's functions on the CPU device: memory, streams, timers, failures and settings.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "aotc_runtime.h"
#include "check.h"
#include "cpu_module.h"
#include "mlir_cuda_runtime.h"

#define ONE ((cpu_sizes){1, 1, 1})
#define THREADS ((cpu_sizes){3, 2, 1})

static const aotc_cpu_kernel kernels[] = {
    {.name = "note_block", .run = cpu_module_note_block},
};

static void *load(const char *threads) {
  return cpu_module_load(kernels, sizeof(kernels) / sizeof(kernels[0]), threads);
}

// -------------------------------------------------------------------------------------------------
// Memory, streams, timers

static void memory_is_host_memory(void) {
  load("2");
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  CHECK(stream != NULL && event != NULL);
  uint32_t *words = mgpuMemAlloc(16, stream, 0);
  uint16_t *halves = mgpuMemAlloc(16, NULL, 1);
  void *empty = mgpuMemAlloc(0, NULL, 0);
  CHECK(empty != NULL);
  CHECK_INT(0, (uintptr_t)words % 64);
  mgpuMemset32(words, 0x01020304, 4, stream);
  mgpuMemset16(halves, 0x0506, 8, stream);
  CHECK_INT(0x01020304, words[3]);
  CHECK_INT(0x0506, halves[7]);
  mgpuMemcpy(words, halves, 6, stream);
  CHECK_INT(0x05060506, words[0]);
  CHECK_INT(0x01020506, words[1]);
  mgpuEventRecord(event, stream);
  mgpuStreamWaitEvent(stream, event);
  mgpuEventSynchronize(event);
  mgpuEventDestroy(event);
  mgpuMemHostRegister(words, 16);
  mgpuMemHostUnregister(words);
  mgpuSetDefaultDevice(3);
  mgpuMemFree(words, stream);
  mgpuMemFree(halves, NULL);
  mgpuMemFree(empty, NULL);
  mgpuStreamDestroy(stream);
  CHECK_NO_FAILURE();
}

static void harness_functions_work(void) {
  load("2");
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_TEXT("cpu", device.name);
  CHECK_INT(2, device.multiprocessors);
  CHECK_INT(0, device.capability_major);
  static const aotc_memory_kind kinds[] = {AOTC_MEMORY_HOST, AOTC_MEMORY_DEVICE,
                                           AOTC_MEMORY_MANAGED};
  for (int i = 0; i < 3; ++i) {
    int sent = 7 + i;
    int got = 0;
    void *memory = NULL;
    void *empty = NULL;
    CHECK_INT(AOTC_OK, aotc_memory_allocate(kinds[i], sizeof(int), &memory));
    CHECK_INT(AOTC_OK, aotc_memory_allocate(kinds[i], 0, &empty));
    CHECK(empty != NULL);
    CHECK_INT(0, (uintptr_t)memory % 64);
    CHECK_INT(AOTC_OK, aotc_memory_copy(memory, &sent, sizeof(int)));
    CHECK_INT(AOTC_OK, aotc_memory_copy(&got, memory, sizeof(int)));
    CHECK_INT(7 + i, got);
    CHECK_INT(AOTC_OK, aotc_memory_free(kinds[i], memory));
    CHECK_INT(AOTC_OK, aotc_memory_free(kinds[i], empty));
    CHECK_INT(AOTC_OK, aotc_memory_free(kinds[i], NULL));
  }
  void *stream = &device;
  CHECK_INT(AOTC_OK, aotc_stream_open(&stream));
  CHECK(stream == NULL);
  CHECK_INT(AOTC_OK, aotc_stream_adopt(stream, false));
  void *handle = mgpuStreamCreate();
  CHECK(handle != NULL);
  mgpuStreamDestroy(handle);
  aotc_stream_release();
  aotc_timer *timer = NULL;
  CHECK_INT(AOTC_OK, aotc_timer_open(&timer));
  CHECK_INT(AOTC_OK, aotc_timer_start(timer, stream));
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  double milliseconds = 0;
  CHECK_INT(AOTC_OK, aotc_timer_stop(timer, stream, &milliseconds));
  CHECK(milliseconds >= 5 && milliseconds < 5000);
  aotc_timer_close(timer);
  aotc_timer_close(NULL);
  CHECK_INT(AOTC_OK, aotc_stream_wait(stream));
  CHECK_INT(AOTC_OK, aotc_stream_close(stream));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_memory_copy(NULL, &device, 4));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "aotc_memory_copy: 4 bytes to NULL");
}

static void too_much_memory_is_out_of_memory(void) {
  load("2");
  CHECK(mgpuMemAlloc(UINT64_MAX / 2, NULL, 0) == NULL);
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "mgpuMemAlloc: no host memory for 9223372036854775807 bytes");
}

static void tensor_maps_are_unsupported(void) {
  load("2");
  static float elements[8];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {elements, elements, 0, {8}, {1}};
  int64_t box = 8;
  CHECK(mgpuTensorMapEncodeTiledMemref(1, &memref, 7, 0, 0, 0, 0, &box) == NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, "the CPU device has no TMA descriptors");
}

// -------------------------------------------------------------------------------------------------
// Failures

static void nothing_happens_after_a_failure(void) {
  void *module = load("2");
  atomic_int seen[1] = {0};
  uint32_t word = 5;
  uint32_t *memory = mgpuMemAlloc(4, NULL, 0);
  *memory = 6;
  mgpuModuleGetFunction(NULL, "note_block");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_status_get());
  CHECK(mgpuModuleGetFunction(module, "note_block") == NULL);
  CHECK(mgpuStreamCreate() == NULL);
  CHECK(mgpuEventCreate() == NULL);
  CHECK(mgpuMemAlloc(4, NULL, 0) == NULL);
  cpu_module_launch(module, "note_block", ONE, THREADS, 0, seen);
  mgpuMemcpy(memory, &word, 4, NULL);
  mgpuMemset32(memory, 7, 1, NULL);
  CHECK_INT(6, *memory);
  CHECK_INT(0, seen[0]);
  mgpuMemFree(memory, NULL);
  void *second = cpu_module_load_image(); // registering is still allowed
  CHECK(second != NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuModuleGetFunction: there is no module");
  cpu_module_launch(second, "note_block", ONE, THREADS, 0, seen);
  CHECK_INT(30201, seen[0]);
  CHECK_NO_FAILURE();
}

static void first_failure_is_told(void) {
  load("2");
  mgpuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 0);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_request("nonsense"));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuLaunchKernel: there is no kernel");
  CHECK_TEXT("", aotc_error_message());
  CHECK_INT(AOTC_OK, aotc_status_get());
}

static void *make_event_after_failure(void *unused) {
  (void)unused;
  mgpuModuleGetFunction(NULL, "note_block");
  return mgpuEventCreate();
}

// How a failure on a thread of the async runtime is passed to the thread that waits for it.
static void event_of_a_failed_thread_is_a_failure(void) {
  load("2");
  pthread_t thread;
  void *event = &thread;
  CHECK_INT(0, pthread_create(&thread, NULL, make_event_after_failure, NULL));
  CHECK_INT(0, pthread_join(thread, &event));
  CHECK(event == NULL);
  mgpuEventSynchronize(event);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuEventSynchronize: there is no event; the thread that");
  mgpuStreamWaitEvent(NULL, event);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuStreamWaitEvent: there is no event");
}

static void failed_assertion_is_recorded(void) {
  aotc_assertion_failed("100% of n (a.mlir:1:2)");
  CHECK_INT(AOTC_ASSERTION_FAILED, aotc_status_get());
  CHECK_TEXT("assertion failed: 100% of n (a.mlir:1:2)", aotc_error_message());
  aotc_assertion_failed("another");
  CHECK_TEXT("assertion failed: 100% of n (a.mlir:1:2)", aotc_error_message());
  aotc_error_clear();
  CHECK_INT(AOTC_OK, aotc_status_get());
}

static void failed_allocation_is_recorded(void) {
  aotc_allocation_failed("there is 0% of it (a.mlir:1:2)");
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "there is 0% of it (a.mlir:1:2)");
}

static void fills_of_uncountable_bytes_are_refused(void) {
  load("2");
  int32_t element = 5;
  mgpuMemset32(&element, 7, (size_t)1 << 62, NULL);
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "no memory has 4611686018427387904 elements of 4 bytes");
  mgpuMemset16(&element, 7, (size_t)1 << 63, NULL);
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "no memory has 9223372036854775808 elements of 2 bytes");
  CHECK_INT(5, element);
}

static void statuses_have_names(void) {
  CHECK_TEXT("AOTC_OK", aotc_status_name(AOTC_OK));
  CHECK_TEXT("AOTC_UNSUPPORTED", aotc_status_name(AOTC_UNSUPPORTED));
  CHECK_TEXT("AOTC_ASSERTION_FAILED", aotc_status_name(AOTC_ASSERTION_FAILED));
  CHECK_TEXT("AOTC_UNKNOWN", aotc_status_name((aotc_status)99));
}

// -------------------------------------------------------------------------------------------------
// Settings

static void device_specifications_are_checked(void) {
  static const char *const wrong[] = {"gpu",
                                      "CUDA",
                                      "cuda:",
                                      "cuda:-1",
                                      "cuda: 1",
                                      "cuda:1x",
                                      "cuda:+1",
                                      "cpu:0",
                                      "auto ",
                                      "cuda:99999999999999999999",
                                      "cuda:4294967296"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    check_note(wrong[i]);
    char message[128];
    snprintf(message, sizeof(message), "'%s'; expected auto, cuda, cuda:N or cpu", wrong[i]);
    CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_request(wrong[i]));
    CHECK_FAILED(AOTC_INVALID_ARGUMENT, message);
    setenv("AOTC_DEVICE", wrong[i], 1);
    CHECK(mgpuMemAlloc(1, NULL, 0) == NULL);
    CHECK_CONTAINS(aotc_error_message(), "mgpuMemAlloc: AOTC_DEVICE is ");
    CHECK_FAILED(AOTC_INVALID_ARGUMENT, message);
  }
  check_note(NULL);
  setenv("AOTC_DEVICE", "", 1); // the same as unset
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
}

static void thread_counts_are_checked(void) {
  static const char *const wrong[] = {"0", "-1", "x", "2x", " 2", "5000", "99999999999999999999"};
  setenv("AOTC_DEVICE", "cpu", 1);
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    check_note(wrong[i]);
    setenv("AOTC_CPU_THREADS", wrong[i], 1);
    CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_resolve(NULL));
    CHECK_FAILED(AOTC_INVALID_ARGUMENT, "expected a number from 1 to 4096");
  }
  check_note(NULL);
  unsetenv("AOTC_CPU_THREADS");
  cpu_set_t usable;
  CHECK_INT(0, sched_getaffinity(0, sizeof(usable), &usable));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(CPU_COUNT(&usable), device.multiprocessors);
}

static void levels_are_checked(void) {
  static const char *const wrong[] = {"0", "8", "x", "v3", "11", " 1"};
  setenv("AOTC_DEVICE", "cpu", 1);
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    check_note(wrong[i]);
    setenv("AOTC_CPU_LEVEL", wrong[i], 1);
    CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_resolve(NULL));
    CHECK_FAILED(AOTC_INVALID_ARGUMENT, "expected a number from 1 to 7");
  }
  check_note(NULL);
  setenv("AOTC_CPU_LEVEL", "2", 1);
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
}

static void checks_are_on_or_off(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  setenv("AOTC_CHECK", "yes", 1);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_resolve(NULL));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "AOTC_CHECK is 'yes'; expected 0 or 1");
  setenv("AOTC_CHECK", "1", 1);
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(memory_is_host_memory),
      CHECK_TEST(harness_functions_work),
      CHECK_TEST(too_much_memory_is_out_of_memory),
      CHECK_TEST(tensor_maps_are_unsupported),
      CHECK_TEST(nothing_happens_after_a_failure),
      CHECK_TEST(first_failure_is_told),
      CHECK_TEST(event_of_a_failed_thread_is_a_failure),
      CHECK_TEST(failed_assertion_is_recorded),
      CHECK_TEST(failed_allocation_is_recorded),
      CHECK_TEST(fills_of_uncountable_bytes_are_refused),
      CHECK_TEST(statuses_have_names),
      CHECK_TEST(device_specifications_are_checked),
      CHECK_TEST(thread_counts_are_checked),
      CHECK_TEST(levels_are_checked),
      CHECK_TEST(checks_are_on_or_off),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
