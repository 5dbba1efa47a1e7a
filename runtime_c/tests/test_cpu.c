// The CPU device: the test is run where there is no driver.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "aotc_runtime.h"
#include "check.h"
#include "mlir_cuda_runtime.h"

static char image[] = "an image that nobody looks at";

// Each block notes itself in a grid of counters.
static void note_block(void *const *parameters, const aotc_cpu_block *block) {
  atomic_int *seen = *(atomic_int *const *)parameters[0];
  int64_t index =
      block->block_id[0] +
      block->grid_dim[0] * (block->block_id[1] + block->grid_dim[1] * block->block_id[2]);
  atomic_fetch_add(&seen[index], (int)(block->block_dim[0] * 10000 + block->block_dim[1] * 100 +
                                       block->block_dim[2]));
}

static pthread_mutex_t the_runners_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t the_runners[64];
static int the_runner_count;

// Notes the thread that runs the block, and takes its time.
static void note_thread(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
  pthread_t self = pthread_self();
  bool is_known = false;
  pthread_mutex_lock(&the_runners_lock);
  for (int i = 0; i < the_runner_count; ++i) {
    is_known = is_known || pthread_equal(the_runners[i], self);
  }
  if (!is_known && the_runner_count < 64) {
    the_runners[the_runner_count++] = self;
  }
  pthread_mutex_unlock(&the_runners_lock);
  nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static atomic_int the_slow_blocks;

static void count_slowly(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
  atomic_fetch_add(&the_slow_blocks, 1);
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// Fills its shared memory, lets others run, and finds it as it was.
static void use_shared(void *const *parameters, const aotc_cpu_block *block) {
  atomic_int *wrong = *(atomic_int *const *)parameters[0];
  unsigned char mark = (unsigned char)block->block_id[0];
  if ((uintptr_t)block->dynamic_shared % 128 != 0) {
    atomic_fetch_add(wrong, 1);
  }
  memset(block->dynamic_shared, mark, (size_t)block->dynamic_shared_bytes);
  sched_yield();
  const unsigned char *shared = block->dynamic_shared;
  for (int64_t i = 0; i < block->dynamic_shared_bytes; ++i) {
    if (shared[i] != mark) {
      atomic_fetch_add(wrong, 1);
    }
  }
}

static void need_no_shared(void *const *parameters, const aotc_cpu_block *block) {
  atomic_int *wrong = *(atomic_int *const *)parameters[0];
  if (block->dynamic_shared != NULL || block->dynamic_shared_bytes != 0) {
    atomic_fetch_add(wrong, 1);
  }
}

// Ends the process when the last block of a large grid is not what it should be, and when it is.
static void find_last(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  if (block->block_id[2] > 0 || block->block_id[1] > 0 || block->block_id[0] > 100) {
    _exit(block->grid_dim[0] == 2147483647 && block->grid_dim[1] == 65535 &&
                  block->grid_dim[2] == 65535 && block->block_id[0] >= 0 &&
                  block->block_id[1] >= 0 && block->block_id[1] < 65535 &&
                  block->block_id[2] >= 0 && block->block_id[2] < 65535
              ? 0
              : 1);
  }
}

static const aotc_cpu_kernel kernels[] = {
    {.name = "note_block", .run = note_block},          {.name = "note_thread", .run = note_thread},
    {.name = "count_slowly", .run = count_slowly},      {.name = "use_shared", .run = use_shared},
    {.name = "need_no_shared", .run = need_no_shared},  {.name = "find_last", .run = find_last},
    {.name = "hard", .why_not = "it uses gpu.barrier"},
};
static const aotc_module_info info = {
    AOTC_MODULE_INFO_VERSION,
    sizeof(kernels) / sizeof(kernels[0]),
    image,
    sizeof(image),
    "kernels",
    "sm_90",
    kernels,
};

static void *load(const char *threads) {
  setenv("AOTC_DEVICE", "cpu", 1);
  setenv("AOTC_CPU_THREADS", threads, 1);
  aotc_module_register(&info);
  return mgpuModuleLoad(image, sizeof(image));
}

static void launch(void *module, const char *name, intptr_t x, intptr_t y, intptr_t z,
                   int32_t shared_bytes, void *argument) {
  void *parameters[] = {&argument};
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(mgpuModuleGetFunction(module, name), x, y, z, 3, 2, 1, shared_bytes, stream,
                   parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static void check_coverage(void *module, int x, int y, int z) {
  int count = x * y * z;
  atomic_int *seen = calloc((size_t)count, sizeof(*seen));
  launch(module, "note_block", x, y, z, 0, seen);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    wrong += seen[i] == 30201 ? 0 : 1;
  }
  CHECK_INT(0, wrong);
  free(seen);
}

static void check_coverages(const char *threads) {
  void *module = load(threads);
  static const int sizes[][3] = {{1, 1, 1},    {2, 1, 1},   {1, 3, 1},  {1, 1, 5},   {7, 5, 3},
                                 {1000, 1, 1}, {1, 999, 1}, {1, 1, 77}, {17, 19, 23}};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    check_coverage(module, sizes[i][0], sizes[i][1], sizes[i][2]);
  }
  CHECK_NO_FAILURE();
}

static void every_block_runs_once(void) {
  check_coverages("4");
}

static void every_block_runs_once_in_one_thread(void) {
  check_coverages("1");
}

static void every_block_runs_once_in_many_threads(void) {
  check_coverages("61");
}

static void blocks_are_spread_over_the_threads(void) {
  void *module = load("4");
  launch(module, "note_thread", 400, 1, 1, 0, NULL);
  CHECK(the_runner_count >= 2 && the_runner_count <= 4);
}

static void one_thread_means_the_caller(void) {
  void *module = load("1");
  launch(module, "note_thread", 20, 1, 1, 0, NULL);
  CHECK_INT(1, the_runner_count);
  CHECK(pthread_equal(the_runners[0], pthread_self()));
}

static void *cover_often(void *module) {
  for (int i = 0; i < 200; ++i) {
    check_coverage(module, 50, 3, 1);
  }
  CHECK_NO_FAILURE();
  return NULL;
}

static void host_threads_launch_at_once(void) {
  void *module = load("4");
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) {
    CHECK_INT(0, pthread_create(&threads[i], NULL, cover_often, module));
  }
  for (int i = 0; i < 3; ++i) {
    CHECK_INT(0, pthread_join(threads[i], NULL));
  }
}

static void shared_memory_is_the_blocks_own(void) {
  void *module = load("4");
  atomic_int wrong = 0;
  static const int32_t sizes[] = {1, 1000, 64, 100000, 128};
  for (int i = 0; i < 5; ++i) {
    launch(module, "use_shared", 200, 1, 1, sizes[i], &wrong);
  }
  launch(module, "need_no_shared", 10, 1, 1, 0, &wrong);
  CHECK_INT(0, wrong);
  CHECK_NO_FAILURE();
}

static void launch_in_child(void *module) {
  check_coverage(module, 100, 2, 1);
  launch(module, "note_thread", 100, 1, 1, 0, NULL);
  CHECK(the_runner_count >= 2); // it has made workers of its own
  CHECK_NO_FAILURE();
}

static void child_after_fork_can_launch(void) {
  void *module = load("4");
  check_coverage(module, 100, 2, 1); // makes the workers
  CHECK(check_in_child(launch_in_child, module));
  check_coverage(module, 100, 2, 1);
}

static atomic_bool the_end;

static void *launch_until_the_end(void *module) {
  static atomic_int seen[64]; // not allocated: the children would leak it
  while (!atomic_load(&the_end)) {
    launch(module, "note_block", 64, 1, 1, 0, seen);
  }
  return NULL;
}

static void child_after_fork_amid_launches_can_launch(void) {
  void *module = load("4");
  pthread_t thread;
  CHECK_INT(0, pthread_create(&thread, NULL, launch_until_the_end, module));
  for (int i = 0; i < 20; ++i) {
    CHECK(check_in_child(launch_in_child, module));
  }
  atomic_store(&the_end, true);
  CHECK_INT(0, pthread_join(thread, NULL));
}

static void *launch_slowly(void *module) {
  launch(module, "count_slowly", 400, 1, 1, 0, NULL);
  return NULL;
}

static void launch_beside_the_parents(void *module) {
  int before = atomic_load(&the_slow_blocks);
  check_coverage(module, 100, 2, 1);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  CHECK_INT(before, atomic_load(&the_slow_blocks));
}

static void child_leaves_the_parents_launch_alone(void) {
  void *module = load("61");
  // So many workers that some have not joined the launch at the fork.
  pthread_t thread;
  CHECK_INT(0, pthread_create(&thread, NULL, launch_slowly, module));
  while (atomic_load(&the_slow_blocks) == 0) {
    sched_yield();
  }
  CHECK(check_in_child(launch_beside_the_parents, module));
  CHECK_INT(0, pthread_join(thread, NULL));
  CHECK_INT(400, atomic_load(&the_slow_blocks));
}

static void largest_grid(void *module) {
  launch(module, "find_last", 2147483647, 65535, 65535, 0, NULL);
}

static void largest_grid_does_not_overflow(void) {
  // The kernel ends the process, with 0 if its block is in the grid.
  CHECK(check_in_child(largest_grid, load("4")));
  CHECK(check_in_child(largest_grid, load("1")));
}

static void refused(void *module, intptr_t gx, intptr_t gy, intptr_t gz, intptr_t bx, intptr_t by,
                    intptr_t bz, int32_t shared_bytes, const char *why) {
  atomic_int seen[1] = {0};
  void *argument = seen;
  void *parameters[] = {&argument};
  mgpuLaunchKernel(mgpuModuleGetFunction(module, "note_block"), gx, gy, gz, bx, by, bz,
                   shared_bytes, NULL, parameters, NULL, 1);
  CHECK_INT(0, seen[0]);
  CHECK_CONTAINS(aotc_error_message(), "mgpuLaunchKernel: ");
  CHECK_CONTAINS(aotc_error_message(), "kernel 'note_block' of module 'kernels', built for sm_90");
  CHECK_FAILED(AOTC_LAUNCH_FAILED, why);
}

static void sizes_that_cuda_refuses_are_refused(void) {
  void *module = load("2");
  refused(module, 0, 1, 1, 1, 1, 1, 0, "grid 0 x 1 x 1");
  refused(module, 1, -1, 1, 1, 1, 1, 0, "grid 1 x -1 x 1");
  refused(module, 1, 1, 0, 1, 1, 1, 0, "the grid must be from");
  refused(module, 2147483648, 1, 1, 1, 1, 1, 0, "grid 2147483648 x 1 x 1");
  refused(module, 1, 65536, 1, 1, 1, 1, 0, "the grid must be from");
  refused(module, 1, 1, 65536, 1, 1, 1, 0, "the grid must be from");
  refused(module, 4294967297, 1, 1, 1, 1, 1, 0, "grid 4294967297 x 1 x 1");
  refused(module, 1, 1, 1, 0, 1, 1, 0, "a block must be from");
  refused(module, 1, 1, 1, 1025, 1, 1, 0, "block 1025 x 1 x 1");
  refused(module, 1, 1, 1, 1, 1025, 1, 0, "a block must be from");
  refused(module, 1, 1, 1, 1, 1, 65, 0, "a block must be from");
  refused(module, 1, 1, 1, 32, 33, 1, 0, "a block must be from");
  refused(module, 1, 1, 1, 1, 1, 1, -1, "must not be negative");
}

static void kernel_without_cpu_form_is_named(void) {
  launch(load("2"), "hard", 1, 1, 1, 0, NULL);
  CHECK_TEXT("mgpuLaunchKernel: kernel 'hard' of module 'kernels' cannot run on the CPU: it uses "
             "gpu.barrier; the CPU was requested",
             aotc_error_message());
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "");
}

