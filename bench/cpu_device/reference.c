// The C loops that kernels on the CPU device are compared with. Each is spread over `threads` by
// contiguous parts of its outermost loop: by OpenMP where this is compiled with it, else by
// pthreads. What a loop computes for one part is the same code in both.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

// Computes parts begin to end-1 of what `arguments` describes.
typedef void (*part_function)(const void *arguments, int64_t begin, int64_t end);

typedef struct part {
  part_function run;
  const void *arguments;
  int64_t begin, end;
  pthread_t thread;
} part;

static void run_part(const part *p) {
  p->run(p->arguments, p->begin, p->end);
}

#ifdef _OPENMP

static int run_parts(part *parts, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int i = 0; i < threads; ++i) {
    run_part(&parts[i]);
  }
  return 0;
}

#else

static void *start_part(void *argument) {
  run_part(argument);
  return NULL;
}

// The threads are made anew for each call: some ten microseconds.
static int run_parts(part *parts, int threads) {
  int started = 1, error = 0;
  while (started < threads && error == 0) {
    error = pthread_create(&parts[started].thread, NULL, start_part, &parts[started]);
    started += error == 0;
  }
  if (error == 0) {
    run_part(&parts[0]);
  }
  for (int i = 1; i < started; ++i) {
    int join_error = pthread_join(parts[i].thread, NULL);
    error = error != 0 ? error : join_error;
  }
  return error;
}

#endif

// 0, or an errno.
static int in_parallel(part_function run, const void *arguments, int64_t count, int threads) {
  part *parts = calloc((size_t)threads, sizeof(*parts));
  if (parts == NULL) {
    return 12; // ENOMEM
  }
  for (int i = 0; i < threads; ++i) {
    parts[i] = (part){.run = run,
                      .arguments = arguments,
                      .begin = count * i / threads,
                      .end = count * (i + 1) / threads};
  }
  int error = run_parts(parts, threads);
  free(parts);
  return error;
}

EXPORT const char *reference_threading(void) {
#ifdef _OPENMP
  return "OpenMP";
#else
  return "pthreads";
#endif
}

// -------------------------------------------------------------------------------------------------
// C += A * B, of n x n elements

typedef struct matmul_arguments {
  const float *a, *b;
  float *c;
  int64_t n;
} matmul_arguments;

// As the kernel's source has it: k innermost.
static void matmul_ijk_part(const void *arguments, int64_t begin, int64_t end) {
  const matmul_arguments *m = arguments;
  const float *restrict a = m->a, *restrict b = m->b;
  float *restrict c = m->c;
  int64_t n = m->n;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < n; ++k) {
        c[i * n + j] += a[i * n + k] * b[k * n + j];
      }
    }
  }
}

// Interchanged: j innermost, which walks along rows and is vectorized.
static void matmul_ikj_part(const void *arguments, int64_t begin, int64_t end) {
  const matmul_arguments *m = arguments;
  const float *restrict a = m->a, *restrict b = m->b;
  float *restrict c = m->c;
  int64_t n = m->n;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = 0; j < n; ++j) {
        c[i * n + j] += a[i * n + k] * b[k * n + j];
      }
    }
  }
}

EXPORT int matmul_ijk(const float *a, const float *b, float *c, int64_t n, int threads) {
  matmul_arguments m = {a, b, c, n};
  return in_parallel(matmul_ijk_part, &m, n, threads);
}

EXPORT int matmul_ikj(const float *a, const float *b, float *c, int64_t n, int threads) {
  matmul_arguments m = {a, b, c, n};
  return in_parallel(matmul_ikj_part, &m, n, threads);
}

// -------------------------------------------------------------------------------------------------
// z = x + y, of n elements

typedef struct add_arguments {
  const float *x, *y;
  float *z;
} add_arguments;

static void vector_add_part(const void *arguments, int64_t begin, int64_t end) {
  const add_arguments *v = arguments;
  const float *restrict x = v->x, *restrict y = v->y;
  float *restrict z = v->z;
  for (int64_t i = begin; i < end; ++i) {
    z[i] = x[i] + y[i];
  }
}

EXPORT int vector_add(const float *x, const float *y, float *z, int64_t n, int threads) {
  add_arguments v = {x, y, z};
  return in_parallel(vector_add_part, &v, n, threads);
}

// -------------------------------------------------------------------------------------------------
// sums[b] = the sum of the `width` elements of x from b * width on

typedef struct sum_arguments {
  const float *x;
  float *sums;
  int64_t width;
} sum_arguments;

// From left to right, as the loop says: one addition waits for the other.
static void sums_in_order_part(const void *arguments, int64_t begin, int64_t end) {
  const sum_arguments *s = arguments;
  const float *restrict x = s->x;
  float *restrict sums = s->sums;
  for (int64_t b = begin; b < end; ++b) {
    float sum = 0;
    for (int64_t i = 0; i < s->width; ++i) {
      sum += x[b * s->width + i];
    }
    sums[b] = sum;
  }
}

// As many sums at a time as vector registers take with ease.
#define PARTIAL_SUMS 32

// In another order, which is vectorized.
static void sums_reordered_part(const void *arguments, int64_t begin, int64_t end) {
  const sum_arguments *s = arguments;
  const float *restrict x = s->x;
  float *restrict sums = s->sums;
  int64_t whole = s->width - s->width % PARTIAL_SUMS;
  for (int64_t b = begin; b < end; ++b) {
    const float *from = x + b * s->width;
    float partial[PARTIAL_SUMS] = {0};
    for (int64_t i = 0; i < whole; i += PARTIAL_SUMS) {
      for (int k = 0; k < PARTIAL_SUMS; ++k) {
        partial[k] += from[i + k];
      }
    }
    float sum = 0;
    for (int k = 0; k < PARTIAL_SUMS; ++k) {
      sum += partial[k];
    }
    for (int64_t i = whole; i < s->width; ++i) {
      sum += from[i];
    }
    sums[b] = sum;
  }
}

EXPORT int sums_in_order(const float *x, float *sums, int64_t count, int64_t width, int threads) {
  sum_arguments s = {x, sums, width};
  return in_parallel(sums_in_order_part, &s, count, threads);
}

EXPORT int sums_reordered(const float *x, float *sums, int64_t count, int64_t width, int threads) {
  sum_arguments s = {x, sums, width};
  return in_parallel(sums_reordered_part, &s, count, threads);
}
