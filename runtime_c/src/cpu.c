// The CPU device: one pool of worker threads, made by the first launch that has work for more than
// one, takes blocks from the launches under way in chunks. The launching thread takes part.
#include "cpu.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

#define MAX_THREADS 4096
// Chunks per thread: enough to even out blocks of different cost, few enough to be cheap to take.
#define CHUNKS_PER_THREAD 16
#define SHARED_ALIGNMENT 128

// A launch under way, on the launching thread's stack.
typedef struct job {
  struct job *next;
  aotc_cpu_function run;
  void *const *parameters;
  int64_t grid[3], block[3];
  int64_t dynamic_shared_bytes;
  uint64_t block_count, chunk;
  char *shared; // a buffer of shared_stride bytes for each thread that takes part, or NULL
  size_t shared_stride;
  _Atomic(uint64_t) next_block;    // may run past block_count, by a chunk for each thread
  int32_t slots_taken, slot_count; // threads that took part; under the pool's lock
  int32_t workers;                 // that take part now; under the pool's lock
} job;

typedef struct pool {
  pthread_mutex_t lock;
  pthread_cond_t has_work;
  pthread_cond_t has_left; // a worker left a job
  job *jobs;
  pthread_t *threads;
  int32_t thread_count;
  bool is_started, is_stopping;
  char *spare; // shared memory of the last launch that had some, for the next
  size_t spare_bytes;
} pool;

static pool the_pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .has_work = PTHREAD_COND_INITIALIZER,
    .has_left = PTHREAD_COND_INITIALIZER,
};

// -------------------------------------------------------------------------------------------------
// Description

static int32_t usable_cpu_count(void) {
  cpu_set_t small;
  if (sched_getaffinity(0, sizeof(small), &small) == 0) {
    return CPU_COUNT(&small);
  }
  // Machines with more CPUs than cpu_set_t holds.
  for (int cpus = 2 * CPU_SETSIZE; errno == EINVAL && cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t *large = CPU_ALLOC((size_t)cpus);
    if (large == NULL) {
      return 1;
    }
    int result = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)cpus), large);
    int count = result == 0 ? CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)cpus), large) : 0;
    int error = errno;
    CPU_FREE(large);
    if (result == 0) {
      return count;
    }
    errno = error;
  }
  return 1;
}

int32_t aotc_rt_cpu_thread_count(void) {
  const char *text = getenv("AOTC_CPU_THREADS");
  if (text == NULL || text[0] == '\0') {
    int32_t count = usable_cpu_count();
    return count < MAX_THREADS ? count : MAX_THREADS;
  }
  char *end = NULL;
  errno = 0;
  long count = strtol(text, &end, 10);
  if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9' || count < 1 ||
      count > MAX_THREADS) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "AOTC_CPU_THREADS is '%s'; expected a number from 1 to %d",
                 text, MAX_THREADS);
    return 0;
  }
  return (int32_t)count;
}

bool aotc_rt_describe_cpu(aotc_device *out_description) {
  int32_t threads = aotc_rt_cpu_thread_count();
  if (threads == 0) {
    return false;
  }
  *out_description =
      (aotc_device){.kind = AOTC_DEVICE_CPU, .name = "cpu", .multiprocessors = threads};
  long pages = sysconf(_SC_PHYS_PAGES);
  long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    out_description->memory_bytes = (uint64_t)pages * (uint64_t)page_bytes;
  }
  return true;
}

// -------------------------------------------------------------------------------------------------
// Running

