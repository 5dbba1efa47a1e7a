// A program of many entries: every dtype, every way to pass and to return.
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "fake_runtime.h"
#include "harness.h"

typedef struct descriptor {
  char *allocated, *aligned;
  int64_t offset, numbers[]; // sizes, then strides
} descriptor;

static const int64_t any_pair[] = {AOTC_DYNAMIC, AOTC_DYNAMIC};
static const int64_t any_one[] = {AOTC_DYNAMIC};
static const int64_t three_four[] = {3, 4};

#define BUFFER(NAME, TYPE, DTYPE, RANK, SHAPE)                                                     \
  .name = NAME, .type = TYPE, .dtype = DTYPE, .rank = RANK, .shape = SHAPE, .aliases = -1,         \
  .memory = AOTC_MEMORY_DEVICE
#define SCALAR(NAME, TYPE, DTYPE)                                                                  \
  .name = NAME, .type = TYPE, .dtype = DTYPE, .rank = -1, .aliases = -1

// --- copy_DTYPE(source, target): bytes, whatever they mean ---

static void copy_elements(void **values, size_t element_bytes) {
  const descriptor *source = values[0], *target = values[1];
  memcpy(target->aligned, source->aligned,
         (size_t)(source->numbers[0] * source->numbers[1]) * element_bytes);
}

