// The thread pool that runs the blocks of launches. The first launch with work for more than one
// thread creates it; the workers take part in all launches under way. The launching thread takes
// part, too.
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "../state.h"
#include "cpu.h"
#include "streams.h"
#include "thread.h"

// How long a thread spins before it sleeps. The launches of an entry follow each other within this
// time. Waking a sleeping thread takes as long as a small kernel, and it may wake up on the CPU of
// the thread that wakes it.
#define SPIN_NANOSECONDS 50000
#define PAUSES_PER_LOOK 64

// The time that each participating thread adds to a launch: threads join and leave one at a time.
// Work that takes one thread T takes n threads T / n + n * THREAD_NANOSECONDS, so one more thread
// is faster while n * (n + 1) is at most T / THREAD_NANOSECONDS. The time per block is taken from
// the kernel's previous launch.
#define THREAD_NANOSECONDS 2000
#define REMEMBERED_KERNELS 512

// The time per block of a kernel, in picoseconds; 0 if unknown. Kernels whose addresses hash to the
// same entry overwrite each other.
typedef struct block_time {
  _Atomic(const aotc_cpu_kernel *) kernel;
  _Atomic(uint64_t) picoseconds;
} block_time;

static block_time block_times[REMEMBERED_KERNELS];

// A launch under way, on the launching thread's stack.
typedef struct job {
  struct job *next;
  aotc_rt_cpu_launched *launched;
  char *memory;                    // scratch memory for each slot, or NULL
  size_t bytes;                    // of all slots
  int32_t slots_taken, slot_count; // threads that have joined; under the pool's lock
  uint64_t shares_taken;           // one bit for each share with a thread; under the lock
  atomic_int workers;              // workers in the job; changed under the pool's lock
} job;

typedef struct pool {
  pthread_mutex_t lock;
  pthread_cond_t has_work;
  pthread_cond_t has_left; // a worker left a job
  job *jobs;
  atomic_uint jobs_added;
  pthread_t *threads;
  int32_t thread_count, sleepers, spinners;
  bool is_started, is_stopping;
  char *spare; // scratch memory kept from an earlier launch
  size_t spare_bytes;
} pool;

static pool the_pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .has_work = PTHREAD_COND_INITIALIZER,
    .has_left = PTHREAD_COND_INITIALIZER,
};

// -------------------------------------------------------------------------------------------------
// Workers

static uint64_t work_on(const job *j, int32_t slot, int32_t share) {
  char *memory = j->memory != NULL ? j->memory + (size_t)slot * j->launched->scratch.end : NULL;
  return aotc_rt_cpu_run_blocks(j->launched, share, memory);
}

// The share that the thread had in its previous launch, or else the first free share, if there is
// one.
static int32_t take_share_locked(job *j, int32_t last) {
  int32_t share = last;
  int32_t count = j->launched->share_count;
  if (share >= count || (j->shares_taken >> share & 1) != 0) {
    share = 0;
    while (share < count - 1 && (j->shares_taken >> share & 1) != 0) {
      ++share;
    }
  }
  j->shares_taken |= (uint64_t)1 << share;
  return share;
}

// A job with blocks that no thread has taken yet, and room for one more thread.
static job *find_job(const pool *p) {
  job *j = p->jobs;
  while (j != NULL && (j->slots_taken == j->slot_count || !aotc_rt_cpu_has_blocks(j->launched))) {
    j = j->next;
  }
  return j;
}

