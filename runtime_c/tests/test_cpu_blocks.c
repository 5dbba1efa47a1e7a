// What a block gets on the CPU device: its own memory, a stack, its size, and a way to fail.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "aotc_runtime.h"
#include "check.h"
#include "cpu_module.h"
#include "mlir_cuda_runtime.h"

#define ONE ((cpu_sizes){1, 1, 1})

static void *pointer_of(void *const *parameters) {
  return *(void *const *)parameters[0];
}

// -------------------------------------------------------------------------------------------------
// Kernels

static void count(void *const *parameters, const aotc_cpu_block *block) {
  (void)block;
  atomic_fetch_add((atomic_int *)pointer_of(parameters), 1);
}

// What a block observes about its memory.
typedef struct memory_report {
  atomic_int wrong;
  _Atomic(void *) shared; // of the latest block
} memory_report;

static void check_piece(memory_report *report, const void *piece, size_t bytes) {
  bool is_right = bytes == 0 ? piece == NULL : piece != NULL && (uintptr_t)piece % 128 == 0;
  atomic_fetch_add(&report->wrong, is_right ? 0 : 1);
}

static void check_mark(memory_report *report, const unsigned char *piece, size_t bytes,
                       unsigned char mark) {
  int wrong = 0;
  for (size_t i = 0; i < bytes; ++i) {
    wrong += piece[i] == mark ? 0 : 1;
  }
  atomic_fetch_add(&report->wrong, wrong);
}

// Fills all its memory, yields to others, and checks that it is unchanged.
static void use_memory(void *const *parameters, const aotc_cpu_block *block, size_t shared_bytes,
                       size_t thread_bytes) {
  memory_report *report = pointer_of(parameters);
  size_t dynamic_bytes = (size_t)block->dynamic_shared_bytes;
  int64_t threads = block->block_dim[0] * block->block_dim[1] * block->block_dim[2];
  size_t threads_bytes = (size_t)(threads + 31) / 32 * 32 * thread_bytes;
  check_piece(report, block->dynamic_shared, dynamic_bytes);
  check_piece(report, block->shared, shared_bytes);
  check_piece(report, block->threads, threads_bytes);
  if (atomic_load(&report->wrong) > 0) {
    return;
  }
  unsigned char mark = (unsigned char)(block->block_id[0] % 80 * 3);
  if (dynamic_bytes > 0) {
    memset(block->dynamic_shared, mark, dynamic_bytes);
  }
  if (shared_bytes > 0) {
    memset(block->shared, mark + 1, shared_bytes);
  }
  if (threads_bytes > 0) {
    memset(block->threads, mark + 2, threads_bytes);
  }
  sched_yield();
  check_mark(report, block->dynamic_shared, dynamic_bytes, mark);
  check_mark(report, block->shared, shared_bytes, (unsigned char)(mark + 1));
  check_mark(report, block->threads, threads_bytes, (unsigned char)(mark + 2));
  atomic_store(&report->shared, block->shared);
}

static void use_all_memory(void *const *parameters, const aotc_cpu_block *block) {
  use_memory(parameters, block, 1000, 72);
}

static void use_shared(void *const *parameters, const aotc_cpu_block *block) {
  use_memory(parameters, block, 1, 0);
}

static void use_threads(void *const *parameters, const aotc_cpu_block *block) {
  use_memory(parameters, block, 0, 1);
}

static void use_dynamic(void *const *parameters, const aotc_cpu_block *block) {
  use_memory(parameters, block, 0, 0);
}

// The scratch memory of a step function must be distinct from its states' memory.
static int32_t step_over_memory(void *const *parameters, const aotc_cpu_block *block,
                                int64_t thread, int32_t state) {
  if (state < 5) {
    if (thread % 50 == 0) {
      use_memory(parameters, block, 130, 24);
    }
    return state + 1;
  }
  return 0;
}

// Fails in every block, on the thread with the block's id, with a message in a stack buffer.
static void fail_everywhere(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  char message[64];
  snprintf(message, sizeof(message), "block %d failed", (int)block->block_id[0]);
  block->fail(block, message, block->block_id);
}

