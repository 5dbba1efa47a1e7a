// Concurrent launches of all kinds from several threads, for ThreadSanitizer: the launching thread
// reads what blocks have written to plain memory, and scratch memory is passed between launches.
//
// The optional argument is the number of launches of each thread.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "cpu_module.h"
#include "mlir_cuda_runtime.h"

#define HOST_THREADS 4
#define MAX_BLOCKS 64
#define WARP 32

static int the_launches = 300;

typedef struct results {
  int64_t of_block[MAX_BLOCKS];
  int64_t failing; // blocks from this one on fail; MAX_BLOCKS for none
} results;

static results *results_of(void *const *parameters) {
  return *(results *const *)parameters[0];
}

static int64_t count_threads(const aotc_cpu_block *block) {
  return block->block_dim[0] * block->block_dim[1] * block->block_dim[2];
}

// Fills the dynamic shared memory with numbers and adds them up.
static void add_up(void *const *parameters, const aotc_cpu_block *block) {
  results *r = results_of(parameters);
  int64_t id = block->block_id[0];
  int64_t *values = block->dynamic_shared;
  int64_t count = block->dynamic_shared_bytes / 8;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = id + i;
  }
  if (id >= r->failing) {
    block->fail(block, "as it was told", block->block_id);
  }
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += values[i];
  }
  r->of_block[id] = sum;
}

// Each lane receives the number of the previous lane, and each thread that of the previous warp's
// first thread; thread 0 sums them up. In a failing block the last thread returns before the
// barrier.
static int32_t pass_on(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                       int32_t state) {
  results *r = results_of(parameters);
  int64_t *slots = block->shared;
  int64_t *own = block->threads;
  int64_t last = count_threads(block) - 1;
  switch (state) {
  case 0:
    slots[t] = t + block->block_id[0];
    return 1;
  case 1:
    own[t] = slots[t % WARP == 0 ? t : t - 1];
    return 2;
  case 2:
    slots[t] = own[t];
    return t == last && block->block_id[0] >= r->failing ? 0 : 3;
  default:
    if (t == 0) {
      int64_t sum = 0;
      for (int64_t i = 0; i <= last; ++i) {
        sum += slots[i];
      }
      r->of_block[block->block_id[0]] = sum;
    }
    return 0;
  }
}

static const aotc_cpu_sync_point points[] = {
    {1, "a shuffle"}, {1, "a second shuffle"}, {0, "a barrier"}};
static const aotc_cpu_kernel kernels[] = {
    {.name = "add_up", .run = add_up},
    {.name = "pass_on",
     .step = pass_on,
     .shared_bytes = 8 * 1024,
     .thread_bytes = 8,
     .sync_points = points,
     .sync_point_count = 3},
};

typedef struct host_thread {
  pthread_t thread;
  void *module;
  uint32_t random;
} host_thread;

static int64_t choose(host_thread *h, int64_t count) {
  h->random = h->random * 1664525 + 1013904223;
  return (int64_t)(h->random >> 8) % count;
}

static int64_t sum_of_range(int64_t first, int64_t count) {
  return count * first + count * (count - 1) / 2;
}

static int64_t passed_on(int64_t id, int64_t threads) {
  // The first lane of a warp keeps its own number.
  int64_t firsts = (threads + WARP - 1) / WARP;
  return sum_of_range(id, threads) - threads + firsts;
}

static void check_results(const results *r, int64_t blocks, bool is_step, int64_t count) {
  int wrong = 0;
  for (int64_t id = 0; id < blocks; ++id) {
    int64_t expected = is_step ? passed_on(id, count) : sum_of_range(id, count);
    wrong += r->of_block[id] == expected ? 0 : 1;
  }
  CHECK_INT(0, wrong);
  CHECK_NO_FAILURE();
}

// Exactly one of the failing blocks is reported.
static void check_failure(const results *r, int64_t blocks, bool is_step) {
  int block = -1;
  const char *id = strstr(aotc_error_message(), ": block (");
  CHECK(id != NULL && sscanf(id, ": block (%d, 0, 0)", &block) == 1);
  CHECK(block >= r->failing && block < blocks);
  char text[128];
  if (is_step) {
    snprintf(text, sizeof(text), ": block (%d, 0, 0): deadlock: of ", block);
  } else {
    snprintf(text, sizeof(text), ": block (%d, 0, 0), thread (%d, 0, 0): as it was told; grid ",
             block, block);
  }
  CHECK_CONTAINS(aotc_error_message(), is_step ? ", 1 has ended; grid " : text);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, text);
}

static void launch_something(host_thread *h) {
  int64_t blocks = 1 + choose(h, MAX_BLOCKS);
  int64_t threads = 2 + choose(h, 99);
  int64_t shared = choose(h, 200);
  bool is_step = choose(h, 2) == 0;
  results r = {.failing = choose(h, 4) == 0 ? choose(h, blocks) : MAX_BLOCKS};
  memset(r.of_block, 0xff, sizeof(r.of_block));
  cpu_module_launch(h->module, is_step ? "pass_on" : "add_up", (cpu_sizes){blocks, 1, 1},
                    (cpu_sizes){threads, 1, 1}, (int32_t)shared * 8, &r);
  if (r.failing == MAX_BLOCKS) {
    check_results(&r, blocks, is_step, is_step ? threads : shared);
  } else {
    check_failure(&r, blocks, is_step);
  }
}

static void *launch_often(void *argument) {
  host_thread *h = argument;
  for (int i = 0; i < the_launches; ++i) {
    launch_something(h);
  }
  return NULL;
}

static void launch_from_all_threads(void *module) {
  host_thread threads[HOST_THREADS];
  for (uint32_t i = 0; i < HOST_THREADS; ++i) {
    threads[i].module = module;
    threads[i].random = i + 1;
    CHECK_INT(0, pthread_create(&threads[i].thread, NULL, launch_often, &threads[i]));
  }
  for (int i = 0; i < HOST_THREADS; ++i) {
    CHECK_INT(0, pthread_join(threads[i].thread, NULL));
  }
}

static void many_launches_at_once(void) {
  launch_from_all_threads(cpu_module_load(kernels, 2, "5"));
}

static void many_launches_at_once_without_workers(void) {
  launch_from_all_threads(cpu_module_load(kernels, 2, "1"));
}

static void *unload(void *argument) {
  (void)argument;
  aotc_unload();
  return NULL;
}

static void threads_may_unload_at_once(void) {
  cpu_module_load(kernels, 2, "5");
  for (int i = 0; i < 20; ++i) {
    results r = {.failing = MAX_BLOCKS};
    cpu_module_launch(cpu_module_load_image(), "add_up", (cpu_sizes){MAX_BLOCKS, 1, 1},
                      (cpu_sizes){64, 1, 1}, 64 * 8, &r);
    pthread_t threads[HOST_THREADS];
    for (int j = 0; j < HOST_THREADS; ++j) {
      CHECK_INT(0, pthread_create(&threads[j], NULL, unload, NULL));
    }
    for (int j = 0; j < HOST_THREADS; ++j) {
      CHECK_INT(0, pthread_join(threads[j], NULL));
    }
    CHECK_NO_FAILURE();
  }
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(many_launches_at_once),
      CHECK_TEST(many_launches_at_once_without_workers),
      CHECK_TEST(threads_may_unload_at_once),
  };
  if (argc > 1) {
    the_launches = atoi(argv[1]);
  }
  return check_main(1, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
