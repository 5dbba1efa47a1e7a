// Programs that are bound by memory, against a device-to-device copy in the same run. Links the
// library `programs`; prints a line of JSON for each. What gives a wrong result is not timed.
#include <cuda.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs.h"

enum { ROUNDS = 21, WARM_UPS = 3, PERIOD = 1048573, ROWS = 8192, LARGE_ROWS = 16384, BUFFERS = 4 };
static const int64_t POINTS = (int64_t)1 << 28;
static const int64_t SUMMED = (int64_t)1 << 30;
static const float FACTOR = 1.5F;

#define DRIVER(X)                                                                                  \
  X(cuInit)                                                                                        \
  X(cuDeviceGet)                                                                                   \
  X(cuDevicePrimaryCtxRetain)                                                                      \
  X(cuCtxSetCurrent)                                                                               \
  X(cuCtxSynchronize)                                                                              \
  X(cuMemAlloc_v2)                                                                                 \
  X(cuMemcpyHtoD_v2)                                                                               \
  X(cuMemcpyDtoH_v2)                                                                               \
  X(cuMemcpyDtoDAsync_v2)                                                                          \
  X(cuMemsetD8_v2)

#define DECLARE(name) static __typeof__(name) *p_##name;
DRIVER(DECLARE)
#undef DECLARE

static void check(int status, const char *what) {
  if (status != 0) {
    fprintf(stderr, "bandwidth: %s: %d %s\n", what, status, programs_last_error());
    exit(1);
  }
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "bandwidth: %s\n", dlerror());
    exit(3);
  }
#define FIND(name) *(void **)&p_##name = dlsym(library, #name);
  DRIVER(FIND)
