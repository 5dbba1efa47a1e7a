// Streams and events of the CPU device: concurrency, order, and how failures are reported. The test
// is run without a driver.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "cpu_module.h"
#include "mlir_cuda_runtime.h"

#define COUNT 1000

// The by-value parameter of the kernels in this file.
typedef struct cell {
  atomic_int value;
  int32_t elements[COUNT];
} cell;

// Adds 1 and waits until another kernel has done the same.
static void meet(void *const *parameters, const aotc_cpu_block *block) {
  (void)block;
  cell *c = *(cell *const *)parameters[0];
  int32_t expected = *(const int32_t *)parameters[1];
  atomic_fetch_add(&c->value, 1);
  while (atomic_load(&c->value) < expected) {
    sched_yield();
  }
}

// Multiplies and adds after a delay: the result shows the order of two launches.
static void step(void *const *parameters, const aotc_cpu_block *block) {
  cell *c = *(cell *const *)parameters[0];
  int32_t added = *(const int32_t *)parameters[1];
  nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  int64_t i = block->block_id[0];
  c->elements[i] = c->elements[i] * 10 + added;
}

static void do_nothing(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
}

static void refuse(void *const *parameters, const aotc_cpu_block *block) {
  static const int64_t thread[3] = {1, 2, 3};
  (void)parameters;
  nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  block->fail(block, "it is wrong", thread);
}

static const aotc_cpu_kernel kernels[] = {
    {.name = "meet", .run = meet},
    {.name = "step", .run = step},
    {.name = "refuse", .run = refuse},
    {.name = "nothing", .run = do_nothing},
    {.name = "note_runner", .run = cpu_module_note_runner},
};

static void *load(const char *threads) {
  return cpu_module_load(kernels, sizeof(kernels) / sizeof(kernels[0]), threads);
}

// Launches on the stream of a token like generated code: the values are only valid until it
// returns.
static void launch(void *module, const char *name, int64_t blocks, void *stream, cell *argument,
                   int32_t number) {
  struct {
    cell *argument;
    int32_t number;
  } values = {argument, number};
  void *parameters[] = {&values.argument, &values.number};
  aotc_concurrent_launch_prepare(&values, sizeof(values));
  mgpuLaunchKernel(mgpuModuleGetFunction(module, name), blocks, 1, 1, 1, 1, 1, 0, stream,
                   parameters, NULL, 2);
  memset(&values, 0, sizeof(values));
}

static void end(void *stream) {
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static void kernels_of_streams_wait_for_each_other(void) {
  void *module = load("2");
  for (int round = 1; round <= 20; ++round) {
    cell c = {.value = 0};
    void *streams[5];
    for (int i = 0; i < 5; ++i) {
      streams[i] = mgpuStreamCreate();
      launch(module, "meet", 1, streams[i], &c, 5);
    }
    for (int i = 0; i < 5; ++i) {
      end(streams[i]);
    }
    CHECK_INT(5, c.value);
  }
  CHECK_NO_FAILURE();
}

static void a_stream_is_in_order(void) {
  void *module = load("4");
  static cell c, copied;
  void *stream = mgpuStreamCreate();
  uint16_t *freed = mgpuMemAlloc(2 * COUNT, stream, 0);
  mgpuMemset32(c.elements, 7, COUNT, stream);
  launch(module, "step", COUNT / 100, stream, &c, 1);
  launch(module, "step", COUNT / 100, stream, &c, 2);
  mgpuMemcpy(copied.elements, c.elements, sizeof(c.elements), stream);
  mgpuMemset32(c.elements, 9, 5, stream);
  mgpuMemset16(freed, 0x1234, COUNT, stream);
  mgpuMemcpy(&c.elements[5], freed, 4, stream);
  mgpuMemFree(freed, stream);
  // A launch not marked as concurrent: it runs after the others, and ends before the call returns.
  int32_t number = 3;
  cell *argument = &c;
  void *parameters[] = {&argument, &number};
  mgpuLaunchKernel(mgpuModuleGetFunction(module, "step"), 1, 1, 1, 1, 1, 1, 0, stream, parameters,
                   NULL, 2);
  CHECK_INT(93, c.elements[0]);
  end(stream);
  CHECK_INT(712, copied.elements[0]);
  CHECK_INT(712, copied.elements[9]);
  CHECK_INT(7, copied.elements[10]);
  CHECK_INT(9, c.elements[4]);
  CHECK_INT(0x12341234, c.elements[5]);
  CHECK_NO_FAILURE();
}

static void events_order_streams(void) {
  void *module = load("2");
  static cell c, after;
  void *streams[] = {mgpuStreamCreate(), mgpuStreamCreate()};
  void *event = mgpuEventCreate();
  mgpuEventSynchronize(event); // not recorded, so this does not wait
  launch(module, "step", 2, streams[0], &c, 1);
  mgpuEventRecord(event, streams[0]);
  mgpuStreamWaitEvent(streams[1], event);
  launch(module, "step", 2, streams[1], &c, 2);
  mgpuEventRecord(event, streams[1]);
  mgpuStreamWaitEvent(streams[0], event);
  launch(module, "step", 2, streams[0], &after, 3);
  mgpuEventSynchronize(event);
  CHECK_INT(12, c.elements[0]);
  mgpuEventDestroy(event);
  end(streams[0]);
  end(streams[1]);
  CHECK_INT(12, c.elements[1]);
  CHECK_INT(3, after.elements[1]);
  CHECK_NO_FAILURE();
}

static void a_failure_is_told_by_the_wait(void) {
  void *module = load("2");
  static cell c;
  void *streams[] = {mgpuStreamCreate(), mgpuStreamCreate()};
  void *event = mgpuEventCreate();
  launch(module, "refuse", 1, streams[0], &c, 0);
  launch(module, "step", 1, streams[0], &c, 1); // skipped
  mgpuEventRecord(event, streams[0]);
  mgpuStreamWaitEvent(streams[1], event);
  launch(module, "step", 1, streams[1], &c, 2); // skipped: it is ordered after the failure
  CHECK_NO_FAILURE();
  mgpuStreamSynchronize(streams[1]);
  CHECK_FAILED(AOTC_LAUNCH_FAILED,
               "mgpuStreamSynchronize: kernel 'refuse': block (0, 0, 0), thread "
               "(1, 2, 3): it is wrong");
  mgpuEventSynchronize(event);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "mgpuEventSynchronize: kernel 'refuse'");
  mgpuStreamSynchronize(streams[0]);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "kernel 'refuse'");
  mgpuStreamSynchronize(streams[0]); // the failure is reported once
  CHECK_INT(0, c.elements[0]);
  launch(module, "step", 1, streams[0], &c, 4);
  end(streams[0]);
  end(streams[1]);
  mgpuEventDestroy(event);
  CHECK_INT(4, c.elements[0]);
  CHECK_NO_FAILURE();
}