// Counts the blocks; the block numbered by the second int fails, deep in a recursion.
static int fail_deep_down(const aotc_cpu_block *block, int depth) {
  if (depth > 0) {
    return fail_deep_down(block, depth - 1) + 1;
  }
  if (block->grid_dim[0] > 0) {
    block->fail(block, "deep down", (const int64_t[3]){1, 2, 3});
  }
  return 0;
}

static void fail_in_one(void *const *parameters, const aotc_cpu_block *block) {
  atomic_int *counter = pointer_of(parameters);
  int64_t number =
      block->block_id[0] +
      block->grid_dim[0] * (block->block_id[1] + block->grid_dim[1] * block->block_id[2]);
  if (number == atomic_load(&counter[1])) {
    atomic_fetch_add(&counter[0], fail_deep_down(block, 1000));
  }
  atomic_fetch_add(&counter[0], 1);
}

static void fail_at_length(void *const *parameters, const aotc_cpu_block *block) {
  block->fail(block, pointer_of(parameters), (const int64_t[3]){0});
}

static pthread_t the_launcher;

// Escapes, so that the compiler cannot merge the frames below.
static _Thread_local volatile char *volatile the_frame;

// Uses `kibibytes` of the stack, in frames of 4.
__attribute__((noinline)) static int use_stack(int kibibytes) {
  volatile char frame[4096];
  the_frame = frame;
  frame[0] = (char)kibibytes;
  frame[4095] = 1;
  return kibibytes <= 0 ? frame[4095] : use_stack(kibibytes - 4) + frame[4095];
}

// Only on the runtime's own threads; counts them.
static void use_worker_stack(void *const *parameters, const aotc_cpu_block *block) {
  (void)block;
  atomic_int *arguments = pointer_of(parameters);
  if (pthread_equal(pthread_self(), the_launcher)) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  } else if (use_stack(atomic_load(&arguments[1])) > 0) {
    atomic_fetch_add(&arguments[0], 1);
  }
}

// Checks the guards of the runtime's own threads; counts those with a wide one.
static void check_guard(void *const *parameters, const aotc_cpu_block *block) {
  (void)block;
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_equal(pthread_self(), the_launcher)) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  } else if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    bool is_wide = pthread_attr_getguardsize(&attributes, &bytes) == 0 && bytes >= 1024 * 1024;
    atomic_fetch_add((atomic_int *)pointer_of(parameters), is_wide ? 1 : 0);
    pthread_attr_destroy(&attributes);
  }
}

static int32_t pass(void *const *parameters, const aotc_cpu_block *block, int64_t thread,
                    int32_t state) {
  (void)parameters;
  (void)state;
  const int64_t *id = block->block_id;
  if (id[0] == 200000 && thread == 1) {
    block->fail(block, "far enough", (const int64_t[3]){1, 0, 0});
  }
  return 0;
}

static const aotc_cpu_sync_point barriers[5] = {{0, "0"}, {0, "1"}, {0, "2"}, {0, "3"}, {0, "4"}};
static const aotc_cpu_kernel kernels[] = {
    {.name = "count", .run = count},
    {.name = "count_warps", .run = count, .block_dim = {32, 4, 1}},
    {.name = "count_rows", .run = count, .block_dim = {0, 2, 0}},
    {.name = "use_all_memory", .run = use_all_memory, .shared_bytes = 1000, .thread_bytes = 72},
    {.name = "use_shared", .run = use_shared, .shared_bytes = 1},
    {.name = "use_threads", .run = use_threads, .thread_bytes = 1},
    {.name = "use_dynamic", .run = use_dynamic},
    {.name = "step_over_memory",
     .step = step_over_memory,
     .shared_bytes = 130,
     .thread_bytes = 24,
     .sync_points = barriers,
     .sync_point_count = 5},
    {.name = "too_much_shared", .run = count, .shared_bytes = UINT64_MAX - 100},
    {.name = "too_much_for_threads", .run = count, .thread_bytes = UINT64_MAX / 32 + 1},
    {.name = "too_much_together",
     .run = count,
     .shared_bytes = UINT64_MAX / 2,
     .thread_bytes = UINT64_MAX / 64},
    {.name = "too_much_for_all", .run = count, .shared_bytes = (uint64_t)1 << 62},
    {.name = "too_much_for_this_machine", .run = count, .shared_bytes = (uint64_t)1 << 57},
    {.name = "fail_everywhere", .run = fail_everywhere},
    {.name = "fail_in_one", .run = fail_in_one},
    {.name = "fail_at_length", .run = fail_at_length},
    {.name = "note_runner", .run = cpu_module_note_runner},
    {.name = "use_worker_stack", .run = use_worker_stack},
    {.name = "check_guard", .run = check_guard},
    {.name = "pass", .step = pass},
};

