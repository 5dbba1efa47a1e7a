// Launches on the CPU device: each block runs once, on the allowed number of threads, also in a
// forked child. The test is run without a driver.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "cpu_module.h"
#include "mlir_cuda_runtime.h"

#define THREADS ((cpu_sizes){3, 2, 1})

static atomic_int the_slow_blocks;

static void count_slowly(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
  atomic_fetch_add(&the_slow_blocks, 1);
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// Fills its shared memory, yields to others, and checks that it is unchanged.
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

// Ends the process at the last block of a large grid, with 0 if its index is correct.
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

// Each block waits until all have started, so each needs its own thread.
#define MEETING 3

typedef struct meeting {
  atomic_int present;
  pthread_t threads[MEETING]; // of each block
} meeting;

static void meet(void *const *parameters, const aotc_cpu_block *block) {
  meeting *m = *(meeting *const *)parameters[0];
  m->threads[block->block_id[0]] = pthread_self();
  atomic_fetch_add(&m->present, 1);
  while (atomic_load(&m->present) < MEETING) {
    sched_yield();
  }
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); // enough work for all threads next time
}

// Each block waits for the previous one.
static void follow(void *const *parameters, const aotc_cpu_block *block) {
  atomic_int *done = *(atomic_int *const *)parameters[0];
  while (atomic_load(done) < (int)block->block_id[0]) {
    sched_yield();
  }
  atomic_fetch_add(done, 1);
}

static const aotc_cpu_kernel kernels[] = {
    {.name = "note_block", .run = cpu_module_note_block},
    {.name = "note_runner", .run = cpu_module_note_runner},
    {.name = "count_slowly", .run = count_slowly},
    {.name = "use_shared", .run = use_shared},
    {.name = "need_no_shared", .run = need_no_shared},
    {.name = "find_last", .run = find_last},
    {.name = "meet", .run = meet},
    {.name = "follow", .run = follow},
};

static void *load(const char *threads) {
  return cpu_module_load(kernels, sizeof(kernels) / sizeof(kernels[0]), threads);
}

static void check_coverages(const char *threads) {
  void *module = load(threads);
  static const int sizes[][3] = {{1, 1, 1},    {2, 1, 1},   {1, 3, 1},  {1, 1, 5},   {7, 5, 3},
                                 {1000, 1, 1}, {1, 999, 1}, {1, 1, 77}, {17, 19, 23}};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    cpu_module_check_coverage(module, sizes[i][0], sizes[i][1], sizes[i][2]);
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
  check_coverages("150"); // more than the maximum number of shares
}

static void blocks_are_spread_over_the_threads(void) {
  void *module = load("4");
  cpu_module_launch(module, "note_runner", (cpu_sizes){400, 1, 1}, THREADS, 0, NULL);
  CHECK(the_runner_count >= 2 && the_runner_count <= 4);
}

static void a_thread_runs_the_same_blocks_again(void) {
  void *module = load("3");
  meeting first = {0};
  cpu_module_launch(module, "meet", (cpu_sizes){MEETING, 1, 1}, THREADS, 0, &first);
  CHECK(pthread_equal(first.threads[0], pthread_self()));
  for (int i = 0; i < 20; ++i) {
    meeting again = {0};
    cpu_module_launch(module, "meet", (cpu_sizes){MEETING, 1, 1}, THREADS, 0, &again);
    for (int block = 0; block < MEETING; ++block) {
      CHECK(pthread_equal(first.threads[block], again.threads[block]));
    }
  }
}

static void blocks_may_wait_for_earlier_ones(void) {
  void *module = load("4");
  for (int i = 0; i < 100; ++i) {
    atomic_int done = 0;
    cpu_module_launch(module, "follow", (cpu_sizes){37, 1, 1}, THREADS, 0, &done);
    CHECK_INT(37, done);
  }
}

static void one_thread_means_the_caller(void) {
  void *module = load("1");
  cpu_module_launch(module, "note_runner", (cpu_sizes){20, 1, 1}, THREADS, 0, NULL);
  CHECK_INT(1, the_runner_count);
  CHECK(pthread_equal(the_runners[0], pthread_self()));
}

static void *cover_often(void *module) {
  for (int i = 0; i < 200; ++i) {
    cpu_module_check_coverage(module, 50, 3, 1);
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
    cpu_module_launch(module, "use_shared", (cpu_sizes){200, 1, 1}, THREADS, sizes[i], &wrong);
  }
  cpu_module_launch(module, "need_no_shared", (cpu_sizes){10, 1, 1}, THREADS, 0, &wrong);
  CHECK_INT(0, wrong);
  CHECK_NO_FAILURE();
}

// -------------------------------------------------------------------------------------------------
// Freed memory

#define BLOCKS 12