// Runs blocks first to end-1, numbered with x innermost.
static void run_blocks(const job *j, uint64_t first, uint64_t end, void *shared) {
  uint64_t width = (uint64_t)j->grid[0];
  uint64_t height = (uint64_t)j->grid[1];
  aotc_cpu_block block = {
      .block_id = {(int64_t)(first % width), (int64_t)(first / width % height),
                   (int64_t)(first / width / height)},
      .grid_dim = {j->grid[0], j->grid[1], j->grid[2]},
      .block_dim = {j->block[0], j->block[1], j->block[2]},
      .dynamic_shared = shared,
      .dynamic_shared_bytes = j->dynamic_shared_bytes,
  };
  for (uint64_t i = first; i < end; ++i) {
    j->run(j->parameters, &block);
    if (++block.block_id[0] == j->grid[0]) {
      block.block_id[0] = 0;
      if (++block.block_id[1] == j->grid[1]) {
        block.block_id[1] = 0;
        ++block.block_id[2];
      }
    }
  }
}

// Takes chunks until none are left.
static void work_on(job *j, int32_t slot) {
  void *shared = j->shared != NULL ? j->shared + (size_t)slot * j->shared_stride : NULL;
  for (;;) {
    uint64_t first = atomic_fetch_add_explicit(&j->next_block, j->chunk, memory_order_relaxed);
    if (first >= j->block_count) {
      return;
    }
    uint64_t left = j->block_count - first;
    run_blocks(j, first, first + (left < j->chunk ? left : j->chunk), shared);
  }
}

// A job with blocks that nobody took yet, and room for one more thread.
static job *find_job(const pool *p) {
  job *j = p->jobs;
  while (j != NULL &&
         (j->slots_taken == j->slot_count ||
          atomic_load_explicit(&j->next_block, memory_order_relaxed) >= j->block_count)) {
    j = j->next;
  }
  return j;
}

