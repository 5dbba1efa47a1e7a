// What a call costs that launches 50 small kernels, beside a CUDA graph that was captured of the
// same call by hand; and what a result of unknown size costs. Prints JSON lines; exits with 1 if a
// result is wrong. Medians of ROUNDS rounds, in which the variants take turns.
#include <cuda.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "submission.h"

enum { ROUNDS = 300, CALLS = 20, ROWS = 16, COLUMNS = 256, LAYERS = 50 };

#define DRIVER(X)                                                                                  \
  X(cuInit)                                                                                        \
  X(cuDeviceGet)                                                                                   \
  X(cuDeviceGetName)                                                                               \
  X(cuDevicePrimaryCtxRetain)                                                                      \
  X(cuCtxSetCurrent)                                                                               \
  X(cuMemAlloc_v2)                                                                                 \
  X(cuMemsetD8_v2)                                                                                 \
  X(cuMemcpyHtoD_v2)                                                                               \
  X(cuMemcpyDtoH_v2)                                                                               \
  X(cuMemcpyDtoDAsync_v2)                                                                          \
  X(cuStreamCreate)                                                                                \
  X(cuStreamBeginCapture_v2)                                                                       \
  X(cuStreamEndCapture)                                                                            \
  X(cuGraphInstantiateWithFlags)                                                                   \
  X(cuGraphLaunch)                                                                                 \
  X(cuStreamSynchronize)
#define DECLARE(name) static __typeof__(name) *p_##name;
DRIVER(DECLARE)
#undef DECLARE

static void check(int status, const char *what) {
  if (status != 0) {
    fprintf(stderr, "submission: %s: %d %s\n", what, status, submission_last_error());
    exit(2);
  }
}
#define DO(call) check((int)(call), #call)

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "submission: %s\n", dlerror());
    exit(3);
  }
#define FIND(name) *(void **)&p_##name = dlsym(library, #name);
  DRIVER(FIND)
#undef FIND
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times) {
  qsort(times, ROUNDS, sizeof(*times), compare);
  return times[ROUNDS / 2];
}

static CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr made = 0;
  DO(p_cuMemAlloc_v2(&made, bytes));
  return made;
}

static CUstream stream;
static CUgraphExec graph;
static CUdeviceptr x, w, y, other_x, other_y, any_x;
static size_t elements = (size_t)ROWS * COLUMNS;

static void fixed_on(CUdeviceptr from, CUdeviceptr to) {
  DO(fixed_async((const float *)from, (const float *)w, (float *)to, stream));
}

// --- variants: each enqueues one call ---

static void by_hand(void) {
  DO(p_cuGraphLaunch(graph, stream));
}

static void ours(void) {
  fixed_on(x, y);
}

// With other pointers in every call: the graph is updated.
static void ours_elsewhere(void) {
  static int turn;
  turn = !turn;
  fixed_on(turn ? other_x : x, turn ? other_y : y);
}

static void ours_of_any_size(void) {
  aotc_memref_f32_2 made;
  DO(any_async((const float *)x, ROWS, (const float *)w, &made, stream));
  DO(submission_free_async(made.allocated, stream));
}

typedef struct variant {
  const char *name;
  void (*enqueue)(void);
} variant;

// Nothing else waits: each call by itself, and CALLS of them one behind the other.
static void measure(const variant *variants, int count) {
  static double alone[8][ROUNDS], behind[8][ROUNDS];
  for (int round = -5; round < ROUNDS; ++round) {
    for (int v = 0; v < count; ++v) {
      double start = now();
      variants[v].enqueue();
      DO(p_cuStreamSynchronize(stream));
      double between = now();
      for (int i = 0; i < CALLS; ++i) {
        variants[v].enqueue();
      }
      DO(p_cuStreamSynchronize(stream));
      if (round >= 0) {
        alone[v][round] = between - start;
        behind[v][round] = (now() - between) / CALLS;
      }
    }
  }
  double first[2] = {median(alone[0]), median(behind[0])};
  for (int v = 0; v < count; ++v) {
    double one = v == 0 ? first[0] : median(alone[v]), each = v == 0 ? first[1] : median(behind[v]);
    printf("{\"variant\": \"%s\", \"call_us\": %.2f, \"ratio\": %.3f, \"enqueued_us\": %.2f, "
           "\"enqueued_ratio\": %.3f}\n",
           variants[v].name, one, one / first[0], each, each / first[1]);
  }
}

// The largest difference from a computation in f64, relative to the largest value.
static double error_of(CUdeviceptr at, const float *from, const float *by) {
  float *found = malloc(elements * sizeof(float));
  double *value = malloc(elements * sizeof(double)), *next = malloc(elements * sizeof(double));
  DO(p_cuStreamSynchronize(stream));
  DO(p_cuMemcpyDtoH_v2(found, at, elements * sizeof(float)));
  for (size_t i = 0; i < elements; ++i) {
    value[i] = from[i];
  }
  for (int layer = 0; layer < LAYERS; ++layer) {
    for (int i = 0; i < ROWS; ++i) {
      for (int j = 0; j < COLUMNS; ++j) {
        double sum = 0;
        for (int k = 0; k < COLUMNS; ++k) {
          sum += value[i * COLUMNS + k] * (double)by[k * COLUMNS + j];
        }
        next[i * COLUMNS + j] = sum;
      }
    }
    double *swapped = value;
    value = next;
    next = swapped;
  }
  double largest = 0, worst = 0;
  for (size_t i = 0; i < elements; ++i) {
    largest = fmax(largest, fabs(value[i]));
    double difference = fabs(value[i] - (double)found[i]);
    worst = difference <= worst ? worst : difference; // NaN, too
  }
  free(found);
  free(value);
  free(next);
  return worst / largest;
}

