// The scheduler of step functions: scheduling order, waiting, and deadlocks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_runtime.h"
#include "check.h"
#include "cpu_module.h"
#include "mlir_cuda_runtime.h"

#define MAX_THREADS 1024
#define WARP 32
#define ONE ((cpu_sizes){1, 1, 1})

static int64_t count_threads(const aotc_cpu_block *block) {
  return block->block_dim[0] * block->block_dim[1] * block->block_dim[2];
}

static void *pointer_of(void *const *parameters) {
  return *(void *const *)parameters[0];
}

// -------------------------------------------------------------------------------------------------
// Kernels. Each step function is preceded by its kernel's code; the numbers are those of the
// points.

// A tree: s[t] = t + 1; for (n = size / 2; barrier 0, n > 0; n /= 2) if (t < n) s[t] += s[t + n];
// if (t == 0) out[block] = s[0]. The number of threads is a power of 2.
static int32_t reduce(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                      int32_t state) {
  int64_t *s = block->shared;
  int64_t *n = (int64_t *)block->threads + t;
  if (state == 0) {
    s[t] = t + 1;
    *n = count_threads(block) / 2;
    return 1;
  }
  if (*n == 0) {
    if (t == 0) {
      ((int64_t *)pointer_of(parameters))[block->block_id[0]] = s[0];
    }
    return 0;
  }
  if (t < *n) {
    s[t] += s[t + *n];
  }
  *n /= 2;
  return 1;
}

// Exchanges as shuffles do: slot[lane] = value; warp_sync 0; got = slot[from]; warp_sync 1. Three
// times, with increasing distance; afterwards out[t] = value.
static int32_t exchange(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                        int32_t state) {
  struct {
    int64_t value, distance;
  } *own = (void *)((char *)block->threads + t * 16);
  int64_t *slots = (int64_t *)block->shared + t / WARP * WARP;
  int64_t last = count_threads(block) - 1;
  int64_t from = t / WARP * WARP + (t % WARP ^ own->distance);
  switch (state) {
  case 0:
    own->value = t;
    own->distance = 1;
    break;
  case 1:
    own->value = own->value * 3 + slots[(from < last ? from : last) % WARP];
    return 2;
  default:
    own->distance *= 2;
    if (own->distance > 4) {
      ((int64_t *)pointer_of(parameters))[t] = own->value;
      return 0;
    }
  }
  slots[t % WARP] = own->value;
  return 1;
}

// if (t % 32 < 16) { warp_sync 0; warp_sync 1; } else if (t % 32 < 24) { warp_sync 2; }
// slot[lane] = t; warp_sync 3; out[t] = slot[31 - lane]; warp_sync 4
static int32_t rejoin(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                      int32_t state) {
  int64_t *slots = (int64_t *)block->shared + t / WARP * WARP;
  int64_t lane = t % WARP;
  switch (state) {
  case 0:
    if (lane < 24) {
      return lane < 16 ? 1 : 3;
    }
    break;
  case 1:
    return 2;
  case 2:
  case 3:
    break;
  case 4:
    ((int64_t *)pointer_of(parameters))[t] = slots[31 - lane];
    return 5;
  default:
    return 0;
  }
  slots[lane] = t;
  return 4;
}

// for (i = 0; i < t % 5; ++i) warp_sync 0; slot[lane] = t; warp_sync 1; out[t] = slot[31 - lane];
// if (t % 2) { warp_sync 2; } barrier 3; if (t % 3 == 0) warp_sync 4
static int32_t uneven(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                      int32_t state) {
  int64_t *slots = (int64_t *)block->shared + t / WARP * WARP;
  int64_t *i = (int64_t *)block->threads + t;
  switch (state) {
  case 0:
  case 1:
    *i = state == 0 ? 0 : *i + 1;
    if (*i < t % 5) {
      return 1;
    }
    slots[t % WARP] = t;
    return 2;
  case 2:
    ((int64_t *)pointer_of(parameters))[t] = slots[31 - t % WARP];
    return t % 2 == 1 ? 3 : 4;
  case 3:
    return 4;
  case 4:
    return t % 3 == 0 ? 5 : 0;
  default:
    return 0;
  }
}

// A trace of what ran.
typedef struct event {
  int64_t thread;
  int32_t state;
} event;

typedef struct event_log {
  int count;
  event events[4096];
} event_log;

static void note(void *const *parameters, int64_t thread, int32_t state) {
  event_log *log = pointer_of(parameters);
  log->events[log->count++] = (event){thread, state};
}

// warp_sync 0; barrier 1; barrier 1
static int32_t note_turns(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                          int32_t state) {
  int32_t *barriers = (int32_t *)block->threads + t;
  note(parameters, t, state);
  if (state == 0) {
    *barriers = 0;
    return 1;
  }
  return (*barriers)++ < 2 ? 2 : 0;
}

