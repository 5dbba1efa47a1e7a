// Runs the threads of a block that synchronize with each other, by their step function.
//
// Rules: a thread runs until it waits or ends. A thread at a named barrier continues when the
// barrier is complete. When none of a warp's lanes can run, the lanes that wait at the first of the
// warp's synchronization points continue: a branch taken by some lanes comes before the code after
// it, so the lanes reconverge there, as on a GPU. When no warp can continue in this way, all
// threads of the block must wait at the same barrier, and continue, or have ended. Everything else
// is a deadlock: a thread that has ended will not reach the barrier.
#include "steps.h"

#include <limits.h>

#include "../state.h"

// A thread that waits at a point has the state 1 + the point's number.
#define AT_START 0
#define ENDED (-1)
#define NOWHERE INT32_MAX

typedef struct block_run {
  const aotc_cpu_kernel *kernel;
  void *const *parameters;
  const aotc_cpu_block *block;
  aotc_rt_cpu_threads *threads;
  int64_t thread_count;
} block_run;

static int64_t count_threads(const aotc_cpu_block *block) {
  return block->block_dim[0] * block->block_dim[1] * block->block_dim[2];
}

// The last thread of a block also counts for the missing lanes of its warp: a warp that arrives at
// a barrier counts as 32 threads.
static int32_t count_of(const aotc_cpu_block *block, int64_t thread) {
  int64_t last = count_threads(block) - 1;
  return thread == last ? (int32_t)(AOTC_RT_WARP_SIZE - last % AOTC_RT_WARP_SIZE) : 1;
}

void aotc_rt_cpu_arrive(aotc_rt_cpu_threads *threads, const aotc_cpu_block *block, int64_t thread,
                        int32_t barrier, int32_t count) {
  threads->arrivals[thread] =
      (aotc_rt_cpu_arrival){.barrier = barrier, .completions = threads->completions[barrier]};
  threads->arrived[barrier] += count_of(block, thread);
  if (threads->arrived[barrier] >= count) {
    threads->arrived[barrier] = 0;
    ++threads->completions[barrier];
  }
}

static int32_t scope_of(const block_run *r, int32_t state) {
  return state > AT_START ? r->kernel->sync_points[state - 1].scope : AOTC_SYNC_BLOCK;
}

// Whether the thread waits at a named barrier that is not complete.
static bool is_held(const block_run *r, int64_t thread, int32_t state) {
  const aotc_rt_cpu_arrival *arrival = &r->threads->arrivals[thread];
  return scope_of(r, state) == AOTC_SYNC_NAMED &&
         r->threads->completions[arrival->barrier] == arrival->completions;
}

// Whether the thread waits for no thread outside its warp.
static bool can_go_on(const block_run *r, int64_t thread, int32_t state) {
  return scope_of(r, state) != AOTC_SYNC_BLOCK && !is_held(r, thread, state);
}

// Runs the lanes in state `turn` until all lanes of the warp have ended or wait for other warps.
static void run_warp(const block_run *r, int64_t first, int64_t end, int32_t turn) {
  while (turn != NOWHERE) {
    int32_t next_turn = NOWHERE;
    for (int64_t thread = first; thread < end; ++thread) {
      int32_t state = r->threads->states[thread];
      if (state == turn && !is_held(r, thread, state)) {
        state = r->kernel->step(r->parameters, r->block, thread, state);
        if (state == 0) {
          state = ENDED;
        }
        r->threads->states[thread] = state;
      }
      if (can_go_on(r, thread, state) && state < next_turn) {
        next_turn = state;
      }
    }
    turn = next_turn;
  }
}

static int64_t end_of_warp(const block_run *r, int64_t first) {
  int64_t left = r->thread_count - first;
  return first + (left < AOTC_RT_WARP_SIZE ? left : AOTC_RT_WARP_SIZE);
}

// Runs the warps that have lanes which can continue; false if there is none.
static bool run_released(const block_run *r) {
  bool has_run = false;
  for (int64_t first = 0; first < r->thread_count; first += AOTC_RT_WARP_SIZE) {
    int64_t end = end_of_warp(r, first);
    int32_t turn = NOWHERE;
    for (int64_t thread = first; thread < end; ++thread) {
      int32_t state = r->threads->states[thread];
      if (can_go_on(r, thread, state) && state < turn) {
        turn = state;
      }
    }
    has_run = has_run || turn != NOWHERE;
    run_warp(r, first, end, turn);
  }
  return has_run;
}

// The barrier of the block that all threads wait at, or ENDED; NOWHERE if they wait at different
// ones.
static int32_t find_meeting(const block_run *r) {
  const int32_t *states = r->threads->states;
  for (int64_t thread = 1; thread < r->thread_count; ++thread) {
    if (states[thread] != states[0]) {
      return NOWHERE;
    }
  }
  return scope_of(r, states[0]) == AOTC_SYNC_BLOCK ? states[0] : NOWHERE;
}

bool aotc_rt_cpu_run_steps(const aotc_cpu_kernel *kernel, void *const *parameters,
                           const aotc_cpu_block *block, aotc_rt_cpu_threads *threads) {
  const block_run r = {kernel, parameters, block, threads, count_threads(block)};
  for (int64_t thread = 0; thread < r.thread_count; ++thread) {
    threads->states[thread] = AT_START;
  }
  for (int i = 0; i < AOTC_CPU_BARRIERS; ++i) {
    threads->arrived[i] = 0;
    threads->completions[i] = 0;
  }
  int32_t turn = AT_START;
  while (turn != ENDED && turn != NOWHERE) {
    for (int64_t first = 0; first < r.thread_count; first += AOTC_RT_WARP_SIZE) {
      run_warp(&r, first, end_of_warp(&r, first), turn);
    }
    while (run_released(&r)) {
    }
    turn = find_meeting(&r);
  }
  return turn == ENDED;
}

void aotc_rt_cpu_describe_stop(const aotc_cpu_kernel *kernel, const aotc_cpu_block *block,
                               const int32_t *states, char *text, size_t bytes) {
  int64_t thread_count = count_threads(block);
  aotc_rt_append(text, bytes, "of %lld threads", (long long)thread_count);
  int64_t ended = 0;
  for (int64_t thread = 0; thread < thread_count; ++thread) {
    ended += states[thread] == ENDED ? 1 : 0;
  }
  for (uint64_t point = 0; point < kernel->sync_point_count; ++point) {
    int64_t waiting = 0;
    for (int64_t thread = 0; thread < thread_count; ++thread) {
      waiting += states[thread] == (int32_t)point + 1 ? 1 : 0;
    }
    if (waiting > 0) {
      aotc_rt_append(text, bytes, ", %lld %s at %s", (long long)waiting,
                     waiting == 1 ? "waits" : "wait", kernel->sync_points[point].place);
    }
  }
  if (ended > 0) {
    aotc_rt_append(text, bytes, ", %lld %s ended", (long long)ended, ended == 1 ? "has" : "have");
  }
}
