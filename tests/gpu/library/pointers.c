// Plain calls with pointers of every kind, in every mix.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver.h"

enum { N = 1003, ROOM = N + 7, ROWS = 37, INNER = 53, COLUMNS = 41 };

static void start(void) {
  if (is_on_gpu) {
    driver_use_primary();
  }
}

static void describe_kinds(char *text, size_t bytes, const char *entry, const int *kinds,
                           int count) {
  snprintf(text, bytes, "%s(", entry);
  for (int i = 0; i < count; ++i) {
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", kind_names[kinds[i]]);
  }
  size_t used = strlen(text);
  snprintf(text + used, bytes - used, ")");
}

// -------------------------------------------------------------------------------------------------
// Mixes

static void call_add(const buffer *x, const buffer *y, const buffer *z, const char *what,
                     uint32_t seed) {
  static float a[N], b[N], sum[N];
  fill_numbers(a, N, 2 * seed);
  fill_numbers(b, N, 2 * seed + 1);
  for (int i = 0; i < N; ++i) {
    sum[i] = a[i] + b[i];
  }
  buffer_put(x, a, N);
  buffer_put(y, b, N);
  buffer_poison(z);
  GOOD(add(x->data, N, y->data, N, z->data, ROOM));
  buffer_expect(z, sum, N, "%s: z", what);
  buffer_expect(x, a, N, "%s: x, which is only read", what);
  buffer_expect(y, b, N, "%s: y, which is only read", what);
}

static void call_product(const buffer *x, const buffer *y, const buffer *z, const char *what,
                         uint32_t seed) {
  static float a[ROWS * INNER], b[INNER * COLUMNS], c[ROWS * COLUMNS];
  fill_numbers(a, ROWS * INNER, 2 * seed);
  fill_numbers(b, INNER * COLUMNS, 2 * seed + 1);
  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < COLUMNS; ++j) {
      float sum = 0;
      for (int k = 0; k < INNER; ++k) {
        sum += a[i * INNER + k] * b[k * COLUMNS + j];
      }
      c[i * COLUMNS + j] = sum;
    }
  }
  buffer_put(x, a, ROWS * INNER);
  buffer_put(y, b, INNER * COLUMNS);
  buffer_poison(z);
  GOOD(product(x->data, y->data, z->data));
  buffer_expect(z, c, ROWS * COLUMNS, "%s: C", what);
  buffer_expect(x, a, ROWS * INNER, "%s: A, which is only read", what);
  buffer_expect(y, b, INNER * COLUMNS, "%s: B, which is only read", what);
}

typedef void call_of_three(const buffer *x, const buffer *y, const buffer *z, const char *what,
                           uint32_t seed);

static void mix(const char *entry, call_of_three *call, const int64_t counts[3], int kinds) {
  buffer buffers[3][KINDS];
  for (int role = 0; role < 3; ++role) {
    for (int k = 0; k < kinds; ++k) {
      buffers[role][k] = has_kind(k) ? buffer_make((kind)k, counts[role]) : (buffer){.data = NULL};
    }
  }
  int calls = 0;
  for (int i = 0; i < kinds * kinds * kinds; ++i) {
    const int of[3] = {i % kinds, i / kinds % kinds, i / kinds / kinds};
    if (has_kind(of[0]) && has_kind(of[1]) && has_kind(of[2])) {
      char what[128];
      describe_kinds(what, sizeof(what), entry, of, 3);
      call(&buffers[0][of[0]], &buffers[1][of[1]], &buffers[2][of[2]], what, (uint32_t)i);
      ++calls;
    }
  }
  for (int role = 0; role < 3; ++role) {
    for (int k = 0; k < kinds; ++k) {
      if (has_kind(k)) {
        buffer_free(&buffers[role][k]);
      }
    }
  }
  printf("%s: %d mixes\n", entry, calls);
}

