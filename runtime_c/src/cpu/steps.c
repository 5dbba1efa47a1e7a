// The threads of a block that wait for each other, in turns of their step function.
//
// Rules: a thread runs until it waits or ends. When none of a warp's lanes can run, those go on
// that wait at the first of the warp's points at which lanes wait: a branch that some lanes take
// comes before what lies behind it, so they meet the others there, as on a GPU. When no warp can do
// that any more, all threads of the block must wait at one barrier, and go on, or have ended.
// Everything else is a deadlock; a thread that has ended will not come to the barrier.
#include "steps.h"

#include <limits.h>

#include "../state.h"

// The state of a thread that waits at a point is 1 + the point's number.
#define AT_START 0
#define ENDED (-1)
#define NOWHERE INT32_MAX

typedef struct block_run {
  const aotc_cpu_kernel *kernel;
  void *const *parameters;
  const aotc_cpu_block *block;
  int32_t *states;
  int64_t thread_count;
} block_run;

static int64_t count_threads(const aotc_cpu_block *block) {
  return block->block_dim[0] * block->block_dim[1] * block->block_dim[2];
}

// Runs the lanes in state `turn` until all of the warp have ended or wait for the block.
static void run_warp(const block_run *r, int64_t first, int64_t end, int32_t turn) {
  const aotc_cpu_sync_point *points = r->kernel->sync_points;
  while (turn != NOWHERE) {
    int32_t next_turn = NOWHERE;
    for (int64_t thread = first; thread < end; ++thread) {
      int32_t state = r->states[thread];
      if (state == turn) {
        state = r->kernel->step(r->parameters, r->block, thread, state);
        if (state == 0) {
          state = ENDED;
        }
        r->states[thread] = state;
      }
      if (state != ENDED && points[state - 1].is_warp && state < next_turn) {
        next_turn = state;
      }
    }
    turn = next_turn;
  }
}

// Where all threads are, ENDED among them; NOWHERE if they are not all at one place.
static int32_t find_meeting(const block_run *r) {
  for (int64_t thread = 1; thread < r->thread_count; ++thread) {
    if (r->states[thread] != r->states[0]) {
      return NOWHERE;
    }
  }
  return r->states[0];
}

bool aotc_rt_cpu_run_steps(const aotc_cpu_kernel *kernel, void *const *parameters,
                           const aotc_cpu_block *block, int32_t *states) {
  const block_run r = {kernel, parameters, block, states, count_threads(block)};
  for (int64_t thread = 0; thread < r.thread_count; ++thread) {
    states[thread] = AT_START;
  }
  int32_t turn = AT_START;
  while (turn != ENDED && turn != NOWHERE) {
    for (int64_t first = 0; first < r.thread_count; first += AOTC_RT_WARP_SIZE) {
      int64_t left = r.thread_count - first;
      run_warp(&r, first, first + (left < AOTC_RT_WARP_SIZE ? left : AOTC_RT_WARP_SIZE), turn);
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
