// Runs the blocks of a launch on one thread: in chunks, each with the same scratch memory, until
// none are left or one fails.
#include "blocks.h"

#include <setjmp.h>

#include "../state.h"
#include "level.h"
#include "steps.h"

// The state of a thread that takes part in a launch.
typedef struct runner {
  aotc_cpu_block block; // first member: a failing function identifies the runner by it
  aotc_rt_cpu_launched *launched;
  aotc_rt_cpu_threads threads; // for a step function
  sigjmp_buf failed;
} runner;

// -------------------------------------------------------------------------------------------------
// Scratch memory

// Places a piece at *end and advances *end past it.
static bool put(size_t *end, uint64_t bytes, size_t *out_start) {
  *out_start = *end;
  uint64_t padded = 0;
  if (__builtin_add_overflow(bytes, AOTC_RT_SCRATCH_ALIGNMENT - 1, &padded)) {
    return false;
  }
  return !__builtin_add_overflow(*end, padded - padded % AOTC_RT_SCRATCH_ALIGNMENT, end);
}

bool aotc_rt_cpu_lay_out_scratch(aotc_rt_cpu_launched *launched) {
  const aotc_cpu_kernel *kernel = launched->kernel;
  aotc_rt_cpu_scratch *scratch = &launched->scratch;
  uint64_t count = (uint64_t)(launched->block[0] * launched->block[1] * launched->block[2]);
  uint64_t warps = (count + AOTC_RT_WARP_SIZE - 1) / AOTC_RT_WARP_SIZE;
  uint64_t threads_bytes = 0;
  if (__builtin_mul_overflow(kernel->thread_bytes, warps * AOTC_RT_WARP_SIZE, &threads_bytes)) {
    return false;
  }
  size_t dynamic_shared = 0;
  bool has_steps = kernel->run == NULL;
  scratch->end = 0;
  return put(&scratch->end, (uint64_t)launched->dynamic_shared_bytes, &dynamic_shared) &&
         put(&scratch->end, kernel->shared_bytes, &scratch->shared) &&
         put(&scratch->end, threads_bytes, &scratch->threads) &&
         put(&scratch->end, has_steps ? count * sizeof(int32_t) : 0, &scratch->states) &&
         put(&scratch->end, has_steps ? count * sizeof(aotc_rt_cpu_arrival) : 0,
             &scratch->arrivals);
}

// A piece of the memory, or NULL if it has no bytes.
static void *piece(char *memory, size_t start, size_t end) {
  return start < end ? memory + start : NULL;
}

// -------------------------------------------------------------------------------------------------
// Failures

// Whether this is the launch's first failure. If so, writes the block's name to its text.
static bool begin_failure(runner *r) {
  aotc_rt_cpu_launched *l = r->launched;
  if (atomic_exchange_explicit(&l->has_failed, true, memory_order_relaxed)) {
    return false;
  }
  l->failure[0] = '\0';
  const int64_t *id = r->block.block_id;
  aotc_rt_append(l->failure, sizeof(l->failure), "block (%lld, %lld, %lld)", (long long)id[0],
                 (long long)id[1], (long long)id[2]);
  return true;
}

// Ends the launch and this thread's part of it.
__attribute__((noreturn)) static void end_failed(runner *r) {
  siglongjmp(r->failed, 1);
}

// The `fail` function of aotc_cpu_block.
__attribute__((noreturn)) static void fail_thread(const aotc_cpu_block *block, const char *message,
                                                  const int64_t thread_id[3]) {
  runner *r = (runner *)block; // const only for the kernel
  if (begin_failure(r)) {
    aotc_rt_append(r->launched->failure, sizeof(r->launched->failure),
                   ", thread (%lld, %lld, %lld): %s", (long long)thread_id[0],
                   (long long)thread_id[1], (long long)thread_id[2], message);
  }
  end_failed(r);
}

__attribute__((noreturn)) static void fail_in_deadlock(runner *r) {
  aotc_rt_cpu_launched *l = r->launched;
  if (begin_failure(r)) {
    aotc_rt_append(l->failure, sizeof(l->failure), ": deadlock: ");
    aotc_rt_cpu_describe_stop(l->kernel, &r->block, r->threads.states, l->failure,
                              sizeof(l->failure));
  }
  end_failed(r);
}

// -------------------------------------------------------------------------------------------------
// Running

// The `arrive` function of aotc_cpu_block.
static void arrive(const aotc_cpu_block *block, int64_t thread, int32_t barrier, int32_t count) {
  runner *r = (runner *)block; // const only for the kernel
  if (barrier < 0 || barrier >= AOTC_CPU_BARRIERS) {
    char message[64] = "";
    aotc_rt_append(message, sizeof(message), "there is no barrier %d: they are 0 to %d",
                   (int)barrier, AOTC_CPU_BARRIERS - 1);
    const int64_t *size = block->block_dim;
    const int64_t id[3] = {thread % size[0], thread / size[0] % size[1],
                           thread / size[0] / size[1]};
    fail_thread(block, message, id);
  }
  aotc_rt_cpu_arrive(&r->threads, block, thread, barrier, count);
}