static void run_mix(void) {
  start();
  mix("add", call_add, (const int64_t[]){N, N, ROOM}, MAIN_KINDS);
  mix("product", call_product, (const int64_t[]){ROWS * INNER, INNER * COLUMNS, ROWS * COLUMNS},
      MAIN_KINDS);
}

static void run_registered(void) {
  start();
  mix("add", call_add, (const int64_t[]){N, N, ROOM}, KINDS);
}

// An entry whose host code reads and writes elements, too.
static void run_host_code(void) {
  start();
  static float a[N], expected[N];
  for (int i = 0; i < KINDS * KINDS; ++i) {
    const int of[2] = {i % KINDS, i / KINDS};
    if (!has_kind(of[0]) || !has_kind(of[1])) {
      continue;
    }
    char what[128];
    describe_kinds(what, sizeof(what), "from_first", of, 2);
    buffer x = buffer_make((kind)of[0], N);
    buffer z = buffer_make((kind)of[1], ROOM);
    fill_numbers(a, N, (uint32_t)i + 77);
    a[0] = (float)(i + 1);
    for (int j = 0; j < N; ++j) {
      expected[j] = a[j] + a[0];
    }
    expected[0] = -expected[0];
    buffer_put(&x, a, N);
    GOOD(from_first(x.data, N, z.data, ROOM));
    buffer_expect(&z, expected, N, "%s: z", what);
    buffer_expect(&x, a, N, "%s: x, which is only read", what);
    buffer_free(&x);
    buffer_free(&z);
  }
}

// -------------------------------------------------------------------------------------------------
// Descriptors

typedef struct layout {
  const char *name;
  int64_t offset, strides[2]; // in elements
} layout;

enum { LAYOUT_ROWS = 7, LAYOUT_COLUMNS = 11, LAYOUT_ROOM = 400 };