#define COPY(NAME, DTYPE, BYTES)                                                                   \
  static void call_copy_##NAME(void **values) {                                                    \
    copy_elements(values, BYTES);                                                                  \
  }                                                                                                \
  static const aotc_value copy_##NAME##_arguments[] = {                                            \
      {BUFFER("source", "memref<?x?x" #NAME ">", DTYPE, 2, any_pair), .is_read = true},            \
      {BUFFER("target", "memref<?x?x" #NAME ">", DTYPE, 2, any_pair), .is_written = true},         \
  };
#define COPIES(DO)                                                                                 \
  DO(i1, AOTC_DTYPE_BOOL, 1)                                                                       \
  DO(i8, AOTC_DTYPE_I8, 1)                                                                         \
  DO(i16, AOTC_DTYPE_I16, 2)                                                                       \
  DO(i32, AOTC_DTYPE_I32, 4)                                                                       \
  DO(i64, AOTC_DTYPE_I64, 8)                                                                       \
  DO(ui8, AOTC_DTYPE_U8, 1)                                                                        \
  DO(ui16, AOTC_DTYPE_U16, 2)                                                                      \
  DO(ui32, AOTC_DTYPE_U32, 4)                                                                      \
  DO(ui64, AOTC_DTYPE_U64, 8)                                                                      \
  DO(f16, AOTC_DTYPE_F16, 2)                                                                       \
  DO(bf16, AOTC_DTYPE_BF16, 2)                                                                     \
  DO(f32, AOTC_DTYPE_F32, 4)                                                                       \
  DO(f64, AOTC_DTYPE_F64, 8)                                                                       \
  DO(c64, AOTC_DTYPE_C64, 8)                                                                       \
  DO(c128, AOTC_DTYPE_C128, 16)                                                                    \
  DO(index, AOTC_DTYPE_I64, 8)
COPIES(COPY)

// --- scalars: one of each kind in, two out ---

static void call_scalars(void **values) {
  int32_t i = *(const int32_t *)values[0];
  float f = *(const float *)values[1];
  bool negate = *(const bool *)values[2];
  double complex z = *(const double complex *)values[3];
  uint8_t u = *(const uint8_t *)values[4];
  double sum = i + (double)f + u + creal(z);
  *(double *)values[5] = negate ? -sum : sum;
  *(double complex *)values[6] = z * 2;
}

static const aotc_value scalars_arguments[] = {
    {SCALAR("i", "i32", AOTC_DTYPE_I32)}, {SCALAR("f", "f32", AOTC_DTYPE_F32)},
    {SCALAR("b", "i1", AOTC_DTYPE_BOOL)}, {SCALAR("z", "complex<f64>", AOTC_DTYPE_C128)},
    {SCALAR("u", "ui8", AOTC_DTYPE_U8)},
};
static const aotc_value scalars_results[] = {
    {SCALAR("result0", "f64", AOTC_DTYPE_F64)},
    {SCALAR("result1", "complex<f64>", AOTC_DTYPE_C128)},
};

// --- count(n: index): must be given ---

static void call_count(void **values) {
  *(int64_t *)values[1] = *(const int64_t *)values[0] + 1;
}

static const aotc_value count_arguments[] = {{SCALAR("n", "index", AOTC_DTYPE_I64)}};
static const aotc_value count_results[] = {{SCALAR("result0", "index", AOTC_DTYPE_I64)}};

// --- layout: twice(source, target) through strides, with gaps and backwards ---

static const int64_t wide_strides[] = {10, 2}, backward_strides[] = {-4, 1};

static void call_layout(void **values) {
  const descriptor *source = values[0], *target = values[1], *gaps = values[2];
  int32_t touched = 0;
  // The gaps of the source must hold the poison, and nothing lies outside of the buffers.
  const int32_t *whole = (const int32_t *)source->aligned;
  for (int64_t at = 0; at < 30; ++at) {
    bool is_element = at >= 3 && (at - 3) % 10 % 2 == 0 && (at - 3) % 10 < 8;
    touched += !is_element && whole[at] != (int32_t)0xa5a5a5a5;
  }
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      int64_t from = source->offset + i * source->numbers[2] + j * source->numbers[3];
      int64_t to = target->offset + i * target->numbers[2] + j * target->numbers[3];
      ((int32_t *)target->aligned)[to] = 2 * ((const int32_t *)source->aligned)[from];
    }
  }
  *(int32_t *)gaps->aligned = touched;
}

static const aotc_value layout_arguments[] = {
    {BUFFER("source", "memref<3x4xi32, strided<[10, 2], offset: 3>>", AOTC_DTYPE_I32, 2,
            three_four),
     .strides = wide_strides, .offset = 3, .is_read = true},
    {BUFFER("target", "memref<3x4xi32, strided<[-4, 1]>>", AOTC_DTYPE_I32, 2, three_four),
     .strides = backward_strides, .is_written = true},
    {BUFFER("gaps", "memref<i32>", AOTC_DTYPE_I32, 0, NULL), .is_written = true},
};

// --- strides(x): what descriptor is passed for strided<[?, 2], offset: ?> ---

static const int64_t any_strides[] = {AOTC_DYNAMIC, 2};

static void call_strides(void **values) {
  const descriptor *x = values[0], *seen = values[1];
  int64_t numbers[] = {x->offset,     x->numbers[0], x->numbers[1],
                       x->numbers[2], x->numbers[3], x->allocated == x->aligned};
  memcpy(seen->aligned, numbers, sizeof(numbers));
}

static const int64_t six[] = {6};
static const aotc_value strides_arguments[] = {
    {BUFFER("x", "memref<?x?xf32, strided<[?, 2], offset: ?>>", AOTC_DTYPE_F32, 2, any_pair),
     .strides = any_strides, .offset = AOTC_DYNAMIC, .is_read = true},
    {BUFFER("seen", "memref<6xi64>", AOTC_DTYPE_I64, 1, six), .is_written = true},
};

// --- returns(x): new memory, a reversed view of it, the argument itself, nothing ---

static void call_returns(void **values) {
  const descriptor *x = values[0];
  descriptor *copy = values[1], *reversed = values[2], *same = values[3], *empty = values[4];
  int64_t count = x->numbers[0];
  double *memory = malloc((size_t)(count + 1) * sizeof(double));
  for (int64_t i = 0; i < count; ++i) {
    memory[i] = ((const double *)x->aligned)[i] + 1;
  }
  copy->allocated = copy->aligned = (char *)memory;
  copy->numbers[0] = count;
  copy->numbers[1] = 1;
  *reversed = *copy;
  reversed->offset = count - 1;
  reversed->numbers[0] = count;
  reversed->numbers[1] = -1;
  memcpy(same, x, sizeof(descriptor) + 2 * sizeof(int64_t));
  empty->numbers[0] = 0;
  empty->numbers[1] = 1;
}

static const aotc_value returns_arguments[] = {
    {BUFFER("x", "memref<?xf64>", AOTC_DTYPE_F64, 1, any_one), .is_read = true}};
#define RETURNED(NAME)                                                                             \
  .name = NAME, .type = "memref<?xf64, strided<[?], offset: ?>>", .dtype = AOTC_DTYPE_F64,         \
  .rank = 1, .shape = any_one, .memory = AOTC_MEMORY_HOST, .aliases = -1
static const aotc_value returns_results[] = {
    {RETURNED("copy"), .is_owned = true},
    {RETURNED("reversed"), .is_owned = true}, // the same memory: freed once
    {.name = "same",
     .type = "memref<?xf64>",
     .dtype = AOTC_DTYPE_F64,
     .rank = 1,
     .shape = any_one,
     .aliases = 0,
     .is_owned = true}, // the argument's memory: not freed here
    {RETURNED("empty")},
};

// --- managed(): owned results in memory of the runtime's ---

static void call_managed(void **values) {
  for (int i = 0; i < 2; ++i) {
    descriptor *result = values[i];
    void *memory = NULL;
    if (aotc_memory_allocate(AOTC_MEMORY_MANAGED, 4 * sizeof(float), &memory) == AOTC_OK) {
      memset(memory, 0, 4 * sizeof(float));
    }
    result->allocated = result->aligned = memory;
    result->numbers[0] = 4;
    result->numbers[1] = 1;
  }
}

static const int64_t four[] = {4};
#define MANAGED(NAME)                                                                              \
  {.name = NAME,                                                                                   \
   .type = "memref<4xf32>",                                                                        \
   .dtype = AOTC_DTYPE_F32,                                                                        \
   .rank = 1,                                                                                      \
   .shape = four,                                                                                  \
   .memory = AOTC_MEMORY_MANAGED,                                                                  \
   .is_owned = true,                                                                               \
   .aliases = -1}
static const aotc_value managed_results[] = {MANAGED("result0"), MANAGED("result1")};

// --- lies(how): descriptors that cannot be ---

static void call_lies(void **values) {
  int32_t how = *(const int32_t *)values[0];
  descriptor *result = values[1];
  static float memory[8];
  result->allocated = result->aligned = how == 0 ? NULL : (char *)memory;
  result->numbers[0] = how == 1 ? -1 : how == 3 ? 3 : 2;
  result->numbers[1] = how == 2 ? INT64_MAX / 2 : 4;
  result->numbers[2] = 4;
  result->numbers[3] = 1;
}

static const int64_t two_any[] = {AOTC_DYNAMIC, AOTC_DYNAMIC};
static const int64_t two_four[] = {2, AOTC_DYNAMIC};
static const aotc_value lies_arguments[] = {{SCALAR("how", "i32", AOTC_DTYPE_I32)}};
static const aotc_value lies_results[] = {
    {BUFFER("result0", "memref<?x?xf32>", AOTC_DTYPE_F32, 2, two_any)}};
static const aotc_value lies_static_results[] = {
    {BUFFER("result0", "memref<2x?xf32>", AOTC_DTYPE_F32, 2, two_four)}};

// --- accumulate(x): x += 1, read and written ---

static void call_accumulate(void **values) {
  const descriptor *x = values[0];
  for (int64_t i = 0; i < x->numbers[0]; ++i) {
    ((float *)x->aligned)[i] += 1;
  }
}

static const aotc_value accumulate_arguments[] = {
    {BUFFER("x", "memref<?xf32>", AOTC_DTYPE_F32, 1, any_one), .is_read = true,
     .is_written = true}};

// --- half(f, i, b): writes the first half of each ---

static void call_half(void **values) {
  static const size_t element_bytes[] = {4, 4, 1};
  for (int argument = 0; argument < 3; ++argument) {
    const descriptor *x = values[argument];
    memset(x->aligned, 0, (size_t)(x->numbers[0] / 2) * element_bytes[argument]);
  }
}

static const aotc_value half_arguments[] = {
    {BUFFER("f", "memref<4xf32>", AOTC_DTYPE_F32, 1, four), .is_written = true},
    {BUFFER("i", "memref<4xi32>", AOTC_DTYPE_I32, 1, four), .is_written = true},
    {BUFFER("b", "memref<4xi1>", AOTC_DTYPE_BOOL, 1, four), .is_written = true},
};

// --- options(help, out, seed): arguments that are named as options are ---

static void call_options(void **values) {
  *(int32_t *)values[3] = *(const int32_t *)values[0] * 100 + *(const int32_t *)values[1] * 10 +
                          *(const int32_t *)values[2];
}

static const aotc_value options_arguments[] = {
    {SCALAR("help", "i32", AOTC_DTYPE_I32)},
    {SCALAR("out", "i32", AOTC_DTYPE_I32)},
    {SCALAR("a=b", "i32", AOTC_DTYPE_I32)},
};
static const aotc_value options_results[] = {{SCALAR("result0", "i32", AOTC_DTYPE_I32)}};

// --- places(h, d, m): a buffer in each memory; huge(x): too large; nothing(); fails(status) ---

static void call_nothing(void **values) {
  (void)values;
}

static const aotc_value places_arguments[] = {
    {.name = "h",
     .type = "memref<4xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 1,
     .shape = four,
     .aliases = -1,
     .is_read = true,
     .memory = AOTC_MEMORY_HOST},
    {.name = "d",
     .type = "memref<4xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 1,
     .shape = four,
     .aliases = -1,
     .is_read = true,
     .memory = AOTC_MEMORY_DEVICE},
    {.name = "m",
     .type = "memref<4xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 1,
     .shape = four,
     .aliases = -1,
     .is_read = true,
     .memory = AOTC_MEMORY_MANAGED},
    {.name = "unused",
     .type = "memref<4xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 1,
     .shape = four,
     .aliases = -1,
     .memory = AOTC_MEMORY_HOST},
};

static const int64_t huge_shape[] = {2, 3};
static const int64_t huge_strides[] = {INT64_MAX / 2, 1};
static const aotc_value huge_arguments[] = {
    {BUFFER("x", "memref<2x3xf32, strided<[4611686018427387903, 1]>>", AOTC_DTYPE_F32, 2,
            huge_shape),
     .strides = huge_strides, .is_read = true}};

static void call_fails(void **values) {
  fake_runtime_fail((aotc_status) * (const int32_t *)values[0], "the launch of 'k' failed");
}

static const aotc_value fails_arguments[] = {{SCALAR("status", "i32", AOTC_DTYPE_I32)}};
static const aotc_value fails_results[] = {{SCALAR("result0", "f32", AOTC_DTYPE_F32)}};

// --- the table ---

#define ENTRY(NAME, ARGUMENTS)                                                                     \
  .name = #NAME, .call = call_##NAME, .arguments = ARGUMENTS,                                      \
  .argument_count = (int32_t)(sizeof(ARGUMENTS) / sizeof(ARGUMENTS[0]))
#define RESULTS(ROWS) .results = ROWS, .result_count = (int32_t)(sizeof(ROWS) / sizeof(ROWS[0]))
#define COPY_ENTRY(NAME, DTYPE, BYTES) {ENTRY(copy_##NAME, copy_##NAME##_arguments)},

static const aotc_entry entries[] = {
    COPIES(COPY_ENTRY){ENTRY(scalars, scalars_arguments), RESULTS(scalars_results)},
    {ENTRY(count, count_arguments), RESULTS(count_results)},
    {ENTRY(layout, layout_arguments)},
    {ENTRY(strides, strides_arguments)},
    {ENTRY(returns, returns_arguments), RESULTS(returns_results), .touches_memory_on_host = true},
    {.name = "managed", .call = call_managed, RESULTS(managed_results)},
    {ENTRY(lies, lies_arguments), RESULTS(lies_results)},
    {.name = "lies_static",
     .call = call_lies,
     .arguments = lies_arguments,
     .argument_count = 1,
     RESULTS(lies_static_results)},
    {ENTRY(accumulate, accumulate_arguments)},
    {ENTRY(half, half_arguments)},
    {ENTRY(options, options_arguments), RESULTS(options_results)},
    {.name = "places", .call = call_nothing, .arguments = places_arguments, .argument_count = 4},
    {.name = "huge", .call = call_nothing, .arguments = huge_arguments, .argument_count = 1},
    {.name = "nothing", .call = call_nothing},
    {ENTRY(fails, fails_arguments), RESULTS(fails_results)},
};

const harness_program aotc_harness_program = {
    .name = "kernels",
    .version = "0.1.0",
    .entry_count = (int32_t)(sizeof(entries) / sizeof(entries[0])),
    .entries = entries,
};