// Allocates blocks of different sizes, counts those that begin with `mark` after a page, and frees
// all of them, marked.
static int allocate_marked(uint64_t bytes, char mark, bool is_result) {
  char *blocks[BLOCKS];
  int found = 0;
  for (int i = 0; i < BLOCKS; ++i) {
    blocks[i] = mgpuMemAlloc(bytes + (uint64_t)i * (1 << 10), NULL, 0);
    found += blocks[i][4096] == mark;
    blocks[i][4096] = mark;
  }
  for (int i = 0; i < BLOCKS; ++i) {
    if (is_result) {
      CHECK_INT(AOTC_OK, aotc_entry_free(blocks[i]));
    } else {
      mgpuMemFree(blocks[i], NULL);
    }
  }
  return found;
}

static void freed_memory_is_kept_for_a_call_that_needs_a_little_more(void) {
  load("1");
  allocate_marked(264 << 10, 'm', false);
  CHECK_INT(BLOCKS, allocate_marked(265 << 10, 'm', false));
  CHECK_INT(BLOCKS, allocate_marked(270 << 10, 'm', false));
}

// A decoder returns two caches of each layer.
static void results_that_a_caller_frees_are_kept(void) {
  load("1");
  allocate_marked(1 << 20, 'r', true);
  CHECK_INT(BLOCKS, allocate_marked(1 << 20, 'r', true));
}

// A block that is allocated again has other pages, unless it was kept.
static void large_results_are_freed(void) {
  load("1");
  static const uint64_t bytes = (uint64_t)65 << 20;
  for (int i = 0; i < 2; ++i) {
    char *block = mgpuMemAlloc(bytes, NULL, 0);
    CHECK(block[4096] != 'l');
    block[4096] = 'l';
    CHECK_INT(AOTC_OK, aotc_entry_free(block));
  }
}

// Like generated code, on the stream of a token.
static void launch_on_stream(void *module, atomic_int *seen) {
  void *stream = mgpuStreamCreate();
  void *parameters[] = {&seen};
  aotc_concurrent_launch_prepare(&seen, sizeof(seen));
  mgpuLaunchKernel(mgpuModuleGetFunction(module, "note_block"), 1, 1, 1, 3, 2, 1, 0, stream,
                   parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static void launch_in_child(void *module) {
  static atomic_int seen;
  seen = 0;
  launch_on_stream(module, &seen);
  CHECK_INT(30201, seen);
  cpu_module_check_coverage(module, 100, 2, 1);
  cpu_module_launch(module, "note_runner", (cpu_sizes){100, 1, 1}, THREADS, 0, NULL);
  CHECK(the_runner_count >= 2); // it has created its own workers
  CHECK_NO_FAILURE();
}

static void child_after_fork_can_launch(void) {
  void *module = load("4");
  cpu_module_check_coverage(module, 100, 2, 1); // creates the workers
  static atomic_int seen;
  launch_on_stream(module, &seen); // and a thread for streams
  CHECK(check_in_child(launch_in_child, module));
  cpu_module_check_coverage(module, 100, 2, 1);
}

static atomic_bool the_end;

static void *launch_until_the_end(void *module) {
  static atomic_int seen[64]; // not allocated: the children would leak it
  while (!atomic_load(&the_end)) {
    cpu_module_launch(module, "note_block", (cpu_sizes){64, 1, 1}, THREADS, 0, seen);
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
  cpu_module_launch(module, "count_slowly", (cpu_sizes){400, 1, 1}, THREADS, 0, NULL);
  return NULL;
}

static void launch_beside_the_parents(void *module) {
  int before = atomic_load(&the_slow_blocks);
  cpu_module_check_coverage(module, 100, 2, 1);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  CHECK_INT(before, atomic_load(&the_slow_blocks));
}

static void child_leaves_the_parents_launch_alone(void) {
  void *module = load("61");
  // With this many workers, some have not joined the launch at the time of the fork.
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
  cpu_module_launch(module, "find_last", (cpu_sizes){2147483647, 65535, 65535}, THREADS, 0, NULL);
}

static void largest_grid_does_not_overflow(void) {
  // The kernel ends the process, with 0 if its block is in the grid.
  CHECK(check_in_child(largest_grid, load("4")));
  CHECK(check_in_child(largest_grid, load("1")));
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(every_block_runs_once),
      CHECK_TEST(every_block_runs_once_in_one_thread),
      CHECK_TEST(every_block_runs_once_in_many_threads),
      CHECK_TEST(blocks_are_spread_over_the_threads),
      CHECK_TEST(a_thread_runs_the_same_blocks_again),
      CHECK_TEST(blocks_may_wait_for_earlier_ones),
      CHECK_TEST(one_thread_means_the_caller),
      CHECK_TEST(host_threads_launch_at_once),
      CHECK_TEST(shared_memory_is_the_blocks_own),
      CHECK_TEST(freed_memory_is_kept_for_a_call_that_needs_a_little_more),
      CHECK_TEST(results_that_a_caller_frees_are_kept),
      CHECK_TEST(large_results_are_freed),
      CHECK_TEST(child_after_fork_can_launch),
      CHECK_TEST(child_after_fork_amid_launches_can_launch),
      CHECK_TEST(child_leaves_the_parents_launch_alone),
      CHECK_TEST(largest_grid_does_not_overflow),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
