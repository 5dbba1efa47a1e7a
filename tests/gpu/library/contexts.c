// Whose context a call runs in, and that it stays as it was.
#include <stdio.h>

#include "check.h"
#include "driver.h"

enum { N = 1003, TURNS = 20 };

static float in[N], twice[N];

static void fill(uint32_t seed) {
  fill_numbers(in, N, seed);
  for (int i = 0; i < N; ++i) {
    twice[i] = 2 * in[i];
  }
}

// Calls with memory of the current context, with host memory, and on a stream; the current context
// is what it was.
static void call_all(const char *what) {
  CUcontext before = driver_current();
  buffer x = buffer_make(DEVICE, N);
  buffer z = buffer_make(DEVICE, N);
  buffer host = buffer_make(PAGEABLE, N);
  buffer_put(&x, in, N);
  buffer_put(&host, in, N);
  GOOD(add(x.data, N, host.data, N, z.data, N));
  EXPECT(driver_current() == before, "%s: the current context has changed", what);
  buffer_expect(&z, twice, N, "%s: z", what);
  buffer_poison(&z);
  CUstream stream = driver_make_stream();
  GOOD(add_async(x.data, N, x.data, N, z.data, N, stream));
  EXPECT(driver_current() == before, "%s: f_async has changed the current context", what);
  MUST(cu.stream_wait(stream));
  buffer_expect(&z, twice, N, "%s: z of f_async", what);
  // A call that fails leaves it, too.
  REFUSED(AOTC_INVALID_ARGUMENT, "'x'", add(NULL, N, x.data, N, z.data, N));
  EXPECT(driver_current() == before, "%s: a refused call has changed the current context", what);
  MUST(cu.stream_destroy(stream));
  buffer_free(&x);
  buffer_free(&z);
  buffer_free(&host);
}

static void call_with_host_memory(const char *what) {
  CUcontext before = driver_current();
  buffer x = buffer_make(PAGEABLE, N);
  buffer z = buffer_make(PAGEABLE, N);
  buffer_put(&x, in, N);
  GOOD(add(x.data, N, x.data, N, z.data, N));
  buffer_expect(&z, twice, N, "%s: z", what);
  GOOD(from_first(x.data, N, x.data, N));
  EXPECT(x.data[0] == -twice[0] && x.data[N - 1] == in[N - 1] + in[0], "%s: from_first", what);
  EXPECT(driver_current() == before, "%s: the current context has changed", what);
  buffer_free(&x);
  buffer_free(&z);
}

static void call_without_context(int number) {
  char what[64];
  snprintf(what, sizeof(what), "thread %d, without a context", number);
  EXPECT(driver_current() == NULL, "a new thread has a context");
  call_with_host_memory(what);
  EXPECT(driver_current() == NULL, "%s: it has one now", what);
}

static void run_none(void) {
  fill(1);
  run_threads(4, call_without_context);
  call_without_context(-1);
  driver_use_primary();
  call_all("the primary context");
}

static void run_primary(void) {
  fill(2);
  CUcontext context = driver_use_primary();
  call_all("the primary context");
  MUST(cu.context_push(context));
  MUST(cu.context_push(context));
  call_all("the primary context, pushed twice");
  CUcontext popped = NULL;
  for (int i = 0; i < 3; ++i) {
    MUST(cu.context_pop(&popped));
    EXPECT(popped == context, "pop %d: another context", i);
  }
  EXPECT(driver_current() == NULL, "the stack of contexts has one too many");
}

static void run_own(void) {
  fill(3);
  CUcontext a = driver_make_context(0);
  EXPECT(driver_current() == a, "a new context is not current");
  call_all("a context of the caller's, first of all");
  CUcontext b = driver_make_context(0);
  for (int turn = 0; turn < TURNS; ++turn) {
    fill((uint32_t)turn + 10);
    MUST(cu.context_use(turn % 2 == 0 ? a : b));
    call_all(turn % 2 == 0 ? "context a" : "context b");
  }
  CUcontext primary = driver_use_primary();
  call_all("the primary context, after two others");
  MUST(cu.context_push(a));
  MUST(cu.context_push(b));
  call_all("b over a over the primary context");
  CUcontext popped = NULL;
  MUST(cu.context_pop(&popped));
  EXPECT(popped == b, "b was not on top");
  call_all("a over the primary context");
  MUST(cu.context_pop(&popped));
  EXPECT(popped == a, "a was not on top");
  EXPECT(driver_current() == primary, "the primary context was not below");

  // A context goes away with what the library has there; another may get its address.
  MUST(cu.context_destroy(a));
  call_all("the primary context, after a is gone");
  for (int turn = 0; turn < 5; ++turn) {
    fill((uint32_t)turn + 50);
    CUcontext c = driver_make_context(0);
    call_all("a new context");
    MUST(cu.context_destroy(c));
    MUST(cu.context_use(b));
    call_all("b, after others are gone");
  }
  MUST(cu.context_use(b));
  GOOD(vectors_unload());
  EXPECT(driver_current() == b, "unload has changed the current context");
  call_all("b, after unload");
  MUST(cu.context_destroy(b));
  MUST(cu.context_use(NULL));
  GOOD(vectors_unload());
  MUST(cu.context_use(primary));
  call_all("the primary context, after unload");
}