static void random_floats(float *out, size_t count, float scale) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = scale * (2 * (float)rand() / (float)RAND_MAX - 1);
  }
}

static int is_wrong(const char *what, double error) {
  printf("{\"result\": \"%s\", \"error\": %.2e}\n", what, error);
  return !(error < 1e-2); // products of tf32, 50 times
}

static void capture(void) {
  CUgraph captured = NULL;
  DO(p_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  fixed_on(x, y);
  DO(p_cuStreamEndCapture(stream, &captured));
  DO(p_cuGraphInstantiateWithFlags(&graph, captured, 0));
}

// A result of unknown size: as the call gives it, and enqueued; beside a copy of as many bytes.
static void measure_results(int64_t rows) {
  static double called[ROUNDS], enqueued[ROUNDS], copied[ROUNDS];
  CUdeviceptr from = allocate((size_t)rows * COLUMNS * 4),
              to = allocate((size_t)rows * COLUMNS * 4);
  DO(p_cuMemsetD8_v2(from, 0, (size_t)rows * COLUMNS * 4));
  for (int round = -5; round < ROUNDS; ++round) {
    aotc_memref_f32_2 made;
    double start = now();
    DO(twice((const float *)from, rows, &made));
    double time = now() - start;
    DO(submission_free(made.allocated));
    double begin = now();
    DO(twice_async((const float *)from, rows, &made, stream));
    DO(submission_free_async(made.allocated, stream));
    DO(p_cuStreamSynchronize(stream));
    double middle = now();
    DO(p_cuMemcpyDtoDAsync_v2(to, from, (size_t)rows * COLUMNS * 4, stream));
    DO(p_cuStreamSynchronize(stream));
    if (round >= 0) {
      called[round] = time;
      enqueued[round] = middle - begin;
      copied[round] = now() - middle;
    }
  }
  printf("{\"bytes\": %lld, \"call_us\": %.2f, \"async_us\": %.2f, \"copy_us\": %.2f}\n",
         (long long)rows * COLUMNS * 4, median(called), median(enqueued), median(copied));
}

int main(void) {
  open_driver();
  CUdevice device = 0;
  CUcontext context = NULL;
  char name[128];
  DO(p_cuInit(0));
  DO(p_cuDeviceGet(&device, 0));
  DO(p_cuDeviceGetName(name, sizeof(name), device));
  DO(p_cuDevicePrimaryCtxRetain(&context, device));
  DO(p_cuCtxSetCurrent(context));
  DO(p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const char *setting = getenv("AOTC_GRAPHS");
  printf("{\"device\": \"%s\", \"AOTC_GRAPHS\": \"%s\"}\n", name, setting == NULL ? "" : setting);
  size_t bytes = elements * sizeof(float);
  float *from = malloc(bytes), *elsewhere = malloc(bytes);
  float *by = malloc(COLUMNS * COLUMNS * sizeof(float));
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  srand((unsigned)time.tv_nsec);
  random_floats(from, elements, 1);
  random_floats(elsewhere, elements, 1);
  random_floats(by, COLUMNS * COLUMNS, 0.108F); // such that values keep their size
  x = allocate(bytes), y = allocate(bytes), other_x = allocate(bytes), other_y = allocate(bytes);
  w = allocate(COLUMNS * COLUMNS * sizeof(float));
  DO(p_cuMemcpyHtoD_v2(x, from, bytes));
  DO(p_cuMemcpyHtoD_v2(other_x, elsewhere, bytes));
  DO(p_cuMemcpyHtoD_v2(w, by, COLUMNS * COLUMNS * sizeof(float)));

  int wrong = 0;
  for (int i = 0; i < 4; ++i) { // launched one by one, a new graph, the same, an updated one
    DO(p_cuMemsetD8_v2(y, 0xff, bytes));
    DO(p_cuMemsetD8_v2(other_y, 0xff, bytes));
    fixed_on(i < 3 ? x : other_x, i < 3 ? y : other_y);
    wrong += is_wrong("fixed", error_of(i < 3 ? y : other_y, i < 3 ? from : elsewhere, by));
  }
  for (int i = 0; i < 3; ++i) {
    aotc_memref_f32_2 made;
    DO(any_async((const float *)x, ROWS, (const float *)w, &made, stream));
    wrong += is_wrong("any", error_of((CUdeviceptr)made.aligned, from, by));
    DO(submission_free_async(made.allocated, stream));
  }
  capture();
  DO(p_cuMemsetD8_v2(y, 0xff, bytes));
  by_hand();
  wrong += is_wrong("captured", error_of(y, from, by));

  const variant variants[] = {{"captured by hand", by_hand},
                              {"call", ours},
                              {"call, other pointers", ours_elsewhere},
                              {"call, any size", ours_of_any_size}};
  measure(variants, 4);
  measure_results(16);
  measure_results(4096);
  measure_results(65536);
  return wrong > 0 ? 1 : 0;
}
