// Calls on the caller's streams: order, the default streams, many threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver.h"

// Large enough that a kernel which does not wait for the copy before it is early.
enum { N = (1 << 21) + 5, ROUNDS = 30, THREADS = 8, THREAD_ROUNDS = 200 };
static const size_t BYTES = N * sizeof(float);

static CUdeviceptr address(const void *pointer) {
  return (CUdeviceptr)(uintptr_t)pointer;
}

typedef struct work {
  buffer in, out;  // pinned
  buffer x, y, z;  // the device's
  float *expected; // N values
} work;

static work work_make(void) {
  work w = {
      .in = buffer_make(PINNED, N),
      .out = buffer_make(PINNED, N),
      .x = buffer_make(DEVICE, N),
      .y = buffer_make(DEVICE, N),
      .z = buffer_make(DEVICE, N),
      .expected = need(malloc(BYTES)),
  };
  return w;
}

static void work_free(work *w) {
  buffer_free(&w->in);
  buffer_free(&w->out);
  buffer_free(&w->x);
  buffer_free(&w->y);
  buffer_free(&w->z);
  free(w->expected);
}

// out = 4 in + in = 5 in, through three calls that need each other's results, between the caller's
// copies; nothing waits.
static void enqueue(const work *w, CUstream stream) {
  MUST(cu.copy_async(address(w->x.data), address(w->in.data), BYTES, stream));
  GOOD(add_async(w->x.data, N, w->x.data, N, w->y.data, N, stream));
  GOOD(add_async(w->y.data, N, w->y.data, N, w->y.data, N, stream));
  GOOD(add_async(w->y.data, N, w->x.data, N, w->z.data, N, stream));
  MUST(cu.copy_async(address(w->out.data), address(w->z.data), BYTES, stream));
  // What is still needed would be lost here, if the copy above came too early.
  MUST(cu.set_async(address(w->z.data), 0, N, stream));
}

static void prepare(const work *w, uint32_t seed) {
  fill_numbers(w->in.data, N, seed);
  for (int i = 0; i < N; ++i) {
    w->expected[i] = 5 * w->in.data[i];
  }
  buffer_poison(&w->out);
}

static void use_stream(CUstream stream, const char *what) {
  work w = work_make();
  for (int round = 0; round < ROUNDS; ++round) {
    prepare(&w, (uint32_t)round);
    enqueue(&w, stream);
    MUST(cu.stream_wait(stream));
    buffer_expect(&w.out, w.expected, N, "%s, round %d", what, round);
  }
  work_free(&w);
}

static void run_order(void) {
  driver_use_primary();
  CUstream stream = driver_make_stream();
  use_stream(stream, "a non-blocking stream");
  MUST(cu.stream_destroy(stream));
  MUST(cu.stream_create(&stream, CU_STREAM_DEFAULT));
  use_stream(stream, "a stream that waits for the default stream");
  MUST(cu.stream_destroy(stream));
}

static void run_default(void) {
  driver_use_primary();
  use_stream(NULL, "NULL");
  use_stream(CU_STREAM_LEGACY, "CU_STREAM_LEGACY");
  use_stream(CU_STREAM_PER_THREAD, "CU_STREAM_PER_THREAD");
}

// A thread without a context, with a stream of the primary context, or with none.
static CUstream their_stream;
static work their_work;

static void enqueue_without_context(int number) {
  (void)number;
  EXPECT(driver_current() == NULL, "a new thread has a context");
  const work *w = &their_work;
  GOOD(add_async(w->x.data, N, w->x.data, N, w->y.data, N, their_stream));
  GOOD(add_async(w->y.data, N, w->x.data, N, w->z.data, N, their_stream));
  EXPECT(driver_current() == NULL, "the thread has got a context");
}

static void run_without_context(void) {
  CUcontext context = driver_use_primary();
  float one = 1;
  GOOD(add(&one, 1, &one, 1, &one, 1)); // the device is chosen
  their_work = work_make();
  CUstream own = driver_make_stream();
  CUstream streams[] = {own, NULL, CU_STREAM_LEGACY};
  for (int i = 0; i < 3; ++i) {
    their_stream = streams[i];
    prepare(&their_work, (uint32_t)i);
    for (int j = 0; j < N; ++j) {
      their_work.expected[j] = 3 * their_work.in.data[j];
    }
    buffer_put(&their_work.x, their_work.in.data, N);
    buffer_poison(&their_work.z);
    run_threads(1, enqueue_without_context);
    MUST(cu.stream_wait(streams[i]));
    buffer_expect(&their_work.z, their_work.expected, N, "stream %d of a thread without context",
                  i);
  }
  EXPECT(driver_current() == context, "this thread's context has changed");
  MUST(cu.stream_destroy(own));
  work_free(&their_work);
}