// The `allows_tiles` function of aotc_cpu_block.
static int32_t allows_tiles(const aotc_cpu_block *block) {
  (void)block;
  return aotc_rt_cpu_allows_tiles();
}

static void run_block(runner *r) {
  const aotc_rt_cpu_launched *l = r->launched;
  if (l->kernel->run != NULL) {
    l->kernel->run(l->parameters, &r->block);
  } else if (!aotc_rt_cpu_run_steps(l->kernel, l->parameters, &r->block, &r->threads)) {
    fail_in_deadlock(r);
  }
}

// Runs blocks `first` to `end` - 1, numbered with x innermost.
static void run_chunk(runner *r, uint64_t first, uint64_t end) {
  const aotc_rt_cpu_launched *l = r->launched;
  uint64_t width = (uint64_t)l->grid[0];
  uint64_t height = (uint64_t)l->grid[1];
  int64_t *id = r->block.block_id;
  id[0] = (int64_t)(first % width);
  id[1] = (int64_t)(first / width % height);
  id[2] = (int64_t)(first / width / height);
  // A chunk of a large grid can be long, so another thread's failure ends it early.
  for (uint64_t i = first; i < end && !atomic_load_explicit(&l->has_failed, memory_order_relaxed);
       ++i) {
    run_block(r);
    if (++id[0] == l->grid[0]) {
      id[0] = 0;
      if (++id[1] == l->grid[1]) {
        id[1] = 0;
        ++id[2];
      }
    }
  }
}

static uint64_t run_share(runner *r, aotc_rt_cpu_share *share) {
  aotc_rt_cpu_launched *l = r->launched;
  uint64_t count = 0;
  while (!atomic_load_explicit(&l->has_failed, memory_order_relaxed)) {
    uint64_t first = atomic_fetch_add_explicit(&share->next, l->chunk, memory_order_relaxed);
    if (first >= share->end) {
      break;
    }
    uint64_t left = share->end - first;
    uint64_t own = left < l->chunk ? left : l->chunk;
    run_chunk(r, first, first + own);
    count += own;
  }
  return count;
}

static bool has_blocks(const aotc_rt_cpu_share *share) {
  return atomic_load_explicit(&share->next, memory_order_relaxed) < share->end;
}

static uint64_t run_shares(runner *r, int32_t own) {
  aotc_rt_cpu_launched *l = r->launched;
  uint64_t count = run_share(r, &l->shares[own]);
  for (int32_t i = 0; i < l->share_count; ++i) {
    if (has_blocks(&l->shares[i])) {
      count += run_share(r, &l->shares[i]);
    }
  }
  return count;
}

void aotc_rt_cpu_divide(aotc_rt_cpu_launched *launched, aotc_rt_cpu_share *shares, int32_t count) {
  uint64_t each = launched->block_count / (uint64_t)count;
  uint64_t more = launched->block_count % (uint64_t)count; // shares with one extra block
  uint64_t first = 0;
  for (int32_t i = 0; i < count; ++i) {
    uint64_t end = first + each + ((uint64_t)i < more ? 1 : 0);
    atomic_init(&shares[i].next, first);
    shares[i].end = end;
    first = end;
  }
  launched->shares = shares;
  launched->share_count = count;
}

bool aotc_rt_cpu_has_blocks(const aotc_rt_cpu_launched *launched) {
  bool has_some = false;
  if (!atomic_load_explicit(&launched->has_failed, memory_order_relaxed)) {
    for (int32_t i = 0; i < launched->share_count && !has_some; ++i) {
      has_some = has_blocks(&launched->shares[i]);
    }
  }
  return has_some;
}

uint64_t aotc_rt_cpu_run_blocks(aotc_rt_cpu_launched *launched, int32_t share, char *memory) {
  const aotc_rt_cpu_scratch *scratch = &launched->scratch;
  runner r = {
      .block =
          {
              .grid_dim = {launched->grid[0], launched->grid[1], launched->grid[2]},
              .block_dim = {launched->block[0], launched->block[1], launched->block[2]},
              .dynamic_shared = piece(memory, 0, scratch->shared),
              .dynamic_shared_bytes = launched->dynamic_shared_bytes,
              .shared = piece(memory, scratch->shared, scratch->threads),
              .threads = piece(memory, scratch->threads, scratch->states),
              .fail = fail_thread,
              .level = launched->level,
              .arrive = arrive,
              .allows_tiles = allows_tiles,
          },
      .launched = launched,
      .threads =
          {
              .states = piece(memory, scratch->states, scratch->arrivals),
              .arrivals = piece(memory, scratch->arrivals, scratch->end),
          },
  };
  // A failure jumps back here from the middle of a block and ends this thread's part of the launch.
  return sigsetjmp(r.failed, 0) == 0 ? run_shares(&r, share) : 0;
}
