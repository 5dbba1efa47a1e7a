// The CPU device: its number of threads, and launches on it.
#include "cpu.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "../state.h"
#include "level.h"
#include "pool.h"

#define MAX_THREADS 4096
// Chunks per thread: enough to balance blocks of different cost, few enough to keep overhead low.
#define CHUNKS_PER_THREAD 16

// -------------------------------------------------------------------------------------------------
// Description

static int32_t usable_cpu_count(void) {
  cpu_set_t small;
  if (sched_getaffinity(0, sizeof(small), &small) == 0) {
    return CPU_COUNT(&small);
  }
  // For machines with more CPUs than fit into a cpu_set_t.
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
  if (threads == 0 || !aotc_rt_cpu_level_is_valid()) {
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
// Launching

aotc_status aotc_rt_cpu_launch(const aotc_cpu_kernel *kernel, void *const *parameters,
                               const int64_t grid[3], const int64_t block[3],
                               int64_t dynamic_shared_bytes, int32_t thread_count) {
  aotc_rt_cpu_launched launched = {
      .kernel = kernel,
      .parameters = parameters,
      .grid = {grid[0], grid[1], grid[2]},
      .block = {block[0], block[1], block[2]},
      .dynamic_shared_bytes = dynamic_shared_bytes,
      .level = aotc_rt_cpu_level(),
      // The largest grid has just under 2^63 blocks.
      .block_count = (uint64_t)grid[0] * (uint64_t)grid[1] * (uint64_t)grid[2],
  };
  if (!aotc_rt_cpu_lay_out_scratch(&launched)) {
    return aotc_rt_fail(AOTC_OUT_OF_MEMORY,
                        "no memory holds a block of kernel '%s': %lld x %lld x %lld threads of "
                        "%llu bytes each, %llu bytes of shared memory",
                        kernel->name, (long long)block[0], (long long)block[1], (long long)block[2],
                        (unsigned long long)kernel->thread_bytes,
                        (unsigned long long)kernel->shared_bytes);
  }
  if (launched.block_count < (uint64_t)thread_count) {
    thread_count = (int32_t)launched.block_count;
  }
  launched.chunk = launched.block_count / ((uint64_t)thread_count * CHUNKS_PER_THREAD);
  if (launched.chunk == 0) {
    launched.chunk = 1;
  }
  if (!aotc_rt_cpu_pool_run(&launched, thread_count)) {
    return AOTC_OUT_OF_MEMORY;
  }
  if (atomic_load_explicit(&launched.has_failed, memory_order_relaxed)) {
    return aotc_rt_fail(
        AOTC_LAUNCH_FAILED, "kernel '%s': %s; grid %lld x %lld x %lld, block %lld x %lld x %lld",
        kernel->name, launched.failure, (long long)grid[0], (long long)grid[1], (long long)grid[2],
        (long long)block[0], (long long)block[1], (long long)block[2]);
  }
  return AOTC_OK;
}
