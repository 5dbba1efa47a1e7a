// Calls that are captured into a graph, and calls beside a capture.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver.h"

enum { N = 10007, REPLAYS = 100 };
static const size_t BYTES = N * sizeof(float);

static const struct {
  const char *name;
  CUstreamCaptureMode mode;
} modes[] = {
    {"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
    {"thread-local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
    {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED},
};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static CUdeviceptr address(const void *pointer) {
  return (CUdeviceptr)(uintptr_t)pointer;
}

// Captures: x from `in`, z = 3 x, through two entries with two kernels, and the product of what is
// in z; z to `out`. Replays it with other numbers each time.
static void capture(CUstreamCaptureMode mode, const char *name) {
  CUstream stream = driver_make_stream();
  buffer in = buffer_make(PINNED, N);
  buffer out = buffer_make(PINNED, N);
  buffer x = buffer_make(DEVICE, N);
  buffer z = buffer_make(DEVICE, N);
  buffer C = buffer_make(DEVICE, 37 * 41);
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;

  MUST(cu.capture_begin(stream, mode));
  MUST(cu.copy_async(address(x.data), address(in.data), BYTES, stream));
  GOOD(add_async(x.data, N, x.data, N, z.data, N, stream));
  GOOD(add_async(x.data, N, z.data, N, z.data, N, stream));
  GOOD(product_async(z.data, z.data, C.data, stream));
  // A call that is refused does not end the capture.
  REFUSED(AOTC_INVALID_ARGUMENT, "'y'", add_async(x.data, N, NULL, N, z.data, N, stream));
  MUST(cu.copy_async(address(out.data), address(z.data), BYTES, stream));
  MUST(cu.capture_end(stream, &graph));
  EXPECT(graph != NULL, "%s: the capture has no graph", name);
  MUST(cu.graph_instantiate(&executable, graph, 0));
  buffer_expect(&z, NULL, 0, "%s: z, after the capture alone", name);

  static float expected[N], c[37 * 41];
  for (int replay = 0; replay < REPLAYS; ++replay) {
    fill_numbers(in.data, N, (uint32_t)replay + 500);
    for (int i = 0; i < N; ++i) {
      expected[i] = 3 * in.data[i];
    }
    for (int i = 0; i < 37; ++i) {
      for (int j = 0; j < 41; ++j) {
        float sum = 0;
        for (int k = 0; k < 53; ++k) {
          sum += expected[i * 53 + k] * expected[k * 41 + j];
        }
        c[i * 41 + j] = sum;
      }
    }
    buffer_poison(&out);
    MUST(cu.graph_launch(executable, stream));
    MUST(cu.stream_wait(stream));
    buffer_expect(&out, expected, N, "%s: replay %d", name, replay);
    buffer_expect(&C, c, 37 * 41, "%s: C of replay %d", name, replay);
  }
  MUST(cu.graph_exec_destroy(executable));
  MUST(cu.graph_destroy(graph));
  buffer_free(&in);
  buffer_free(&out);
  buffer_free(&x);
  buffer_free(&z);
  buffer_free(&C);
  MUST(cu.stream_destroy(stream));
}

static void run_capture(void) {
  driver_use_primary();
  float one = 1;
  GOOD(add(&one, 1, &one, 1, &one, 1));
  for (int i = 0; i < MODES; ++i) {
    capture(modes[i].mode, modes[i].name);
  }
}

// Nothing of the library was called before the capture began.
static void run_first(void) {
  driver_use_primary();
  for (int i = 0; i < MODES; ++i) {
    if (the_argument != NULL && strcmp(the_argument, modes[i].name) == 0) {
      capture(modes[i].mode, modes[i].name);
      return;
    }
  }
  fail("capture-first needs a word: global, thread-local or relaxed");
}

// -------------------------------------------------------------------------------------------------
// Beside a capture

static CUcontext the_context;
static pthread_barrier_t the_barrier;
static bool has_plain_calls;
static float a[N], twice[N];

static void meet(void) {
  pthread_barrier_wait(&the_barrier);
}

// Calls of every size that grows by half; the largest.
static int call_many(const buffer *x, const buffer *z, CUstream stream) {
  static float to[N];
  int largest = 0;
  for (int size = 1; size <= N; size += 1 + size / 2) {
    if (has_plain_calls) {
      memset(to, 0, BYTES);
      GOOD(add(a, size, a, size, to, size));
      EXPECT(memcmp(to, twice, (size_t)size * sizeof(float)) == 0,
             "a plain call of %d elements, beside a capture", size);
    } else {
      GOOD(add_async(x->data, size, x->data, size, z->data, size, stream));
    }
    largest = size;
  }
  return largest;
}

static void capture_and_replay(const buffer *x, const buffer *z, CUstream stream) {
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  MUST(cu.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  meet(); // the other begins to call
  meet(); // it has called
  GOOD(add_async(x->data, N, x->data, N, z->data, N, stream));
  MUST(cu.capture_end(stream, &graph));
  MUST(cu.graph_instantiate(&executable, graph, 0));
  MUST(cu.graph_launch(executable, stream));
  MUST(cu.stream_wait(stream));
  MUST(cu.graph_exec_destroy(executable));
  MUST(cu.graph_destroy(graph));
}

// Thread 0 captures; thread 1 meanwhile makes calls, the process's first, plain ones of sizes that
// need new buffers, or on a stream of its own. Neither disturbs the other. The test itself calls
// nothing of the driver meanwhile that a capture in this mode forbids to all.
static void capture_or_call(int number) {
  MUST(cu.context_use(the_context));
  CUstream stream = driver_make_stream();
  buffer x = buffer_make(DEVICE, N);
  buffer z = buffer_make(DEVICE, N);
  buffer_put(&x, a, N);
  int written = N;
  meet();
  if (number == 0) {
    capture_and_replay(&x, &z, stream);
  } else {
    meet();
    written = call_many(&x, &z, stream);
    meet();
  }
  meet();
  MUST(cu.stream_wait(stream));
  bool is_unused = number == 1 && has_plain_calls;
  buffer_expect(&z, twice, is_unused ? 0 : written, "z of thread %d", number);
  buffer_free(&x);
  buffer_free(&z);
  MUST(cu.stream_destroy(stream));
}

static void run_beside(void) {
  the_context = driver_use_primary();
  fill_numbers(a, N, 4);
  for (int i = 0; i < N; ++i) {
    twice[i] = 2 * a[i];
  }
  EXPECT(pthread_barrier_init(&the_barrier, NULL, 2) == 0, "no barrier");
  run_threads(2, capture_or_call);
}

static void run_beside_plain(void) {
  has_plain_calls = true;
  run_beside();
}

const library_case capture_cases[] = {
    {"capture", "captures in each mode, replayed with other numbers", run_capture, false, false},
    {"capture-first", "the same as the library's first use", run_first, false, false},
    {"capture-beside", "first calls on a stream beside a capture", run_beside, false, false},
    {"capture-beside-plain", "first plain calls beside a capture", run_beside_plain, false, false},
    {NULL, NULL, NULL, false, false},
};