static void pause_shortly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t now(void) {
  struct timespec time = {0};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool has_new_job(const void *pool_, unsigned seen) {
  const pool *p = pool_;
  return atomic_load_explicit(&p->jobs_added, memory_order_acquire) != seen;
}

static bool has_no_worker(const void *job_, unsigned none) {
  const job *j = job_;
  return atomic_load_explicit(&j->workers, memory_order_acquire) == (int)none;
}

// Spins, because the lock is held for less time than sleeping and waking up takes.
static void lock_pool(pool *p) {
  for (int i = 0; i < PAUSES_PER_LOOK; ++i) {
    if (pthread_mutex_trylock(&p->lock) == 0) {
      return;
    }
    pause_shortly();
  }
  pthread_mutex_lock(&p->lock);
}

// Spins until the condition holds, for at most SPIN_NANOSECONDS. Yields where threads share CPUs.
static bool spin_until(bool (*is_true)(const void *, unsigned), const void *of, unsigned number) {
  int64_t start = now();
  do {
    for (int i = 0; i < PAUSES_PER_LOOK; ++i) {
      if (is_true(of, number)) {
        return true;
      }
      pause_shortly();
    }
    sched_yield();
  } while (now() - start < SPIN_NANOSECONDS);
  return false;
}

static void *worker(void *argument) {
  pool *p = argument;
  pthread_mutex_lock(&p->lock);
  bool has_looked = true;
  int32_t share = 0;
  while (!p->is_stopping) {
    job *j = find_job(p);
    if (j == NULL && !has_looked) {
      has_looked = true;
      unsigned seen = atomic_load_explicit(&p->jobs_added, memory_order_relaxed);
      ++p->spinners;
      pthread_mutex_unlock(&p->lock);
      spin_until(has_new_job, p, seen);
      lock_pool(p);
      --p->spinners;
      continue;
    }
    if (j == NULL) {
      ++p->sleepers;
      pthread_cond_wait(&p->has_work, &p->lock);
      --p->sleepers;
      continue;
    }
    has_looked = false;
    int32_t slot = j->slots_taken++;
    share = take_share_locked(j, share);
    atomic_fetch_add_explicit(&j->workers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&p->lock);
    work_on(j, slot, share);
    lock_pool(p);
    if (atomic_fetch_sub_explicit(&j->workers, 1, memory_order_release) == 1) {
      pthread_cond_broadcast(&p->has_left);
    }
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

// Creates the workers. Launches also run with fewer workers than wanted, or with none.
static void start_locked(pool *p, int32_t wanted) {
  p->is_started = true;
  p->threads = calloc((size_t)wanted, sizeof(*p->threads));
  while (p->threads != NULL && p->thread_count < wanted &&
         aotc_rt_cpu_thread_start(&p->threads[p->thread_count], worker, p)) {
    ++p->thread_count;
  }
}

static void stop(void) {
  pool *p = &the_pool;
  pthread_mutex_lock(&p->lock);
  p->is_stopping = true; // launches from now on run on the calling thread
  int32_t count = p->thread_count;
  // The process may end in one thread while another unloads: each takes what is there.
  pthread_t *threads = p->threads;
  char *spare = p->spare;
  p->thread_count = 0;
  p->threads = NULL;
  p->spare = NULL;
  pthread_cond_broadcast(&p->has_work);
  pthread_mutex_unlock(&p->lock);
  for (int32_t i = 0; i < count; ++i) {
    // A kernel that calls exit runs this on a worker.
    if (!pthread_equal(threads[i], pthread_self())) {
      pthread_join(threads[i], NULL);
    }
  }
  free(threads);
  free(spare);
}

// Stops the workers before their code is unmapped, by dlclose or at the end of the process.
__attribute__((destructor)) static void stop_for_good(void) {
  aotc_rt_cpu_streams_stop(true); // their launches use the workers
  stop();
}

void aotc_rt_cpu_unload(void) {
  pool *p = &the_pool;
  stop();
  for (size_t i = 0; i < REMEMBERED_KERNELS; ++i) {
    atomic_store_explicit(&block_times[i].kernel, NULL, memory_order_relaxed);
  }
  pthread_mutex_lock(&p->lock);
  p->is_stopping = false;
  p->is_started = false;
  pthread_mutex_unlock(&p->lock);
}

// -------------------------------------------------------------------------------------------------
// Jobs

static bool take_memory(pool *p, job *j) {
  size_t slot_bytes = j->launched->scratch.end;
  if (slot_bytes == 0) {
    return true;
  }
  void *memory = NULL;
  bool is_small = !__builtin_mul_overflow(slot_bytes, (size_t)j->slot_count, &j->bytes);
  pthread_mutex_lock(&p->lock);
  if (is_small && p->spare != NULL && p->spare_bytes >= j->bytes) {
    memory = p->spare;
    j->bytes = p->spare_bytes;
    p->spare = NULL;
  }
  pthread_mutex_unlock(&p->lock);
  if (memory == NULL &&
      (!is_small || posix_memalign(&memory, AOTC_RT_SCRATCH_ALIGNMENT, j->bytes) != 0)) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY,
                 "no host memory for kernel '%s': %zu bytes of scratch memory for each of %d "
                 "threads that run its blocks",
                 j->launched->kernel->name, slot_bytes, (int)j->slot_count);
    return false;
  }
  j->memory = memory;
  return true;
}

// Keeps the larger of two buffers for later launches.
static void give_back_memory(pool *p, job *j) {
  if (j->memory == NULL) {
    return;
  }
  char *unused = j->memory;
  pthread_mutex_lock(&p->lock);
  if (!p->is_stopping && (p->spare == NULL || p->spare_bytes < j->bytes)) {
    unused = p->spare;
    p->spare = j->memory;
    p->spare_bytes = j->bytes;
  }
  pthread_mutex_unlock(&p->lock);
  free(unused);
}

static block_time *time_of(const aotc_cpu_kernel *kernel) {
  return &block_times[((uintptr_t)kernel / sizeof(*kernel)) % REMEMBERED_KERNELS];
}

// The number of threads, at most `most`, that a launch has enough work for.
static int32_t useful_threads(const aotc_rt_cpu_launched *launched, int32_t most) {
  block_time *known = time_of(launched->kernel);
  if (atomic_load_explicit(&known->kernel, memory_order_relaxed) != launched->kernel) {
    return most;
  }
  double block = (double)atomic_load_explicit(&known->picoseconds, memory_order_relaxed);
  if (block <= 0) {
    return most;
  }
  double work = block * (double)launched->block_count / 1000 / THREAD_NANOSECONDS;
  int32_t count = 1;
  while (count < most && (double)count * (count + 1) <= work) {
    ++count;
  }
  return count;
}

// Runs the launching thread's part of a job, and records the time per block.
static void work_and_time(const job *j) {
  int64_t start = now();
  uint64_t count = work_on(j, 0, 0);
  if (count > 0) {
    block_time *known = time_of(j->launched->kernel);
    uint64_t took = (uint64_t)(now() - start) * 1000 / count;
    atomic_store_explicit(&known->picoseconds, took, memory_order_relaxed);
    atomic_store_explicit(&known->kernel, j->launched->kernel, memory_order_relaxed);
  }
}

static void run_with_workers(pool *p, job *j) {
  lock_pool(p);
  if (!p->is_started && !p->is_stopping) {
    start_locked(p, aotc_rt_state_of_process.device.multiprocessors - 1);
  }
  j->next = p->jobs;
  p->jobs = j;
  for (int32_t i = p->spinners; i < j->slot_count - 1 && i - p->spinners < p->sleepers; ++i) {
    pthread_cond_signal(&p->has_work);
  }
  pthread_mutex_unlock(&p->lock);
  // After the lock was released, which everybody who sees the change takes.
  atomic_fetch_add_explicit(&p->jobs_added, 1, memory_order_release);

  work_and_time(j);

  lock_pool(p);
  job **link = &p->jobs;
  while (*link != j) {
    link = &(*link)->next;
  }
  *link = j->next; // no more threads can join
  if (!has_no_worker(j, 0)) {
    pthread_mutex_unlock(&p->lock);
    spin_until(has_no_worker, j, 0);
    lock_pool(p);
  }
  while (!has_no_worker(j, 0)) {
    pthread_cond_wait(&p->has_left, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
}

bool aotc_rt_cpu_pool_run(aotc_rt_cpu_launched *launched, int32_t thread_count) {
  pool *p = &the_pool;
  job j = {
      .launched = launched,
      .slots_taken = 1, // the caller's
      .slot_count = thread_count > 1 ? useful_threads(launched, thread_count) : 1,
      .shares_taken = 1,
  };
  aotc_rt_cpu_share shares[AOTC_RT_CPU_SHARES];
  aotc_rt_cpu_divide(launched, shares,
                     j.slot_count < AOTC_RT_CPU_SHARES ? j.slot_count : AOTC_RT_CPU_SHARES);
  if (!take_memory(p, &j)) {
    return false;
  }
  if (thread_count == 1) {
    work_on(&j, 0, 0);
  } else if (j.slot_count == 1) {
    work_and_time(&j);
  } else {
    run_with_workers(p, &j);
  }
  give_back_memory(p, &j);
  return true;
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
  // The child has neither the workers nor the launches of other threads. The synchronization
  // objects are reinitialized; the first launch creates new workers.
  pool *p = &the_pool;
  p->jobs = NULL;
  free(p->threads);
  p->threads = NULL;
  p->thread_count = 0;
  p->sleepers = 0;
  p->spinners = 0;
  p->is_started = false;
  pthread_cond_init(&p->has_work, NULL);
  pthread_cond_init(&p->has_left, NULL);
  pthread_mutex_unlock(&p->lock);
}