// A stream's context is used where none is current.
static CUstream the_stream;
static buffer the_x, the_z;

static void call_on_stream(int number) {
  (void)number;
  GOOD(add_async(the_x.data, N, the_x.data, N, the_z.data, N, the_stream));
  EXPECT(driver_current() == NULL, "f_async has left a context behind");
}

static void run_stream(void) {
  fill(4);
  driver_use_primary();
  call_all("the primary context");
  for (int i = 0; i < 2; ++i) {
    CUcontext own = driver_make_context(0);
    the_stream = driver_make_stream();
    the_x = buffer_make(DEVICE, N);
    the_z = buffer_make(DEVICE, N);
    buffer_put(&the_x, in, N);
    MUST(cu.context_wait());
    run_threads(1, call_on_stream);
    MUST(cu.stream_wait(the_stream));
    buffer_expect(&the_z, twice, N, "context %d, by its stream alone", i);
    MUST(cu.context_destroy(own));
  }
}

// Memory of a context that is not the call's: the same GPU, but not where its kernels can reach.
static buffer foreign_x, foreign_z;

static void call_with_foreign_memory(int number) {
  (void)number;
  EXPECT(driver_current() == NULL, "a new thread has a context");
  GOOD(add(foreign_x.data, N, foreign_x.data, N, foreign_z.data, N));
}

static void run_foreign(void) {
  fill(6);
  CUcontext own = driver_make_context(0);
  foreign_x = buffer_make(DEVICE, N);
  foreign_z = buffer_make(DEVICE, N);
  buffer_put(&foreign_x, in, N);
  run_threads(1, call_with_foreign_memory);
  buffer_expect(&foreign_z, twice, N, "memory of another context, called without one");
  CUcontext other = driver_make_context(0);
  GOOD(add(foreign_x.data, N, foreign_x.data, N, foreign_x.data, N));
  MUST(cu.context_use(own));
  buffer_expect(&foreign_x, twice, N, "memory of another context, in place");
  MUST(cu.context_destroy(own));
  MUST(cu.context_destroy(other));
}

// The device of a thread without a context.
static void set_and_call(int number) {
  GOOD(vectors_set_device(number));
  call_without_context(number);
}

static void run_set_device(void) {
  fill(5);
  int count = driver_device_count();
  GOOD(vectors_set_device(0));
  REFUSED(AOTC_NO_DEVICE, "cuda:99", vectors_set_device(99));
  REFUSED(AOTC_INVALID_ARGUMENT, "-2", vectors_set_device(-2));
  call_without_context(0);
  REFUSED(AOTC_NO_DEVICE, "cuda:99", vectors_set_device(99));
  REFUSED(AOTC_NO_DEVICE, "cuda", vectors_set_device(count));
  REFUSED(AOTC_INVALID_ARGUMENT, "cpu", vectors_set_device(-1));
  call_without_context(0);
  run_threads(count, set_and_call);
  printf("%d GPU%s\n", count, count == 1 ? "" : "s");
  // A current context is stronger than the device that was set.
  for (int i = 0; i < count; ++i) {
    CUcontext own = driver_make_context(i);
    GOOD(vectors_set_device((i + 1) % count));
    call_all("a current context, and another device set");
    MUST(cu.context_destroy(own));
  }
}

const library_case context_cases[] = {
    {"contexts-none", "threads without a context", run_none, false, false},
    {"contexts-primary", "the primary context is current", run_primary, false, false},
    {"contexts-own", "contexts of the caller's, in turn and gone", run_own, false, false},
    {"contexts-stream", "a stream's context where none is current", run_stream, false, false},
    {"contexts-foreign", "memory of another context of the same GPU", run_foreign, false, false},
    {"contexts-set-device", "devices by number", run_set_device, false, false},
    {NULL, NULL, NULL, false, false},
};
