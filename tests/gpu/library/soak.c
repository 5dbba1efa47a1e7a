// Many calls from many threads, by one library or by two; what each gives is checked.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver.h"

enum { THREADS = 8, CALLS = 100000, WARM_CALLS = 2000, BETWEEN_CHECKS = 100, MOST = 64 };

// The driver keeps what it has for itself in steps of this many bytes.
static const size_t STEP = (size_t)8 << 20;

typedef struct library {
  const char *name;
  __typeof__(add) *add;
  __typeof__(count_up) *count_up;
  __typeof__(count_up_async) *count_up_async;
  __typeof__(vectors_last_error) *last_error;
} library;

static const library vectors_library = {"vectors", add, count_up, count_up_async,
                                        vectors_last_error};
static const library one_library = {"one_vectors", one_add, one_count_up, one_count_up_async,
                                    one_last_error};

static CUcontext the_context;
static int the_calls;                   // of each thread
static const library *the_libraries[2]; // of threads with even and with odd numbers
static atomic_int finished;

#define GOOD_OF(library, call)                                                                     \
  do {                                                                                             \
    int32_t good_of = (library)->call;                                                             \
    EXPECT(good_of == AOTC_OK, "%s: %s: status %d: %s", (library)->name, #call, (int)good_of,      \
           (library)->last_error());                                                               \
  } while (0)

// Counters of a thread's: element i holds total * (i + 1), or all is lost.
typedef struct counters {
  int64_t *data;
  int64_t count, total;
  bool is_device;
} counters;

static counters counters_make(int64_t count, bool is_device) {
  counters c = {.count = count, .is_device = is_device && is_on_gpu};
  int64_t zeros[MOST] = {0};
  if (c.is_device) {
    CUdeviceptr address = 0;
    MUST(cu.allocate(&address, (size_t)count * sizeof(int64_t)));
    MUST(cu.copy(address, (CUdeviceptr)(uintptr_t)zeros, (size_t)count * sizeof(int64_t)));
    c.data = (int64_t *)(uintptr_t)address;
  } else {
    c.data = need(calloc((size_t)count, sizeof(int64_t)));
  }
  return c;
}

static void counters_free(counters *c) {
  if (c->is_device) {
    MUST(cu.free((CUdeviceptr)(uintptr_t)c->data));
  } else {
    free(c->data);
  }
}

// What was enqueued on the stream comes first.
static void counters_check(const counters *c, CUstream stream, int number, int call,
                           const char *what) {
  int64_t values[MOST];
  const int64_t *found = c->data;
  if (c->is_device) {
    MUST(cu.copy_async((CUdeviceptr)(uintptr_t)values, (CUdeviceptr)(uintptr_t)c->data,
                       (size_t)c->count * sizeof(int64_t), stream));
    MUST(cu.stream_wait(stream));
    found = values;
  }
  for (int64_t i = 0; i < c->count; ++i) {
    EXPECT(found[i] == c->total * (i + 1),
           "thread %d, call %d: %s: counter %lld is %lld, expected %lld", number, call, what,
           (long long)i, (long long)found[i], (long long)(c->total * (i + 1)));
  }
}

// Of 8 calls 4 are plain with the device's memory, 1 with a few elements of the host's, and 3 are
// enqueued on the thread's stream.
static void work(int number) {
  const library *l = the_libraries[number % 2];
  CUstream stream = NULL;
  if (is_on_gpu) {
    MUST(cu.context_use(the_context));
    stream = driver_make_stream();
  }
  counters device = counters_make(33 + number, true);
  counters enqueued = counters_make(17 + number, true);
  counters host = counters_make(3 + number % 3, false);
  // Every other pair of threads calls without a context of its own.
  bool has_context = is_on_gpu && number / 2 % 2 == 0;
  if (is_on_gpu && !has_context) {
    MUST(cu.context_use(NULL));
  }
  for (int call = 1; call <= the_calls; ++call) {
    int64_t by = number * 1000 + call % 7 + 1;
    switch (call % 8) {
    case 0:
      GOOD_OF(l, count_up(host.data, host.count, by));
      host.total += by;
      counters_check(&host, NULL, number, call, "host memory");
      break;
    case 1:
    case 3:
    case 5:
      GOOD_OF(l, count_up_async(enqueued.data, enqueued.count, by, stream));
      enqueued.total += by;
      break;
    default:
      GOOD_OF(l, count_up(device.data, device.count, by));
      device.total += by;
      break;
    }
    if (call % BETWEEN_CHECKS == 0 || call == the_calls) {
      if (is_on_gpu && !has_context) {
        MUST(cu.context_use(the_context));
      }
      counters_check(&enqueued, stream, number, call, "enqueued");
      counters_check(&device, stream, number, call, "device memory");
      if (is_on_gpu && !has_context) {
        MUST(cu.context_use(NULL));
      }
    }
  }
  if (is_on_gpu) {
    MUST(cu.context_use(the_context));
    MUST(cu.stream_destroy(stream));
  }
  counters_free(&device);
  counters_free(&enqueued);
  counters_free(&host);
  atomic_fetch_add(&finished, 1);
}