// A plain call behind work of the caller's that takes its time, on a default stream.
static void follow(CUstream stream, const char *name) {
  enum { SLOW = 1 << 28, TIMES = 40 };
  static float a[N], twice[N];
  fill_numbers(a, N, 21);
  for (int i = 0; i < N; ++i) {
    twice[i] = 2 * a[i];
  }
  CUdeviceptr slow = 0;
  MUST(cu.allocate(&slow, SLOW));
  buffer source = buffer_make(DEVICE, N);
  buffer_put(&source, a, N);
  // What the call gets: where its x is, and where its z. The caller's work writes x.
  const kind kinds[][2] = {{DEVICE, DEVICE},
                           {MANAGED, DEVICE},
                           {PINNED, PAGEABLE},
                           {REGISTERED, PINNED},
                           {DEVICE, PAGEABLE}};
  for (int i = 0; i < 5; ++i) {
    buffer x = buffer_make(kinds[i][0], N);
    buffer z = buffer_make(kinds[i][1], N);
    MUST(cu.context_wait());
    for (int j = 0; j < TIMES; ++j) {
      MUST(cu.set_async(slow, (unsigned int)j, SLOW / 4, stream));
    }
    MUST(cu.copy_async(address(x.data), address(source.data), BYTES, stream));
    GOOD(add(x.data, N, x.data, N, z.data, N));
    buffer_expect(&z, twice, N, "add(%s, %s) behind %s", kind_names[x.kind], kind_names[z.kind],
                  name);
    buffer_free(&x);
    buffer_free(&z);
  }
  // Host code reads the first element.
  float expected[4] = {-(a[0] + a[0]), a[0] + a[1], a[0] + a[2], a[0] + a[3]};
  buffer x = buffer_make(MANAGED, 4);
  buffer z = buffer_make(PAGEABLE, 4);
  MUST(cu.context_wait());
  for (int j = 0; j < TIMES; ++j) {
    MUST(cu.set_async(slow, (unsigned int)j, SLOW / 4, stream));
  }
  MUST(cu.copy_async(address(x.data), address(source.data), 4 * sizeof(float), stream));
  GOOD(from_first(x.data, 4, z.data, 4));
  buffer_expect(&z, expected, 4, "from_first behind %s", name);
  buffer_free(&x);
  buffer_free(&z);
  buffer_free(&source);
  MUST(cu.free(slow));
}

static void run_follow(void) {
  driver_use_primary();
  follow(NULL, "NULL");
  follow(CU_STREAM_LEGACY, "CU_STREAM_LEGACY");
  follow(CU_STREAM_PER_THREAD, "CU_STREAM_PER_THREAD");
}

// -------------------------------------------------------------------------------------------------
// Threads

static CUcontext the_context;

static void use_own_stream(int number) {
  enum { COUNT = 5003 };
  // Half of the threads have no context: the stream's is used.
  MUST(cu.context_use(the_context));
  CUstream stream = driver_make_stream();
  buffer x = buffer_make(DEVICE, COUNT);
  buffer z = buffer_make(DEVICE, COUNT);
  buffer in = buffer_make(PINNED, COUNT);
  buffer out = buffer_make(PINNED, COUNT);
  static _Thread_local float expected[COUNT];
  for (int round = 0; round < THREAD_ROUNDS; ++round) {
    fill_numbers(in.data, COUNT, (uint32_t)(number * THREAD_ROUNDS + round));
    for (int i = 0; i < COUNT; ++i) {
      expected[i] = 3 * in.data[i];
    }
    MUST(cu.copy_async(address(x.data), address(in.data), COUNT * sizeof(float), stream));
    MUST(cu.context_use(number % 2 == 0 ? the_context : NULL));
    GOOD(add_async(x.data, COUNT, x.data, COUNT, z.data, COUNT, stream));
    GOOD(add_async(x.data, COUNT, z.data, COUNT, z.data, COUNT, stream));
    MUST(cu.context_use(the_context));
    MUST(cu.copy_async(address(out.data), address(z.data), COUNT * sizeof(float), stream));
    MUST(cu.stream_wait(stream));
    buffer_expect(&out, expected, COUNT, "thread %d, round %d", number, round);
  }
  buffer_free(&x);
  buffer_free(&z);
  buffer_free(&in);
  buffer_free(&out);
  MUST(cu.stream_destroy(stream));
}

// Also the first use of the library: its device is chosen, and its module loaded, by one of them.
static void run_threads_case(void) {
  the_context = driver_use_primary();
  run_threads(THREADS, use_own_stream);
}

const library_case stream_cases[] = {
    {"streams-order", "work on a stream, between the caller's copies", run_order, false, false},
    {"streams-default", "the default streams", run_default, false, false},
    {"streams-without-context", "threads that have no context", run_without_context, false, false},
    {"streams-plain-follows", "a plain call behind work on a default stream", run_follow, false,
     false},
    {"streams-threads", "8 threads on 8 streams", run_threads_case, false, false},
    {NULL, NULL, NULL, false, false},
};