// Row by row with a gap behind each; columns first; every third element; from the end backwards.
static const layout layouts[] = {
    {"rows with gaps", 3, {16, 1}}, {"transposed", 0, {1, 9}},         {"every third", 2, {50, 3}},
    {"backwards", 390, {-20, -1}},  {"rows backwards", 200, {-13, 1}},
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static int64_t place_of(const layout *l, int64_t row, int64_t column) {
  return l->offset + row * l->strides[0] + column * l->strides[1];
}

static aotc_memref_f32_2 memref_of(const buffer *b, const layout *l) {
  return (aotc_memref_f32_2){
      .allocated = b->memory,
      .aligned = b->data,
      .offset = l->offset,
      .sizes = {LAYOUT_ROWS, LAYOUT_COLUMNS},
      .strides = {l->strides[0], l->strides[1]},
  };
}

static void call_spread(kind x_kind, const layout *x_layout, kind z_kind, const layout *z_layout) {
  static float a[LAYOUT_ROOM], expected[LAYOUT_ROOM + 2 * GUARD], got[LAYOUT_ROOM + 2 * GUARD];
  buffer x = buffer_make(x_kind, LAYOUT_ROOM);
  buffer z = buffer_make(z_kind, LAYOUT_ROOM);
  fill_numbers(a, LAYOUT_ROOM, (uint32_t)(x_layout->offset + 1000 * z_layout->offset));
  buffer_put(&x, a, LAYOUT_ROOM);
  for (int64_t i = 0; i < LAYOUT_ROOM + 2 * GUARD; ++i) {
    expected[i] = poison_at(i);
  }
  for (int64_t i = 0; i < LAYOUT_ROWS; ++i) {
    for (int64_t j = 0; j < LAYOUT_COLUMNS; ++j) {
      expected[GUARD + place_of(z_layout, i, j)] = 2 * a[place_of(x_layout, i, j)] + 1;
    }
  }
  aotc_memref_f32_2 from = memref_of(&x, x_layout);
  aotc_memref_f32_2 to = memref_of(&z, z_layout);
  GOOD(spread_memref(&from, &to));
  buffer_read(&z, got);
  char what[200];
  snprintf(what, sizeof(what), "spread(%s %s, %s %s): z", kind_names[x_kind], x_layout->name,
           kind_names[z_kind], z_layout->name);
  // The whole of it, between guards that are poison in any case.
  buffer_compare(got, expected + GUARD, LAYOUT_ROOM, LAYOUT_ROOM, what);
  buffer_expect(&x, a, LAYOUT_ROOM, "%s's x, which is only read", what);
  EXPECT(from.aligned == x.data && to.aligned == z.data && to.offset == z_layout->offset,
         "%s: the caller's descriptors have changed", what);
  buffer_free(&x);
  buffer_free(&z);
}

static void run_memref(void) {
  start();
  for (int i = 0; i < KINDS * KINDS * LAYOUTS * LAYOUTS; ++i) {
    int x_kind = i % KINDS;
    int z_kind = i / KINDS % KINDS;
    int layout_of_x = i / KINDS / KINDS % LAYOUTS;
    int layout_of_z = i / KINDS / KINDS / LAYOUTS;
    if (has_kind(x_kind) && has_kind(z_kind)) {
      call_spread((kind)x_kind, &layouts[layout_of_x], (kind)z_kind, &layouts[layout_of_z]);
    }
  }
}

// -------------------------------------------------------------------------------------------------
// One buffer for several arguments

static void run_in_place(void) {
  start();
  static float a[N], b[N], expected[N];
  fill_numbers(a, N, 5);
  fill_numbers(b, N, 6);
  for (int k = 0; k < KINDS; ++k) {
    if (!has_kind(k)) {
      continue;
    }
    buffer x = buffer_make((kind)k, N);
    buffer y = buffer_make((kind)k, N);
    buffer_put(&x, a, N);
    buffer_put(&y, b, N);
    GOOD(add(x.data, N, y.data, N, x.data, N)); // x += y
    for (int i = 0; i < N; ++i) {
      expected[i] = a[i] + b[i];
    }
    buffer_expect(&x, expected, N, "%s: x += y", kind_names[k]);
    buffer_expect(&y, b, N, "%s: y, which is only read", kind_names[k]);
    GOOD(add(x.data, N, x.data, N, x.data, N)); // x += x
    for (int i = 0; i < N; ++i) {
      expected[i] *= 2;
    }
    buffer_expect(&x, expected, N, "%s: x += x", kind_names[k]);
    aotc_memref_f32_1 m = {x.memory, x.data, 0, {N}, {1}};
    GOOD(add_memref(&m, &m, &m));
    for (int i = 0; i < N; ++i) {
      expected[i] *= 2;
    }
    buffer_expect(&x, expected, N, "%s: x += x by descriptors", kind_names[k]);
    buffer_free(&x);
    buffer_free(&y);
  }
}

// y and z have elements in common, which are read or written as each says, but not both.
static void run_overlap(void) {
  start();
  enum { ALL = 2400, COUNT = 400 };
  static float a[ALL], expected[ALL];
  fill_numbers(a, ALL, 9);
  for (int k = 0; k < KINDS; ++k) {
    if (!has_kind(k)) {
      continue;
    }
    buffer b = buffer_make((kind)k, ALL);
    buffer_put(&b, a, ALL);
    memcpy(expected, a, sizeof(a));
    for (int i = 0; i < COUNT; ++i) {
      expected[1400 + i] = a[i] + a[500 + i];
    }
    // x is [0, 400), y [500, 1500), z [1400, 2300).
    GOOD(add(b.data, COUNT, b.data + 500, 1000, b.data + 1400, 900));
    buffer_expect(&b, expected, ALL, "%s: y and z overlap", kind_names[k]);
    // All three reach over the whole buffer.
    for (int i = 0; i < COUNT; ++i) {
      expected[2000 + i] = expected[300 + i] + expected[1300 + i];
    }
    GOOD(add(b.data + 300, COUNT, b.data + 1300, ALL - 1300, b.data + 2000, COUNT));
    buffer_expect(&b, expected, ALL, "%s: another overlap", kind_names[k]);
    // Rows backwards over rows: descriptors that reach below their pointers, in one buffer.
    aotc_memref_f32_2 up = {b.memory, b.data, 0, {10, 20}, {40, 1}};
    aotc_memref_f32_2 down = {b.memory, b.data, 9 * 40 + 20, {10, 20}, {-40, 1}};
    for (int i = 0; i < 10; ++i) {
      for (int j = 0; j < 20; ++j) {
        expected[(9 - i) * 40 + 20 + j] = 2 * expected[i * 40 + j] + 1;
      }
    }
    GOOD(spread_memref(&up, &down));
    buffer_expect(&b, expected, ALL, "%s: interleaved descriptors", kind_names[k]);
    buffer_free(&b);
  }
}

// -------------------------------------------------------------------------------------------------
// Without elements

static void run_empty(void) {
  start();
  float *nowhere = (float *)(uintptr_t)3; // not even aligned
  GOOD(add(NULL, 0, NULL, 0, NULL, 0));
  GOOD(add(nowhere, 0, nowhere, 0, nowhere, 0));
  GOOD(spread(NULL, 0, 5, NULL, 5, 0));
  aotc_memref_f32_2 none = {NULL, NULL, 0, {0, 9}, {-3, 7}};
  GOOD(spread_memref(&none, &none));
  for (int k = 0; k < KINDS; ++k) {
    if (has_kind(k)) {
      // Nothing of z is written, though it has elements.
      buffer z = buffer_make((kind)k, N);
      GOOD(add(NULL, 0, NULL, 0, z.data, N));
      buffer_expect(&z, NULL, 0, "%s: z of a call without elements", kind_names[k]);
      buffer_free(&z);
    }
  }
  if (is_on_gpu) {
    CUstream stream = driver_make_stream();
    GOOD(add_async(NULL, 0, NULL, 0, NULL, 0, stream));
    MUST(cu.stream_wait(stream));
    MUST(cu.stream_destroy(stream));
  }
}

// Results end where the caller's memory ends, and inputs begin where it begins: large sizes, and
// each size from 1 to beyond a block.
static void run_sizes(void) {
  start();
  enum { MOST = (1 << 20) + 3 };
  float *a = need(malloc(MOST * sizeof(float)));
  float *sum = need(malloc(MOST * sizeof(float)));
  fill_numbers(a, MOST, 12);
  for (int64_t i = 0; i < MOST; ++i) {
    sum[i] = 2 * a[i];
  }
  for (int64_t size = 1; size <= MOST; size += size < 300 ? 1 : size) {
    for (int k = 0; k < KINDS; k += 1) {
      if (has_kind(k)) {
        buffer x = buffer_make((kind)k, size);
        buffer z = buffer_make((kind)(has_kind(KINDS - 1 - k) ? KINDS - 1 - k : k), size);
        buffer_put(&x, a, size);
        GOOD(add(x.data, size, x.data, size, z.data, size));
        buffer_expect(&z, sum, size, "%s: z of %lld elements", kind_names[k], (long long)size);
        buffer_free(&x);
        buffer_free(&z);
      }
    }
  }
  free(a);
  free(sum);
}

const library_case pointer_cases[] = {
    {"pointers-mix", "all mixes of four kinds of pointers", run_mix, true, false},
    {"pointers-registered", "the same with registered memory", run_registered, true, false},
    {"pointers-host-code", "mixes for an entry with host code", run_host_code, true, false},
    {"pointers-memref", "strided descriptors of every kind", run_memref, true, false},
    {"pointers-in-place", "one pointer for several arguments", run_in_place, true, false},
    {"pointers-overlap", "ranges that overlap", run_overlap, true, false},
    {"pointers-empty", "no elements, anywhere", run_empty, true, false},
    {"pointers-sizes", "sizes from 1 to a million", run_sizes, true, false},
    {NULL, NULL, NULL, false, false},
};