static void kernel_that_is_not_listed_is_named(void) {
  launch(load("2"), "unheard_of", 1, 1, 1, 0, NULL);
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "kernel 'unheard_of' of module 'kernels' cannot run on the CPU: "
                                   "the module does not list it");
}

static void unregistered_module_has_no_cpu_kernels(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  launch(mgpuModuleLoad(image, sizeof(image)), "note_block", 1, 1, 1, 0, NULL);
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "the module was not registered");
}

static void registration_may_come_after_loading(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  void *module = mgpuModuleLoad(image, sizeof(image));
  aotc_module_register(&info);
  check_coverage(module, 3, 3, 3);
  CHECK_NO_FAILURE();
}

static void registration_ends_with_the_module(void) {
  void *module = load("2");
  check_coverage(module, 2, 2, 2);
  mgpuModuleUnload(module);
  launch(mgpuModuleLoad(image, sizeof(image)), "note_block", 1, 1, 1, 0, NULL);
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "the module was not registered");
}

static void unknown_description_is_refused(void) {
  aotc_module_info newer = info;
  newer.version = AOTC_MODULE_INFO_VERSION + 1;
  aotc_module_register(&newer);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "description has version 3, this runtime knows version 2");
}

static void clusters_of_one_block_run(void) {
  void *module = load("2");
  atomic_int seen[4] = {0};
  void *argument = seen;
  void *parameters[] = {&argument};
  void *function = mgpuModuleGetFunction(module, "note_block");
  mgpuLaunchClusterKernel(function, 1, 1, 1, 4, 1, 1, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_NO_FAILURE();
  CHECK_INT(30201, seen[3]);
  mgpuLaunchKernelCooperative(function, 1, 1, 1, 0, 0, 0, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_NO_FAILURE();
  CHECK_INT(60402, seen[0]);
  mgpuLaunchClusterKernel(function, 2, 1, 1, 4, 1, 1, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_CONTAINS(aotc_error_message(), "cluster 2 x 1 x 1");
  CHECK_FAILED(AOTC_UNSUPPORTED, "mgpuLaunchClusterKernel: the CPU device has no thread block "
                                 "clusters: kernel 'note_block'");
  mgpuLaunchClusterKernel(function, 3, 1, 1, 4, 1, 1, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "the grid must be whole clusters");
  mgpuLaunchKernelCooperative(function, 4, 1, 1, 0, 0, 0, 3, 2, 1, 0, NULL, parameters, NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, "the CPU device cannot run a cooperative grid");
  CHECK_INT(30201, seen[3]);
}

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
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {image, image, 0, {8}, {1}};
  int64_t box = 8;
  CHECK(mgpuTensorMapEncodeTiledMemref(1, &memref, 7, 0, 0, 0, 0, &box) == NULL);
  CHECK_FAILED(AOTC_UNSUPPORTED, "the CPU device has no TMA descriptors");
}

static void *make_event_after_failure(void *unused) {
  (void)unused;
  mgpuModuleGetFunction(NULL, "note_block");
  return mgpuEventCreate();
}

// How a failure on a thread of the async runtime reaches the thread that waits for it.
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
  launch(module, "note_block", 1, 1, 1, 0, seen);
  mgpuMemcpy(memory, &word, 4, NULL);
  mgpuMemset32(memory, 7, 1, NULL);
  CHECK_INT(6, *memory);
  CHECK_INT(0, seen[0]);
  mgpuMemFree(memory, NULL);
  void *second = mgpuModuleLoad(image, sizeof(image)); // remembering is no doing
  CHECK(second != NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuModuleGetFunction: there is no module");
  launch(second, "note_block", 1, 1, 1, 0, seen);
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
  setenv("AOTC_DEVICE", "", 1); // as if it were not set
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

static void failed_assertion_is_recorded(void) {
  aotc_assertion_failed("100% of n (a.mlir:1:2)");
  CHECK_INT(AOTC_ASSERTION_FAILED, aotc_status_get());
  CHECK_TEXT("assertion failed: 100% of n (a.mlir:1:2)", aotc_error_message());
  aotc_assertion_failed("another");
  CHECK_TEXT("assertion failed: 100% of n (a.mlir:1:2)", aotc_error_message());
  aotc_error_clear();
  CHECK_INT(AOTC_OK, aotc_status_get());
}

static void statuses_have_names(void) {
  CHECK_TEXT("AOTC_OK", aotc_status_name(AOTC_OK));
  CHECK_TEXT("AOTC_UNSUPPORTED", aotc_status_name(AOTC_UNSUPPORTED));
  CHECK_TEXT("AOTC_ASSERTION_FAILED", aotc_status_name(AOTC_ASSERTION_FAILED));
  CHECK_TEXT("AOTC_UNKNOWN", aotc_status_name((aotc_status)99));
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(every_block_runs_once),
      CHECK_TEST(every_block_runs_once_in_one_thread),
      CHECK_TEST(every_block_runs_once_in_many_threads),
      CHECK_TEST(blocks_are_spread_over_the_threads),
      CHECK_TEST(one_thread_means_the_caller),
      CHECK_TEST(host_threads_launch_at_once),
      CHECK_TEST(shared_memory_is_the_blocks_own),
      CHECK_TEST(child_after_fork_can_launch),
      CHECK_TEST(child_after_fork_amid_launches_can_launch),
      CHECK_TEST(child_leaves_the_parents_launch_alone),
      CHECK_TEST(largest_grid_does_not_overflow),
      CHECK_TEST(sizes_that_cuda_refuses_are_refused),
      CHECK_TEST(kernel_without_cpu_form_is_named),
      CHECK_TEST(kernel_that_is_not_listed_is_named),
      CHECK_TEST(unregistered_module_has_no_cpu_kernels),
      CHECK_TEST(registration_may_come_after_loading),
      CHECK_TEST(registration_ends_with_the_module),
      CHECK_TEST(unknown_description_is_refused),
      CHECK_TEST(clusters_of_one_block_run),
      CHECK_TEST(memory_is_host_memory),
      CHECK_TEST(harness_functions_work),
      CHECK_TEST(too_much_memory_is_out_of_memory),
      CHECK_TEST(tensor_maps_are_unsupported),
      CHECK_TEST(event_of_a_failed_thread_is_a_failure),
      CHECK_TEST(nothing_happens_after_a_failure),
      CHECK_TEST(first_failure_is_told),
      CHECK_TEST(device_specifications_are_checked),
      CHECK_TEST(thread_counts_are_checked),
      CHECK_TEST(failed_assertion_is_recorded),
      CHECK_TEST(statuses_have_names),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