// if (t % 3 == 0) return; warp_sync 0
static int32_t leave_early(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                           int32_t state) {
  (void)block;
  note(parameters, t, state);
  return state == 0 && t % 3 != 0 ? 1 : 0;
}

// No synchronization.
static int32_t pass(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                    int32_t state) {
  (void)block;
  note(parameters, t, state);
  return 0;
}

// if (block == 5 && t < 12) return; barrier 0
static int32_t stay_away(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                         int32_t state) {
  (void)parameters;
  return state == 0 && !(block->block_id[0] == 5 && t < 12) ? 1 : 0;
}

// if (t == 40) barrier 0; else if (t < 64) barrier 1; else warp_sync 2
static int32_t miss(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                    int32_t state) {
  (void)parameters;
  (void)block;
  if (state != 0) {
    return 0;
  }
  return t == 40 ? 1 : t < 64 ? 2 : 3;
}

// for (i = 0; i < 10 + (t == 7); ++i) barrier 0
static int32_t count_wrong(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                           int32_t state) {
  (void)parameters;
  int64_t *i = (int64_t *)block->threads + t;
  *i = state == 0 ? 0 : *i + 1;
  return *i < 10 + (t == 7 ? 1 : 0) ? 1 : 0;
}

// barrier 0; if (t == 3) fail
static int32_t fail_behind_barrier(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                                   int32_t state) {
  (void)parameters;
  if (state == 0) {
    return 1;
  }
  if (t == 3) {
    block->fail(block, "assertion failed: n > 0 (a.mlir:3:4)", (const int64_t[3]){3, 0, 0});
  }
  return 0;
}

static const aotc_cpu_sync_point barriers[] = {{0, "gpu.barrier at a.mlir:1:2"}};
static const aotc_cpu_sync_point warp_syncs[] = {
    {1, "gpu.shuffle at a.mlir:1:2"}, {1, "gpu.shuffle at a.mlir:3:4"},
    {1, "gpu.shuffle at a.mlir:5:6"}, {1, "gpu.shuffle at a.mlir:7:8"},
    {1, "gpu.shuffle at a.mlir:9:1"},
};
static const aotc_cpu_sync_point uneven_points[] = {
    {1, "gpu.shuffle at a.mlir:1:2"}, {1, "gpu.shuffle at a.mlir:3:4"},
    {1, "gpu.shuffle at a.mlir:5:6"}, {0, "gpu.barrier at a.mlir:7:8"},
    {1, "gpu.shuffle at a.mlir:9:1"},
};
static const aotc_cpu_sync_point note_points[] = {
    {1, "gpu.shuffle at a.mlir:1:2"},
    {0, "gpu.barrier at a.mlir:3:4"},
};
static const aotc_cpu_sync_point miss_points[] = {
    {0, "gpu.barrier at a.mlir:1:2"},
    {0, "gpu.barrier at a.mlir:3:4"},
    {1, "gpu.shuffle at a.mlir:5:6"},
};

#define POINTS(points)                                                                             \
  .sync_points = (points), .sync_point_count = sizeof(points) / sizeof((points)[0])

// The first warp waits at barrier *parameter; the others arrive at it and end.
static int32_t wait_for_others(void *const *parameters, const aotc_cpu_block *block, int64_t t,
                               int32_t state) {
  if (state != 0) {
    return 0;
  }
  block->arrive(block, t, (int32_t)*(const int64_t *)pointer_of(parameters), 96);
  return t < WARP ? 1 : 0;
}

static const aotc_cpu_sync_point named_points[] = {
    {AOTC_SYNC_NAMED, "the named barrier at a.mlir:1:2"},
};

static const aotc_cpu_kernel kernels[] = {
    {.name = "wait_for_others", .step = wait_for_others, POINTS(named_points)},
    {.name = "reduce",
     .step = reduce,
     .shared_bytes = 8 * MAX_THREADS,
     .thread_bytes = 8,
     POINTS(barriers)},
    {.name = "exchange",
     .step = exchange,
     .shared_bytes = 8 * MAX_THREADS,
     .thread_bytes = 16,
     POINTS(warp_syncs)},
    {.name = "rejoin", .step = rejoin, .shared_bytes = 8 * MAX_THREADS, POINTS(warp_syncs)},
    {.name = "uneven",
     .step = uneven,
     .shared_bytes = 8 * MAX_THREADS,
     .thread_bytes = 8,
     POINTS(uneven_points)},
    {.name = "note_turns", .step = note_turns, .thread_bytes = 4, POINTS(note_points)},
    {.name = "leave_early", .step = leave_early, POINTS(warp_syncs)},
    {.name = "pass", .step = pass},
    {.name = "stay_away", .step = stay_away, POINTS(barriers)},
    {.name = "miss", .step = miss, POINTS(miss_points)},
    {.name = "count_wrong", .step = count_wrong, .thread_bytes = 8, POINTS(barriers)},
    {.name = "fail_behind_barrier", .step = fail_behind_barrier, POINTS(barriers)},
};

