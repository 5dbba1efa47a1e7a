// What cannot be is refused, with the argument's name, and nothing is launched.
#include <stdlib.h>

#include "check.h"
#include "driver.h"

enum { N = 256, ROWS = 37, INNER = 53, COLUMNS = 41 };

// Both forms, with the same arguments; on the CPU a stream is nothing.
#define BOTH(text, entry, stream, ...)                                                             \
  do {                                                                                             \
    REFUSED(AOTC_INVALID_ARGUMENT, text, entry(__VA_ARGS__));                                      \
    REFUSED(AOTC_INVALID_ARGUMENT, text, entry##_async(__VA_ARGS__, stream));                      \
  } while (0)

static float *shifted(float *pointer, uintptr_t bytes) {
  return (float *)((uintptr_t)pointer + bytes); // NOLINT: misaligned on purpose
}

static void refuse_all(kind k, CUstream stream) {
  static float a[INNER * COLUMNS];
  fill_numbers(a, INNER * COLUMNS, 3);
  buffer x = buffer_make(k, INNER * COLUMNS);
  buffer z = buffer_make(k, N);
  buffer C = buffer_make(k, ROWS * COLUMNS);
  buffer_put(&x, a, INNER * COLUMNS);

  BOTH("'x'", add, stream, NULL, N, x.data, N, z.data, N);
  BOTH("'y'", add, stream, x.data, N, NULL, N, z.data, N);
  BOTH("'z'", add, stream, x.data, N, x.data, N, NULL, N);
  BOTH("'A'", product, stream, NULL, x.data, C.data);
  BOTH("'B'", product, stream, x.data, NULL, C.data);
  BOTH("'C'", product, stream, x.data, x.data, NULL);
  for (uintptr_t bytes = 1; bytes < sizeof(float); ++bytes) {
    BOTH("'x'", add, stream, shifted(x.data, bytes), N, x.data, N, z.data, N);
    BOTH("aligned", add, stream, x.data, N, x.data, N, shifted(z.data, bytes), N - 1);
  }
  BOTH("'x'", add, stream, x.data, -1, x.data, N, z.data, N);
  BOTH("negative", add, stream, x.data, N, x.data, INT64_MIN, z.data, N);
  BOTH("'y'", add, stream, x.data, N, x.data, INT64_MAX, z.data, N);
  BOTH("'z'", add, stream, x.data, N, x.data, N, z.data, INT64_MAX / 2);
  BOTH("'x'", spread, stream, x.data, (int64_t)1 << 32, (int64_t)1 << 32, z.data, 1, 1);
  BOTH("'z'", spread, stream, x.data, 1, 1, z.data, INT64_MAX, 3);

  aotc_memref_f32_2 good = {C.memory, C.data, 0, {ROWS, COLUMNS}, {COLUMNS, 1}};
  aotc_memref_f32_2 A = {x.memory, x.data, 0, {ROWS, INNER}, {INNER, 1}};
  aotc_memref_f32_2 B = {x.memory, x.data, 0, {INNER, COLUMNS}, {COLUMNS, 1}};
  aotc_memref_f32_2 bad = B;
  bad.sizes[1] = COLUMNS + 1;
  REFUSED(AOTC_INVALID_ARGUMENT, "'B'", product_memref(&A, &bad, &good));
  bad = B;
  bad.strides[0] = COLUMNS + 1;
  REFUSED(AOTC_INVALID_ARGUMENT, "'B'", product_memref(&A, &bad, &good));
  bad = B;
  bad.offset = 1;
  REFUSED(AOTC_INVALID_ARGUMENT, "'B'", product_memref(&A, &bad, &good));
  bad = good;
  bad.aligned = NULL;
  REFUSED(AOTC_INVALID_ARGUMENT, "'C'", product_memref(&A, &B, &bad));
  REFUSED(AOTC_INVALID_ARGUMENT, "'A'", product_memref(NULL, &B, &good));

  if (is_on_gpu) {
    MUST(cu.context_wait());
  }
  buffer_expect(&z, NULL, 0, "%s: z, after calls that were refused", kind_names[k]);
  buffer_expect(&C, NULL, 0, "%s: C, after calls that were refused", kind_names[k]);
  buffer_expect(&x, a, INNER * COLUMNS, "%s: x, after calls that were refused", kind_names[k]);

  // None of it stays.
  float sum[N];
  for (int i = 0; i < N; ++i) {
    sum[i] = 2 * a[i];
  }
  GOOD(add(x.data, N, x.data, N, z.data, N));
  buffer_expect(&z, sum, N, "%s: z of the good call", kind_names[k]);
  buffer_free(&x);
  buffer_free(&z);
  buffer_free(&C);
}

static void run_refused(void) {
  CUstream stream = NULL;
  if (is_on_gpu) {
    driver_use_primary();
    stream = driver_make_stream();
  }
  for (int k = 0; k < KINDS; ++k) {
    if (has_kind(k)) {
      refuse_all((kind)k, stream);
    }
  }
}

// The very first call of the process may be one that is refused.
static void run_refused_first(void) {
  REFUSED(AOTC_INVALID_ARGUMENT, "'x'", add(NULL, 1, NULL, 0, NULL, 0));
  float one = 1;
  float two = 0;
  GOOD(add(&one, 1, &one, 1, &two, 1));
  EXPECT(two == 2, "1 + 1 is %g", (double)two);
}

const library_case refusal_cases[] = {
    {"pointers-refused", "arguments that cannot be", run_refused, true, false},
    {"pointers-refused-first", "the same, as the process's first call", run_refused_first, true,
     true},
    {NULL, NULL, NULL, false, false},
};