static void run_calls(int calls) {
  the_calls = calls;
  atomic_store(&finished, 0);
  run_threads(THREADS, work);
  EXPECT(atomic_load(&finished) == THREADS, "a thread is missing");
}

static void soak(const library *even, const library *odd) {
  the_libraries[0] = even;
  the_libraries[1] = odd;
  int calls = the_argument != NULL ? atoi(the_argument) : CALLS;
  EXPECT(calls > 0, "the word must be the number of calls of a thread");
  size_t before = 0;
  if (is_on_gpu) {
    the_context = driver_use_primary();
  }
  run_calls(calls < WARM_CALLS ? calls : WARM_CALLS);
  before = is_on_gpu ? driver_free_bytes() : 0;
  double start = now();
  run_calls(calls);
  double seconds = now() - start;
  size_t after = is_on_gpu ? driver_free_bytes() : 0;
  printf("%d threads x %d calls in %.1f s: %.2f microseconds a call of a thread\n", THREADS, calls,
         seconds, 1e6 * seconds / calls);
  EXPECT(after + STEP >= before, "%zu bytes were free, and %zu after the calls", before, after);
}

static void run_soak(void) {
  soak(&vectors_library, &vectors_library);
  GOOD(vectors_unload());
}

static void run_two(void) {
  soak(&vectors_library, &one_library);
}

// -------------------------------------------------------------------------------------------------
// Two libraries

enum { ONE_CALLS = 5000, UNLOADS = 50, N = 1003 };

// One library's failures and unloads are not the other's.
static void disturb(int number) {
  float a[N], sum[N] = {0};
  fill_numbers(a, N, (uint32_t)number);
  if (number == 0) {
    for (int i = 0; i < ONE_CALLS; ++i) {
      memset(sum, 0, sizeof(sum));
      EXPECT(one_add(a, N, a, N, sum, N) == AOTC_OK, "one_add: %s", one_last_error());
      EXPECT(sum[0] == 2 * a[0] && sum[N - 1] == 2 * a[N - 1], "one_add: the sum is wrong");
    }
    return;
  }
  for (int i = 0; i < UNLOADS; ++i) {
    memset(sum, 0, sizeof(sum));
    GOOD(add(a, N, a, N, sum, N));
    EXPECT(sum[0] == 2 * a[0] && sum[N - 1] == 2 * a[N - 1], "add: the sum is wrong");
    EXPECT(one_add(NULL, N, a, N, sum, N) == AOTC_INVALID_ARGUMENT, "one_add took NULL");
    EXPECT(strstr(one_last_error(), "'x'") != NULL, "one_add: %s", one_last_error());
    EXPECT(vectors_last_error()[0] == '\0', "one library has the other's message: %s",
           vectors_last_error());
    REFUSED(AOTC_INVALID_ARGUMENT, "'z'", add(a, N, a, N, NULL, N));
    EXPECT(strstr(one_last_error(), "'x'") != NULL, "one library has cleared the other's: %s",
           one_last_error());
    GOOD(vectors_unload());
  }
}

static void run_apart(void) {
  run_threads(2, disturb);
}

const library_case soak_cases[] = {
    {"soak", "8 threads x 100000 calls (or WORD calls)", run_soak, true, false},
    {"two", "the same by two libraries", run_two, true, false},
    {"two-apart", "one library fails and unloads beside the other", run_apart, true, false},
    {NULL, NULL, NULL, false, false},
};