static void *load(const char *threads) {
  return cpu_module_load(kernels, sizeof(kernels) / sizeof(kernels[0]), threads);
}

// -------------------------------------------------------------------------------------------------
// Legal programs

static void check_reductions(void *module, cpu_sizes block, int blocks) {
  int64_t sums[500] = {0};
  cpu_module_launch(module, "reduce", (cpu_sizes){blocks, 1, 1}, block, 0, sums);
  int64_t count = block.x * block.y * block.z;
  int wrong = 0;
  for (int i = 0; i < blocks; ++i) {
    wrong += sums[i] == count * (count + 1) / 2 ? 0 : 1;
  }
  CHECK_INT(0, wrong);
  CHECK_NO_FAILURE();
}

static void barriers_in_a_loop(void) {
  void *module = load("4");
  for (int size = 1; size <= 1024; size *= 2) {
    check_reductions(module, (cpu_sizes){size, 1, 1}, 20);
  }
  check_reductions(module, (cpu_sizes){4, 4, 4}, 500);
  check_reductions(module, (cpu_sizes){1, 1024, 1}, 500);
  check_reductions(module, (cpu_sizes){8, 2, 64}, 3);
}

// The reference for `exchange`, with all lanes of a warp in lockstep.
static void exchange_at_once(int64_t *values, int64_t count) {
  for (int64_t t = 0; t < count; ++t) {
    values[t] = t;
  }
  for (int64_t distance = 1; distance <= 4; distance *= 2) {
    int64_t before[MAX_THREADS];
    memcpy(before, values, sizeof(before));
    for (int64_t t = 0; t < count; ++t) {
      int64_t from = t / WARP * WARP + (t % WARP ^ distance);
      from = from < count - 1 ? from : count - 1;
      values[t] = before[t] * 3 + before[from];
    }
  }
}

static void lanes_exchange_values(void) {
  void *module = load("1");
  static const int sizes[] = {32, 1024, 1, 31, 33, 40, 95};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    int64_t expected[MAX_THREADS] = {0};
    int64_t got[MAX_THREADS] = {0};
    exchange_at_once(expected, sizes[i]);
    cpu_module_launch(module, "exchange", ONE, (cpu_sizes){sizes[i], 1, 1}, 0, got);
    CHECK_INT(0, memcmp(expected, got, sizeof(got)));
    CHECK_NO_FAILURE();
  }
}

static void check_mirrored(void *module, const char *name) {
  int64_t got[MAX_THREADS] = {0};
  cpu_module_launch(module, name, ONE, (cpu_sizes){MAX_THREADS, 1, 1}, 0, got);
  int wrong = 0;
  for (int64_t t = 0; t < MAX_THREADS; ++t) {
    wrong += got[t] == t / WARP * WARP + 31 - t % WARP ? 0 : 1;
  }
  CHECK_INT(0, wrong);
  CHECK_NO_FAILURE();
}

static void lanes_meet_behind_a_branch(void) {
  check_mirrored(load("1"), "rejoin");
}

static void lanes_meet_behind_loops_of_their_own(void) {
  check_mirrored(load("1"), "uneven");
}

static void turns_are_taken_in_order(void) {
  static event_log log;
  cpu_module_launch(load("1"), "note_turns", ONE, (cpu_sizes){5, 7, 2}, 0, &log);
  CHECK_NO_FAILURE();
  static event expected[4096];
  int count = 0;
  for (int first = 0; first < 70; first += WARP) {
    // A warp continues at its own synchronizations before the next warp runs.
    for (int32_t state = 0; state < 2; ++state) {
      for (int t = first; t < 70 && t < first + WARP; ++t) {
        expected[count++] = (event){t, state};
      }
    }
  }
  for (int round = 0; round < 2; ++round) {
    for (int t = 0; t < 70; ++t) {
      expected[count++] = (event){t, 2};
    }
  }
  CHECK_INT(count, log.count);
  for (int i = 0; i < count; ++i) {
    CHECK_INT(expected[i].thread, log.events[i].thread);
    CHECK_INT(expected[i].state, log.events[i].state);
  }
}

