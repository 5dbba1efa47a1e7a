// What a call says when something fails, and what works afterwards.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver.h"

enum { N = 256, LATER_CALLS = 20 };

// 4 TiB behind a buffer there is nothing.
static const int64_t FAR = (int64_t)1 << 40;

// A call of the library `vectors` that must fail in one way or another, and say something.
static void must_fail(int32_t status, const char *what) {
  EXPECT(status != AOTC_OK, "%s: it went well, in a broken context", what);
  EXPECT(vectors_last_error()[0] != '\0', "%s: status %d without a message", what, (int)status);
}

static void call_afterwards(const buffer *x, CUstream stream) {
  float host[N] = {0};
  for (int i = 0; i < LATER_CALLS; ++i) {
    must_fail(add(x->data, N, x->data, N, x->data, N), "add");
    must_fail(add(host, N, host, N, host, N), "add of host memory");
    must_fail(product(x->data, x->data, x->data), "product");
    must_fail(three_steps(x->data, 0), "three_steps");
    must_fail(from_first(host, N, host, N), "from_first");
    // This one may be enqueued: what waits for it fails.
    add_async(x->data, N, x->data, N, x->data, N, stream);
    REFUSED(AOTC_INVALID_ARGUMENT, "'x'", add(NULL, N, x->data, N, x->data, N));
  }
}

static void run_illegal(void) {
  driver_use_primary();
  CUstream stream = driver_make_stream();
  buffer x = buffer_make(DEVICE, 37 * 53);
  GOOD(stray(x.data, 0));
  REFUSED(AOTC_LAUNCH_FAILED, "stray_kernel", stray(x.data, FAR));
  call_afterwards(&x, stream);
  // Whatever it says, it returns.
  int32_t status = vectors_unload();
  printf("unload: status %d: %s\n", (int)status, vectors_last_error());
  status = add(x.data, N, x.data, N, x.data, N);
  printf("afterwards: status %d: %s\n", (int)status, vectors_last_error());
}

static void run_illegal_async(void) {
  driver_use_primary();
  CUstream stream = driver_make_stream();
  buffer x = buffer_make(DEVICE, 37 * 53);
  GOOD(stray_async(x.data, 0, stream));
  MUST(cu.stream_wait(stream));
  GOOD(stray_async(x.data, FAR, stream));
  CUresult result = cu.stream_wait(stream);
  EXPECT(result == CUDA_ERROR_ILLEGAL_ADDRESS, "waiting for the stray write: %s",
         driver_error_name(result));
  must_fail(add(x.data, N, x.data, N, x.data, N), "add");
  call_afterwards(&x, stream);
}

// Nobody else holds the primary context: unload ends it, and with it what is broken.
static void run_illegal_and_unload(void) {
  float x[N] = {0};
  GOOD(stray(x, 0));
  REFUSED(AOTC_LAUNCH_FAILED, "stray_kernel", stray(x, FAR));
  must_fail(stray(x, 0), "stray");
  int32_t status = vectors_unload();
  printf("unload: status %d: %s\n", (int)status, vectors_last_error());
  for (int i = 0; i < N; ++i) {
    x[i] = 0;
  }
  status = stray(x, 0);
  printf("afterwards: status %d: %s\n", (int)status, vectors_last_error());
  EXPECT(status != AOTC_OK || x[N - 1] == 1, "it went well and did nothing");
}

// -------------------------------------------------------------------------------------------------
// AOTC_CHECK=1

static void check_steps(const buffer *x) {
  float expected[N];
  for (int i = 0; i < N; ++i) {
    expected[i] = 20;
  }
  buffer_expect(x, expected, N, "three steps");
}

static void run_check(void) {
  EXPECT(setenv("AOTC_CHECK", "1", 1) == 0, "no environment");
  driver_use_primary();
  buffer x = buffer_make(DEVICE, N);
  GOOD(three_steps(x.data, 0));
  check_steps(&x);
  REFUSED(AOTC_LAUNCH_FAILED, "'second_step'", three_steps(x.data, FAR));
  EXPECT(strstr(vectors_last_error(), "third_step") == NULL, "the third kernel is named, too: %s",
         vectors_last_error());
  call_afterwards(&x, NULL);
}

static void run_check_async(void) {
  EXPECT(setenv("AOTC_CHECK", "1", 1) == 0, "no environment");
  driver_use_primary();
  CUstream stream = driver_make_stream();
  buffer x = buffer_make(DEVICE, N);
  GOOD(three_steps_async(x.data, 0, stream));
  MUST(cu.stream_wait(stream));
  check_steps(&x);
  REFUSED(AOTC_LAUNCH_FAILED, "'second_step'", three_steps_async(x.data, FAR, stream));
  call_afterwards(&x, stream);
}

// Plain host memory given to f_async is found before a kernel touches it.
static void run_host_pointer(void) {
  EXPECT(setenv("AOTC_CHECK", "1", 1) == 0, "no environment");
  driver_use_primary();
  CUstream stream = driver_make_stream();
  float a[N], sum[N];
  fill_numbers(a, N, 8);
  for (int i = 0; i < N; ++i) {
    sum[i] = 2 * a[i];
  }
  buffer z = buffer_make(DEVICE, N);
  buffer host = buffer_make(PAGEABLE, N);
  REFUSED(AOTC_INVALID_ARGUMENT, "'x'", add_async(host.data, N, z.data, N, z.data, N, stream));
  REFUSED(AOTC_INVALID_ARGUMENT, "'z'", add_async(z.data, N, z.data, N, host.data, N, stream));
  MUST(cu.stream_wait(stream));
  buffer_expect(&z, NULL, 0, "z, after calls that were refused");
  buffer_expect(&host, NULL, 0, "host memory, after calls that were refused");
  for (int k = PINNED; k < KINDS; ++k) {
    buffer x = buffer_make((kind)k, N);
    buffer_put(&x, a, N);
    buffer_poison(&z);
    GOOD(add_async(x.data, N, x.data, N, z.data, N, stream));
    MUST(cu.stream_wait(stream));
    buffer_expect(&z, sum, N, "z, with x in %s memory", kind_names[k]);
    buffer_free(&x);
  }
}