static void *load(const char *threads) {
  return cpu_module_load(kernels, sizeof(kernels) / sizeof(kernels[0]), threads);
}

// -------------------------------------------------------------------------------------------------
// Memory

static void memory_is_the_blocks_own(void) {
  void *module = load("4");
  memory_report report = {0};
  static const cpu_sizes blocks[] = {{1, 1, 1}, {33, 1, 1}, {8, 8, 2}, {1024, 1, 1}};
  for (int i = 0; i < 4; ++i) {
    cpu_sizes grid = {100, 1, 1};
    cpu_module_launch(module, "use_all_memory", grid, blocks[i], 0, &report);
    cpu_module_launch(module, "use_shared", grid, blocks[i], 0, &report);
    cpu_module_launch(module, "use_threads", grid, blocks[i], 1, &report);
    cpu_module_launch(module, "use_dynamic", grid, blocks[i], 0, &report);
    cpu_module_launch(module, "use_dynamic", grid, blocks[i], 100000, &report);
    cpu_module_launch(module, "use_all_memory", grid, blocks[i], 129, &report);
    cpu_module_launch(module, "step_over_memory", grid, blocks[i], 3, &report);
    CHECK_INT(0, report.wrong);
    CHECK_NO_FAILURE();
  }
}

static void memory_is_kept_for_the_next_launch(void) {
  void *module = load("1");
  memory_report report = {0};
  cpu_module_launch(module, "use_all_memory", ONE, ONE, 0, &report);
  void *first = report.shared;
  for (int i = 0; i < 100; ++i) {
    cpu_module_launch(module, "use_shared", ONE, ONE, 0, &report);
    CHECK(report.shared == first);
  }
  CHECK_INT(0, report.wrong);
}

static void check_no_memory(void *module, const char *name, const char *message) {
  atomic_int counter = 0;
  cpu_module_launch(module, name, (cpu_sizes){8, 1, 1}, (cpu_sizes){32, 1, 1}, 64, &counter);
  CHECK_INT(0, counter);
  CHECK_CONTAINS(aotc_error_message(), name);
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, message);
  cpu_module_launch(module, "count", (cpu_sizes){8, 1, 1}, ONE, 0, &counter);
  CHECK_INT(8, counter);
  CHECK_NO_FAILURE();
}

static void too_much_memory_is_out_of_memory(void) {
  void *module = load("4");
  check_no_memory(module, "too_much_shared",
                  "no memory holds a block of kernel 'too_much_shared': 32 x 1 x 1 threads of 0 "
                  "bytes each, 18446744073709551515 bytes of shared memory");
  check_no_memory(module, "too_much_for_threads", "no memory holds a block of kernel");
  check_no_memory(module, "too_much_together", "no memory holds a block of kernel");
  check_no_memory(module, "too_much_for_all",
                  "no host memory for kernel 'too_much_for_all': 4611686018427388032 bytes of "
                  "scratch memory for each of 4 threads that run its blocks");
  check_no_memory(module, "too_much_for_this_machine", "no host memory for kernel");
}

// -------------------------------------------------------------------------------------------------
// Sizes