#undef FIND
  CUdevice device = 0;
  CUcontext context = NULL;
  check((int)p_cuInit(0), "cuInit");
  check((int)p_cuDeviceGet(&device, 0), "cuDeviceGet");
  check((int)p_cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check((int)p_cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

// -------------------------------------------------------------------------------------------------
// Inputs: numbers from -0.25 to 0.75 that repeat, from another place on in each buffer.

static float pattern[2 * PERIOD];
static CUdeviceptr buffers[BUFFERS]; // 0 to 2: inputs; 3: the result
static double pattern_sum;

static float input(int buffer, int64_t at) {
  return pattern[(at + (int64_t)buffer * 7919) % PERIOD];
}

static void fill_inputs(void) {
  uint64_t state = 1;
  for (int i = 0; i < PERIOD; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    pattern[i] = (float)(state >> 40) / 16777216.0F - 0.25F;
    pattern[PERIOD + i] = pattern[i];
    pattern_sum += (double)pattern[i];
  }
  for (int b = 0; b < BUFFERS; ++b) {
    int64_t count = b == 0 ? SUMMED : POINTS;
    check((int)p_cuMemAlloc_v2(&buffers[b], (size_t)count * sizeof(float)), "cuMemAlloc");
    for (int64_t at = 0; at < count; at += PERIOD) {
      int64_t many = count - at < PERIOD ? count - at : PERIOD;
      check((int)p_cuMemcpyHtoD_v2(buffers[b] + (size_t)at * sizeof(float),
                                   &pattern[(at + (int64_t)b * 7919) % PERIOD],
                                   (size_t)many * sizeof(float)),
            "cuMemcpyHtoD");
    }
  }
}

static float *buffer(int b) {
  return (float *)(uintptr_t)buffers[b];
}

static void read_result(int64_t at, int64_t count, float *out_values) {
  check((int)p_cuMemcpyDtoH_v2(out_values, buffers[3] + (size_t)at * sizeof(float),
                               (size_t)count * sizeof(float)),
        "cuMemcpyDtoH");
}

// -------------------------------------------------------------------------------------------------
// What is right: NAN-safe comparisons, so that what was not written is found.

static bool is_close(double value, double expected, double tolerance) {
  return fabs(value - expected) <= tolerance * (1e-6 + fabs(expected));
}

enum { PART = 5000 }; // elements that are looked at in one place

static bool check_points(double (*expected)(int64_t), int64_t count) {
  static float values[PART];
  for (int place = 0; place <= 8; ++place) {
    int64_t start = (count - PART) * place / 8;
    read_result(start, PART, values);
    for (int i = 0; i < PART; ++i) {
      if (!is_close((double)values[i], expected(start + i), 1e-5)) {
        fprintf(stderr, "bandwidth: element %lld is %g, not %g\n", (long long)(start + i),
                (double)values[i], expected(start + i));
        return false;
      }
    }
  }
  return true;
}

static double expect_copy(int64_t i) {
  return (double)input(0, i);
}

static double expect_axpy(int64_t i) {
  return (double)FACTOR * (double)input(0, i) + (double)input(1, i);
}

static double expect_relu(int64_t i) {
  double value = (double)(input(0, i) * input(1, i)) + (double)input(2, i);
  return value > 0 ? (double)(float)value : 0;
}

static double expect_transposed(int64_t at) {
  return (double)input(0, at % ROWS * ROWS + at / ROWS);
}

static double expect_large_transposed(int64_t at) {
  return (double)input(0, at % LARGE_ROWS * LARGE_ROWS + at / LARGE_ROWS);
}

static bool check_copy(void) {
  return check_points(expect_copy, POINTS);
}

static bool check_axpy(void) {
  return check_points(expect_axpy, POINTS);
}

// An element near 0 differs by the rounding of its parts.
static bool check_relu(void) {
  static float values[PART];
  for (int place = 0; place <= 8; ++place) {
    int64_t start = (POINTS - PART) * place / 8;
    read_result(start, PART, values);
    for (int i = 0; i < PART; ++i) {
      if (!(fabs((double)values[i] - expect_relu(start + i)) <= 1e-6)) {
        return false;
      }
    }
  }
  return true;
}

static bool check_transpose(void) {
  return check_points(expect_transposed, (int64_t)ROWS * ROWS);
}

static bool check_large_transpose(void) {
  return check_points(expect_large_transposed, (int64_t)LARGE_ROWS * LARGE_ROWS);
}

static const int64_t CHECKED_ROWS[] = {0, 1, 4097, ROWS - 1};

static bool check_rows(void (*expected)(int64_t row, double *out_values), double rounding) {
  static float values[ROWS];
  static double right[ROWS];
  for (size_t r = 0; r < sizeof(CHECKED_ROWS) / sizeof(CHECKED_ROWS[0]); ++r) {
    expected(CHECKED_ROWS[r], right);
    read_result(CHECKED_ROWS[r] * ROWS, ROWS, values);
    for (int j = 0; j < ROWS; ++j) {
      if (!(fabs((double)values[j] - right[j]) <= 1e-5 * fabs(right[j]) + rounding)) {
        fprintf(stderr, "bandwidth: row %lld, column %d is %g, not %g\n",
                (long long)CHECKED_ROWS[r], j, (double)values[j], right[j]);
        return false;
      }
    }
  }
  return true;
}

static void expect_softmax(int64_t row, double *out_values) {
  double sum = 0;
  for (int j = 0; j < ROWS; ++j) {
    out_values[j] = exp((double)input(0, row * ROWS + j));
    sum += out_values[j];
  }
  for (int j = 0; j < ROWS; ++j) {
    out_values[j] /= sum;
  }
}

static void expect_layer_norm(int64_t row, double *out_values) {
  double sum = 0;
  double squares = 0;
  for (int j = 0; j < ROWS; ++j) {
    sum += (double)input(0, row * ROWS + j);
  }
  double mean = sum / ROWS;
  for (int j = 0; j < ROWS; ++j) {
    double d = (double)input(0, row * ROWS + j) - mean;
    squares += d * d;
  }
  for (int j = 0; j < ROWS; ++j) {
    double d = (double)input(0, row * ROWS + j) - mean;
    out_values[j] = d / sqrt(squares / ROWS + 1e-5) * (double)input(1, j) + (double)input(2, j);
  }
}

static bool check_softmax(void) {
  return check_rows(expect_softmax, 1e-5 / ROWS);
}

static bool check_layer_norm(void) {
  return check_rows(expect_layer_norm, 1e-5);
}

static bool check_sum(void) {
  double expected = pattern_sum * (double)(SUMMED / PERIOD);
  for (int64_t i = SUMMED / PERIOD * PERIOD; i < SUMMED; ++i) {
    expected += (double)input(0, i);
  }
  float value = NAN;
  read_result(0, 1, &value);
  if (!is_close((double)value, expected, 1e-5)) {
    fprintf(stderr, "bandwidth: the sum is %.9g, not %.9g\n", (double)value, expected);
    return false;
  }
  return true;
}

// -------------------------------------------------------------------------------------------------
// Cases

static int copy(void) {
  int status = (int)p_cuMemcpyDtoDAsync_v2(buffers[3], buffers[0], sizeof(float) * POINTS, NULL);
  return status != 0 ? status : (int)p_cuCtxSynchronize();
}

#define CASE(name, ...)                                                                            \
  static int call_##name(void) {                                                                   \
    return name(__VA_ARGS__);                                                                      \
  }
CASE(axpy_tensors, FACTOR, buffer(0), buffer(1), buffer(3))
CASE(axpy_memrefs, FACTOR, buffer(0), POINTS, buffer(1), POINTS, buffer(3), POINTS)
CASE(axpy_loops, FACTOR, buffer(0), POINTS, buffer(1), POINTS, buffer(3), POINTS)
CASE(relu_tensors, buffer(0), buffer(1), buffer(2), buffer(3))
CASE(relu_memrefs, buffer(0), POINTS, buffer(1), POINTS, buffer(2), POINTS, buffer(3), POINTS)
CASE(copy_memrefs, buffer(0), buffer(3))
CASE(softmax_tensors, buffer(0), buffer(3))
CASE(softmax_loops, buffer(0), buffer(3))
CASE(softmax_memrefs, buffer(0), ROWS, ROWS, buffer(3), ROWS, ROWS)
CASE(softmax_parallel, buffer(0), ROWS, ROWS, buffer(3), ROWS, ROWS)
CASE(layer_norm_tensors, buffer(0), buffer(1), buffer(2), buffer(3))
CASE(sum_tensors, buffer(0), buffer(3))
CASE(sum_loops, buffer(0), SUMMED, buffer(3))
CASE(sum_parallel, buffer(0), SUMMED, buffer(3))
CASE(transpose_tensors, buffer(0), buffer(3))
CASE(transpose_memrefs, buffer(0), buffer(3))
CASE(transpose_loops, buffer(0), LARGE_ROWS, LARGE_ROWS, buffer(3), LARGE_ROWS, LARGE_ROWS)
#undef CASE

typedef struct bench_case {
  const char *name;
  int (*call)(void);
  bool (*is_right)(void);
  double bytes; // read and written
  double goal;  // of the copy's bandwidth
  double times[ROUNDS];
} bench_case;

#define MATRIX ((double)ROWS * ROWS * sizeof(float))
#define LARGE_MATRIX ((double)LARGE_ROWS * LARGE_ROWS * sizeof(float))
#define VECTOR ((double)POINTS * sizeof(float))
#define ONE(name, is_right, bytes, goal) {#name, call_##name, is_right, bytes, goal, {0}}

static bench_case cases[] = {
    {"copy by the driver", copy, check_copy, 2 * VECTOR, 0, {0}},
    ONE(copy_memrefs, check_copy, 2 * VECTOR, 0.9),
    ONE(axpy_tensors, check_axpy, 3 * VECTOR, 0.9),
    ONE(axpy_memrefs, check_axpy, 3 * VECTOR, 0.9),
    ONE(axpy_loops, check_axpy, 3 * VECTOR, 0.9),
    ONE(relu_tensors, check_relu, 4 * VECTOR, 0.9),
    ONE(relu_memrefs, check_relu, 4 * VECTOR, 0.9),
    ONE(softmax_tensors, check_softmax, 2 * MATRIX, 0.8),
    ONE(softmax_loops, check_softmax, 2 * MATRIX, 0.8),
    ONE(softmax_memrefs, check_softmax, 2 * MATRIX, 0.8),
    ONE(softmax_parallel, check_softmax, 2 * MATRIX, 0.8),
    ONE(layer_norm_tensors, check_layer_norm, 2 * MATRIX, 0.8),
    ONE(sum_tensors, check_sum, (double)SUMMED * sizeof(float), 0.9),
    ONE(sum_loops, check_sum, (double)SUMMED * sizeof(float), 0.9),
    ONE(sum_parallel, check_sum, (double)SUMMED * sizeof(float), 0.9),
    ONE(transpose_tensors, check_transpose, 2 * MATRIX, 0.8),
    ONE(transpose_memrefs, check_large_transpose, 2 * LARGE_MATRIX, 0.8),
    ONE(transpose_loops, check_large_transpose, 2 * LARGE_MATRIX, 0.8),
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

static double seconds_of(bench_case *c) {
  qsort(c->times, ROUNDS, sizeof(double), compare);
  return c->times[ROUNDS / 2];
}

static bool is_right(bench_case *c) {
  // What is not written stays NaN.
  check((int)p_cuMemsetD8_v2(buffers[3], 0xFF, (size_t)VECTOR), "cuMemsetD8");
  double start = now();
  check(c->call(), c->name);
  check((int)p_cuCtxSynchronize(), "cuCtxSynchronize");
  if (now() - start > 2) { // seconds: a thousand times what it should take
    printf("{\"name\": \"%s\", \"problem\": \"%.1f s for one call\"}\n", c->name, now() - start);
    return false;
  }
  if (!c->is_right()) {
    printf("{\"name\": \"%s\", \"problem\": \"wrong result\"}\n", c->name);
    return false;
  }
  return true;
}

int main(void) {
  open_driver();
  fill_inputs();
  bool right[CASES];
  for (int i = 0; i < CASES; ++i) {
    right[i] = is_right(&cases[i]);
  }
  for (int round = -WARM_UPS; round < ROUNDS; ++round) {
    for (int i = 0; i < CASES; ++i) {
      if (!right[i]) {
        continue;
      }
      double start = now();
      check(cases[i].call(), cases[i].name);
      double end = now();
      cases[i].times[round < 0 ? 0 : round] = end - start;
    }
  }
  double ceiling = cases[0].bytes / seconds_of(&cases[0]);
  bool all_met = true;
  for (int i = 0; i < CASES; ++i) {
    if (!right[i]) {
      all_met = false;
      continue;
    }
    double seconds = seconds_of(&cases[i]);
    double rate = cases[i].bytes / seconds;
    bool is_met = rate / ceiling >= cases[i].goal;
    all_met = all_met && is_met;
    printf("{\"name\": \"%s\", \"us\": %.1f, \"gb_per_s\": %.0f, \"of_copy\": %.3f, "
           "\"goal\": %.2f, \"met\": %s}\n",
           cases[i].name, 1e6 * seconds, 1e-9 * rate, rate / ceiling, cases[i].goal,
           is_met ? "true" : "false");
  }
  return all_met ? 0 : 1;
}