// -------------------------------------------------------------------------------------------------
// Memory

enum { MOST_PIECES = 4096 };

static void run_memory(void) {
  driver_use_primary();
  enum { LARGE = 1 << 24 }; // 64 MiB each
  float *a = need(malloc(LARGE * sizeof(float)));
  float *z = need(calloc(LARGE, sizeof(float)));
  fill_numbers(a, LARGE, 30);
  GOOD(add(a, 10, a, 10, z, 10)); // the module is loaded, and small buffers are there
  static CUdeviceptr pieces[MOST_PIECES];
  int count = 0;
  for (size_t bytes = driver_free_bytes() / 2; bytes >= ((size_t)1 << 21); bytes /= 2) {
    while (count < MOST_PIECES && cu.allocate(&pieces[count], bytes) == CUDA_SUCCESS) {
      ++count;
    }
  }
  printf("%d pieces, %zu bytes left\n", count, driver_free_bytes());
  memset(z, 0, LARGE * sizeof(float));
  for (int i = 0; i < 10; ++i) {
    REFUSED(AOTC_OUT_OF_MEMORY, "'x'", add(a, LARGE, a, LARGE, z, LARGE));
  }
  for (int i = 0; i < LARGE; ++i) {
    EXPECT(z[i] == 0, "z[%d] was written by a call without memory", i);
  }
  // What needs no more memory works on.
  GOOD(add(a, 10, a, 10, z, 10));
  EXPECT(z[9] == 2 * a[9], "z[9] is %g", (double)z[9]);
  while (count > 0) {
    MUST(cu.free(pieces[--count]));
  }
  GOOD(add(a, LARGE, a, LARGE, z, LARGE));
  for (int i = 0; i < LARGE; ++i) {
    EXPECT(z[i] == 2 * a[i], "z[%d] is %g, expected %g", i, (double)z[i], 2 * (double)a[i]);
  }
  free(a);
  free(z);
}

// -------------------------------------------------------------------------------------------------
// The hook

static struct {
  int count;
  int32_t status;
  char message[1024];
  pthread_t thread;
} heard;

static void hear(int32_t status, const char *message, void *data) {
  EXPECT(data == &heard, "the hook got other data");
  ++heard.count;
  heard.status = status;
  snprintf(heard.message, sizeof(heard.message), "%s", message);
  heard.thread = pthread_self();
}

static void run_hook(void) {
  float one = 1;
  vectors_set_error_hook(hear, &heard);
  GOOD(add(&one, 1, &one, 1, &one, 1));
  EXPECT(heard.count == 0, "the hook heard of a good call: %s", heard.message);
  for (int i = 1; i <= 3; ++i) {
    REFUSED(AOTC_INVALID_ARGUMENT, "'y'", add(&one, 1, NULL, 1, &one, 1));
    EXPECT(heard.count == i, "the hook was called %d times, expected %d", heard.count, i);
    EXPECT(heard.status == AOTC_INVALID_ARGUMENT, "the hook got status %d", (int)heard.status);
    EXPECT(strcmp(heard.message, vectors_last_error()) == 0, "the hook got '%s', not '%s'",
           heard.message, vectors_last_error());
    EXPECT(pthread_equal(heard.thread, pthread_self()), "the hook was called on another thread");
  }
  // The other library has its own.
  EXPECT(one_add(&one, 1, NULL, 1, &one, 1) == AOTC_INVALID_ARGUMENT, "one_add took NULL");
  EXPECT(heard.count == 3, "the hook heard of another library");
  vectors_set_error_hook(NULL, NULL);
  REFUSED(AOTC_INVALID_ARGUMENT, "'y'", add(&one, 1, NULL, 1, &one, 1));
  EXPECT(heard.count == 3, "the hook was called after it was taken back");
  if (is_on_gpu) {
    vectors_set_error_hook(hear, &heard);
    REFUSED(AOTC_NO_DEVICE, "cuda:99", vectors_set_device(99));
    EXPECT(heard.count == 4 && heard.status == AOTC_NO_DEVICE, "the hook did not hear of cuda:99");
    REFUSED(AOTC_LAUNCH_FAILED, "stray_kernel", stray((float[N]){0}, FAR));
    EXPECT(heard.count == 5 && heard.status == AOTC_LAUNCH_FAILED,
           "the hook was called %d times, expected 5; status %d", heard.count, (int)heard.status);
  }
}

const library_case failure_cases[] = {
    {"failures-illegal", "a stray write, and calls behind it", run_illegal, false, false},
    {"failures-illegal-async", "the same on a stream", run_illegal_async, false, false},
    {"failures-illegal-unload", "the same, and unload", run_illegal_and_unload, false, false},
    {"failures-check", "AOTC_CHECK=1 names the kernel", run_check, false, false},
    {"failures-check-async", "the same on a stream", run_check_async, false, false},
    {"failures-host-pointer", "AOTC_CHECK=1 finds plain memory", run_host_pointer, false, false},
    {"failures-memory", "no device memory, and then there is", run_memory, false, false},
    {"failures-hook", "the hook hears of each failure", run_hook, true, false},
    {NULL, NULL, NULL, false, false},
};