static void block_of_another_size_is_refused(void) {
  void *module = load("2");
  atomic_int counter = 0;
  cpu_module_launch(module, "count_warps", (cpu_sizes){3, 1, 1}, (cpu_sizes){32, 4, 1}, 0,
                    &counter);
  CHECK_NO_FAILURE();
  CHECK_INT(3, counter);
  static const cpu_sizes wrong[] = {{32, 1, 4}, {32, 4, 2}, {16, 4, 1}, {128, 1, 1}};
  for (int i = 0; i < 4; ++i) {
    cpu_module_launch(module, "count_warps", (cpu_sizes){3, 1, 1}, wrong[i], 0, &counter);
    CHECK_CONTAINS(aotc_error_message(), "kernel 'count_warps' of module 'kernels'");
    CHECK_FAILED(AOTC_INVALID_ARGUMENT,
                 "mgpuLaunchKernel: the kernel was made for blocks of 32 x 4 x 1: kernel");
  }
  cpu_module_launch(module, "count_warps", ONE, (cpu_sizes){16, 4, 1}, 0, &counter);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "block 16 x 4 x 1");
  CHECK_INT(3, counter);
}

static void sizes_that_are_0_may_be_any(void) {
  void *module = load("2");
  atomic_int counter = 0;
  cpu_module_launch(module, "count_rows", ONE, (cpu_sizes){7, 2, 3}, 0, &counter);
  cpu_module_launch(module, "count_rows", ONE, (cpu_sizes){1, 2, 1}, 0, &counter);
  CHECK_NO_FAILURE();
  cpu_module_launch(module, "count_rows", ONE, (cpu_sizes){2, 1, 1}, 0, &counter);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "block 2 x 1 x 1");
  CHECK_INT(2, counter);
}

static void largest_grid_needs_no_more_memory(void) {
  void *module = load("4");
  struct rusage before;
  struct rusage after;
  CHECK_INT(0, getrusage(RUSAGE_SELF, &before));
  cpu_module_launch(module, "pass", (cpu_sizes){2147483647, 65535, 65535}, (cpu_sizes){32, 1, 1}, 0,
                    NULL);
  CHECK_INT(0, getrusage(RUSAGE_SELF, &after));
  // Chunks are long in this grid: a failure must end all of them early.
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "thread (1, 0, 0): far enough; grid 2147483647 x 65535 x 65535");
  CHECK(after.ru_maxrss - before.ru_maxrss < 16 * 1024);
}

// -------------------------------------------------------------------------------------------------
// Failures

static void failed_thread_is_told(void) {
  void *module = load("1");
  atomic_int counter[2] = {0, 7};
  cpu_module_launch(module, "fail_in_one", (cpu_sizes){3, 2, 5}, (cpu_sizes){4, 4, 4}, 0, counter);
  CHECK_INT(AOTC_LAUNCH_FAILED, aotc_status_get());
  CHECK_TEXT("mgpuLaunchKernel: kernel 'fail_in_one': block (1, 0, 1), thread (1, 2, 3): deep "
             "down; grid 3 x 2 x 5, block 4 x 4 x 4",
             aotc_error_message());
  // With one thread, blocks run in order: those before the failing one have run, later ones have
  // not.
  CHECK_INT(7, counter[0]);
  aotc_error_clear();
  atomic_store(&counter[1], -1);
  cpu_module_launch(module, "fail_in_one", (cpu_sizes){3, 2, 5}, ONE, 0, counter);
  CHECK_INT(7 + 30, counter[0]);
  CHECK_NO_FAILURE();
}

static void check_one_of_many_failures(void *module, int blocks) {
  cpu_module_launch(module, "fail_everywhere", (cpu_sizes){blocks, 1, 1}, ONE, 0, NULL);
  int block = -1;
  int thread = -1;
  int told = -1;
  CHECK_INT(3, sscanf(aotc_error_message(),
                      "mgpuLaunchKernel: kernel 'fail_everywhere': block (%d, 0, 0), thread (%d, "
                      "0, 0): block %d failed; grid",
                      &block, &thread, &told));
  CHECK(block >= 0 && block < blocks && thread == block && told == block);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "; grid ");
}

static void one_of_many_failures_is_told(void) {
  void *module = load("8");
  for (int i = 0; i < 300; ++i) {
    check_one_of_many_failures(module, 1 + i % 40);
  }
}