static void launches_end_one_by_one_with_one_thread(void) {
  void *module = load("1");
  static cell c;
  void *stream = mgpuStreamCreate();
  launch(module, "step", 1, stream, &c, 1);
  CHECK_INT(1, c.elements[0]);
  launch(module, "note_runner", 3, stream, &c, 0);
  CHECK_INT(1, the_runner_count);
  CHECK(pthread_equal(the_runners[0], pthread_self()));
  end(stream);
  CHECK_NO_FAILURE();
}

static void what_is_left_is_done_by_unloading(void) {
  void *module = load("2");
  static cell c;
  for (int i = 0; i < 100; ++i) {
    launch(module, "nothing", 1, mgpuStreamCreate(), &c, 0); // streams that are never destroyed
  }
  void *stream = mgpuStreamCreate();
  void *freed = mgpuMemAlloc(100, stream, 0);
  launch(module, "step", 1, stream, &c, 0);
  mgpuMemset32(&c.elements[1], 5, 1, stream);
  mgpuStreamDestroy(stream); // its work continues
  mgpuMemFree(freed, NULL);  // after all work
  CHECK_INT(5, c.elements[1]);
  mgpuMemset32(&c.elements[2], 6, 1, stream); // no longer a stream
  CHECK_INT(6, c.elements[2]);
  launch(module, "step", 1, mgpuStreamCreate(), &c, 8);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(8, c.elements[0]);
  CHECK_NO_FAILURE();
}

static void an_adopted_stream_is_a_gpus(void) {
  void *module = load("2");
  static cell c;
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_OK, aotc_stream_adopt(NULL, true));
  void *streams[] = {mgpuStreamCreate(), mgpuStreamCreate()};
  launch(module, "meet", 1, streams[0], &c, 2);
  launch(module, "meet", 1, streams[1], &c, 2);
  launch(module, "step", 1, streams[1], &c, 3);
  launch(module, "refuse", 1, streams[0], &c, 0);
  mgpuStreamDestroy(streams[0]);
  mgpuStreamDestroy(streams[1]);
  aotc_stream_release(); // nobody waited for them
  CHECK_INT(3, c.elements[0]);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "kernel 'refuse'");
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(kernels_of_streams_wait_for_each_other),
      CHECK_TEST(a_stream_is_in_order),
      CHECK_TEST(events_order_streams),
      CHECK_TEST(a_failure_is_told_by_the_wait),
      CHECK_TEST(launches_end_one_by_one_with_one_thread),
      CHECK_TEST(what_is_left_is_done_by_unloading),
      CHECK_TEST(an_adopted_stream_is_a_gpus),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