static void *worker(void *argument) {
  pool *p = argument;
  pthread_mutex_lock(&p->lock);
  while (!p->is_stopping) {
    job *j = find_job(p);
    if (j == NULL) {
      pthread_cond_wait(&p->has_work, &p->lock);
      continue;
    }
    int32_t slot = j->slots_taken++;
    ++j->workers;
    pthread_mutex_unlock(&p->lock);
    work_on(j, slot);
    pthread_mutex_lock(&p->lock);
    if (--j->workers == 0) {
      pthread_cond_broadcast(&p->has_left);
    }
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

// Makes the workers. With fewer than wanted, or none, launches still run.
static void start_locked(pool *p, int32_t wanted) {
  p->is_started = true;
  p->threads = calloc((size_t)wanted, sizeof(*p->threads));
  if (p->threads == NULL) {
    return;
  }
  // The program's signal handlers run on the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
    return;
  }
  while (p->thread_count < wanted &&
         pthread_create(&p->threads[p->thread_count], NULL, worker, p) == 0) {
    ++p->thread_count;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// Stops the workers before their code is unmapped, by dlclose or at the end of the process.
__attribute__((destructor)) static void stop(void) {
  pool *p = &the_pool;
  pthread_mutex_lock(&p->lock);
  p->is_stopping = true; // launches from now on run in their caller
  int32_t count = p->thread_count;
  p->thread_count = 0;
  pthread_cond_broadcast(&p->has_work);
  pthread_mutex_unlock(&p->lock);
  for (int32_t i = 0; i < count; ++i) {
    // A kernel that ends the process does so on a worker.
    if (!pthread_equal(p->threads[i], pthread_self())) {
      pthread_join(p->threads[i], NULL);
    }
  }
  free(p->threads);
  free(p->spare);
  p->threads = NULL;
  p->spare = NULL;
}

// -------------------------------------------------------------------------------------------------
// Launching

static bool take_shared(pool *p, job *j) {
  if (j->dynamic_shared_bytes == 0) {
    return true;
  }
  size_t rest = (size_t)j->dynamic_shared_bytes % SHARED_ALIGNMENT;
  j->shared_stride = (size_t)j->dynamic_shared_bytes + (rest != 0 ? SHARED_ALIGNMENT - rest : 0);
  size_t bytes = j->shared_stride * (size_t)j->slot_count;
  pthread_mutex_lock(&p->lock);
  if (p->spare != NULL && p->spare_bytes >= bytes) {
    j->shared = p->spare;
    p->spare = NULL;
  }
  pthread_mutex_unlock(&p->lock);
  if (j->shared != NULL) {
    return true;
  }
  void *shared = NULL;
  if (posix_memalign(&shared, SHARED_ALIGNMENT, bytes) != 0) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY,
                 "no host memory for %d buffers of %lld bytes, the kernel's "
                 "dynamic shared memory",
                 (int)j->slot_count, (long long)j->dynamic_shared_bytes);
    return false;
  }
  j->shared = shared;
  return true;
}

// Keeps the larger of two buffers for later launches.
static void give_back_shared(pool *p, job *j) {
  if (j->shared == NULL) {
    return;
  }
  size_t bytes = j->shared_stride * (size_t)j->slot_count;
  char *unused = j->shared;
  pthread_mutex_lock(&p->lock);
  if (!p->is_stopping && (p->spare == NULL || p->spare_bytes < bytes)) {
    unused = p->spare;
    p->spare = j->shared;
    p->spare_bytes = bytes;
  }
  pthread_mutex_unlock(&p->lock);
  free(unused);
}

static void run_with_workers(pool *p, job *j) {
  pthread_mutex_lock(&p->lock);
  if (!p->is_started && !p->is_stopping) {
    start_locked(p, aotc_rt_state_of_process.device.multiprocessors - 1);
  }
  j->next = p->jobs;
  p->jobs = j;
  pthread_cond_broadcast(&p->has_work);
  pthread_mutex_unlock(&p->lock);

  work_on(j, 0);

  pthread_mutex_lock(&p->lock);
  job **link = &p->jobs;
  while (*link != j) {
    link = &(*link)->next;
  }
  *link = j->next; // nobody joins any more
  while (j->workers > 0) {
    pthread_cond_wait(&p->has_left, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
}

aotc_status aotc_rt_cpu_launch(const aotc_cpu_kernel *kernel, void *const *parameters,
                               const int64_t grid[3], const int64_t block[3],
                               int64_t dynamic_shared_bytes, int32_t thread_count) {
  job j = {
      .run = kernel->run,
      .parameters = parameters,
      .grid = {grid[0], grid[1], grid[2]},
      .block = {block[0], block[1], block[2]},
      .dynamic_shared_bytes = dynamic_shared_bytes,
      // The largest grid has just under 2^63 blocks.
      .block_count = (uint64_t)grid[0] * (uint64_t)grid[1] * (uint64_t)grid[2],
      .slots_taken = 1, // the caller's
  };
  j.slot_count = j.block_count < (uint64_t)thread_count ? (int32_t)j.block_count : thread_count;
  j.chunk = j.block_count / ((uint64_t)j.slot_count * CHUNKS_PER_THREAD);
  if (j.chunk == 0) {
    j.chunk = 1;
  }
  pool *p = &the_pool;
  if (!take_shared(p, &j)) {
    return AOTC_OUT_OF_MEMORY;
  }
  if (j.slot_count == 1) {
    work_on(&j, 0);
  } else {
    run_with_workers(p, &j);
  }
  give_back_shared(p, &j);
  return AOTC_OK;
}

// -------------------------------------------------------------------------------------------------
// Forks

void aotc_rt_cpu_before_fork(void) {
  pthread_mutex_lock(&the_pool.lock);
}

void aotc_rt_cpu_after_fork_in_parent(void) {
  pthread_mutex_unlock(&the_pool.lock);
}

void aotc_rt_cpu_after_fork_in_child(void) {
  // The child has neither the workers nor the launches of other threads. What they waited on must
  // be made anew; the first launch here makes workers.
  pool *p = &the_pool;
  p->jobs = NULL;
  free(p->threads);
  p->threads = NULL;
  p->thread_count = 0;
  p->is_started = false;
  pthread_cond_init(&p->has_work, NULL);
  pthread_cond_init(&p->has_left, NULL);
  pthread_mutex_unlock(&p->lock);
}