static void failure_leaves_the_workers_in_place(void) {
  void *module = load("4");
  for (int i = 0; i < 50; ++i) {
    check_one_of_many_failures(module, 100);
  }
  atomic_int counter = 0;
  cpu_module_launch(module, "count", (cpu_sizes){1000, 1, 1}, ONE, 0, &counter);
  CHECK_INT(1000, counter);
  cpu_module_launch(module, "note_runner", (cpu_sizes){400, 1, 1}, ONE, 0, NULL);
  CHECK(the_runner_count >= 2 && the_runner_count <= 4);
  CHECK_NO_FAILURE();
}

static void *fail_often(void *module) {
  for (int i = 0; i < 200; ++i) {
    check_one_of_many_failures(module, 50);
  }
  return NULL;
}

static void *count_often(void *module) {
  for (int i = 0; i < 200; ++i) {
    atomic_int counter = 0;
    cpu_module_launch(module, "count", (cpu_sizes){10, 3, 2}, ONE, 0, &counter);
    CHECK_INT(60, counter);
  }
  CHECK_NO_FAILURE();
  return NULL;
}

static void failure_is_of_its_launch_alone(void) {
  void *module = load("4");
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    CHECK_INT(0, pthread_create(&threads[i], NULL, i % 2 == 0 ? fail_often : count_often, module));
  }
  for (int i = 0; i < 4; ++i) {
    CHECK_INT(0, pthread_join(threads[i], NULL));
  }
  CHECK_NO_FAILURE(); // other threads' failures are separate
}

static void nothing_runs_after_a_failure(void) {
  void *module = load("2");
  atomic_int counter = 0;
  cpu_module_launch(module, "fail_everywhere", ONE, ONE, 0, NULL);
  cpu_module_launch(module, "count", ONE, ONE, 0, &counter);
  CHECK_INT(0, counter);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "block 0 failed");
}

static void long_message_is_cut(void) {
  void *module = load("1");
  static char text[100000];
  memset(text, 'x', sizeof(text) - 1);
  cpu_module_launch(module, "fail_at_length", ONE, ONE, 0, text);
  size_t length = strlen(aotc_error_message());
  CHECK(length > 1000 && length < 4096);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "thread (0, 0, 0): xxxx");
}

// -------------------------------------------------------------------------------------------------
// Stacks

// Makes the default stack small, as with other C libraries or `ulimit -s`.
static void make_default_stack_small(void) {
  pthread_attr_t attributes;
  CHECK_INT(0, pthread_attr_init(&attributes));
  CHECK_INT(0, pthread_attr_setstacksize(&attributes, 128 * 1024));
  CHECK_INT(0, pthread_setattr_default_np(&attributes));
  CHECK_INT(0, pthread_attr_destroy(&attributes));
}

static void launch_on_workers(const char *kernel, int kibibytes) {
  make_default_stack_small();
  void *module = load("3");
  the_launcher = pthread_self();
  atomic_int arguments[2] = {0, kibibytes};
  cpu_module_launch(module, kernel, (cpu_sizes){200, 1, 1}, ONE, 0, arguments);
  CHECK_NO_FAILURE();
  CHECK(arguments[0] > 0);
}

static void workers_have_8_mebibytes_of_stack(void) {
  launch_on_workers("use_worker_stack", 7 * 1024);
}

static void stack_is_guarded(void) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    launch_on_workers("use_worker_stack", 1024 * 1024);
    _exit(0);
  }
  int status = 0;
  CHECK_INT(child, waitpid(child, &status, 0));
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  launch_on_workers("check_guard", 0);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(memory_is_the_blocks_own),
      CHECK_TEST(memory_is_kept_for_the_next_launch),
      CHECK_TEST(too_much_memory_is_out_of_memory),
      CHECK_TEST(block_of_another_size_is_refused),
      CHECK_TEST(sizes_that_are_0_may_be_any),
      CHECK_TEST(largest_grid_needs_no_more_memory),
      CHECK_TEST(failed_thread_is_told),
      CHECK_TEST(one_of_many_failures_is_told),
      CHECK_TEST(failure_leaves_the_workers_in_place),
      CHECK_TEST(failure_is_of_its_launch_alone),
      CHECK_TEST(nothing_runs_after_a_failure),
      CHECK_TEST(long_message_is_cut),
      CHECK_TEST(workers_have_8_mebibytes_of_stack),
      CHECK_TEST(stack_is_guarded),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