static void lanes_need_not_wait_for_those_that_ended(void) {
  static event_log log;
  cpu_module_launch(load("1"), "leave_early", ONE, (cpu_sizes){64, 1, 1}, 0, &log);
  CHECK_NO_FAILURE();
  CHECK_INT(64 + 42, log.count);
}

static void threads_need_not_wait(void) {
  static event_log log;
  cpu_module_launch(load("1"), "pass", (cpu_sizes){2, 1, 1}, (cpu_sizes){100, 1, 1}, 0, &log);
  CHECK_NO_FAILURE();
  CHECK_INT(200, log.count);
  for (int i = 0; i < log.count; ++i) {
    CHECK_INT(i % 100, log.events[i].thread);
    CHECK_INT(0, log.events[i].state);
  }
}

// -------------------------------------------------------------------------------------------------
// Deadlocks and failures

static void barrier_not_reached_by_all_is_named(void) {
  void *module = load("4");
  cpu_module_launch(module, "stay_away", (cpu_sizes){9, 1, 1}, (cpu_sizes){16, 3, 1}, 0, NULL);
  CHECK_TEXT("mgpuLaunchKernel: kernel 'stay_away': block (5, 0, 0): deadlock: of 48 threads, 36 "
             "wait at gpu.barrier at a.mlir:1:2, 12 have ended; grid 9 x 1 x 1, block 16 x 3 x 1",
             aotc_error_message());
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "");
  cpu_module_launch(module, "stay_away", (cpu_sizes){5, 1, 1}, (cpu_sizes){16, 3, 1}, 0, NULL);
  CHECK_NO_FAILURE();
}

static void barriers_that_differ_are_named(void) {
  cpu_module_launch(load("1"), "miss", ONE, (cpu_sizes){70, 1, 1}, 0, NULL);
  CHECK_FAILED(AOTC_LAUNCH_FAILED,
               "kernel 'miss': block (0, 0, 0): deadlock: of 70 threads, 1 waits at gpu.barrier at "
               "a.mlir:1:2, 63 wait at gpu.barrier at a.mlir:3:4, 6 have ended; grid");
}

static void named_barriers_count_whole_warps(void) {
  void *module = load("1");
  int64_t barrier = 15;
  cpu_module_launch(module, "wait_for_others", ONE, (cpu_sizes){70, 1, 1}, 0, &barrier);
  CHECK_NO_FAILURE();
  cpu_module_launch(module, "wait_for_others", ONE, (cpu_sizes){64, 1, 1}, 0, &barrier);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "deadlock: of 64 threads, 32 wait at the named barrier at "
                                   "a.mlir:1:2, 32 have ended; grid");
}

static void named_barriers_are_sixteen(void) {
  int64_t barrier = 16;
  cpu_module_launch(load("1"), "wait_for_others", ONE, (cpu_sizes){8, 2, 4}, 0, &barrier);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "block (0, 0, 0), thread (0, 0, 0): there is no barrier 16: "
                                   "they are 0 to 15; grid");
}

static void one_turn_too_many_is_a_deadlock(void) {
  cpu_module_launch(load("1"), "count_wrong", ONE, (cpu_sizes){1024, 1, 1}, 0, NULL);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "of 1024 threads, 1 waits at gpu.barrier at a.mlir:1:2, 1023 "
                                   "have ended");
}

static void thread_that_fails_between_barriers_is_named(void) {
  void *module = load("1");
  cpu_module_launch(module, "fail_behind_barrier", (cpu_sizes){4, 2, 1}, (cpu_sizes){32, 1, 1}, 0,
                    NULL);
  CHECK_TEXT("mgpuLaunchKernel: kernel 'fail_behind_barrier': block (0, 0, 0), thread (3, 0, 0): "
             "assertion failed: n > 0 (a.mlir:3:4); grid 4 x 2 x 1, block 32 x 1 x 1",
             aotc_error_message());
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "");
  check_reductions(module, (cpu_sizes){256, 1, 1}, 10);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(barriers_in_a_loop),
      CHECK_TEST(lanes_exchange_values),
      CHECK_TEST(lanes_meet_behind_a_branch),
      CHECK_TEST(lanes_meet_behind_loops_of_their_own),
      CHECK_TEST(turns_are_taken_in_order),
      CHECK_TEST(lanes_need_not_wait_for_those_that_ended),
      CHECK_TEST(threads_need_not_wait),
      CHECK_TEST(barrier_not_reached_by_all_is_named),
      CHECK_TEST(barriers_that_differ_are_named),
      CHECK_TEST(named_barriers_count_whole_warps),
      CHECK_TEST(named_barriers_are_sixteen),
      CHECK_TEST(one_turn_too_many_is_a_deadlock),
      CHECK_TEST(thread_that_fails_between_barriers_is_named),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
