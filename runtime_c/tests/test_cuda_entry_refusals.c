// Calls of entries on a fake driver: arguments that are rejected before any device is selected.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"

static const int64_t shape_2x3[] = {2, 3};
static const int64_t shape_dynamic[] = {AOTC_DYNAMIC, AOTC_DYNAMIC};
static const int64_t strides_8x1[] = {8, 1};
static const aotc_value value_2x3 = {.name = "x",
                                     .type = "memref<2x3xf32>",
                                     .dtype = AOTC_DTYPE_F32,
                                     .rank = 2,
                                     .shape = shape_2x3,
                                     .aliases = -1};
static const aotc_value value_any = {.name = "x",
                                     .type = "memref<?x?xf64>",
                                     .dtype = AOTC_DTYPE_F64,
                                     .rank = 2,
                                     .shape = shape_dynamic,
                                     .aliases = -1};
static const aotc_value value_strided = {.name = "x",
                                         .type =
                                             "memref<2x3xcomplex<f64>, strided<[8, 1], offset: 2>>",
                                         .dtype = AOTC_DTYPE_C128,
                                         .rank = 2,
                                         .shape = shape_2x3,
                                         .strides = strides_8x1,
                                         .offset = 2,
                                         .aliases = -1};
static const aotc_value value_free = {.name = "x",
                                      .type = "memref<?x?xi8, strided<[?, ?], offset: ?>>",
                                      .dtype = AOTC_DTYPE_I8,
                                      .rank = 2,
                                      .shape = shape_dynamic,
                                      .strides = shape_dynamic,
                                      .offset = AOTC_DYNAMIC,
                                      .aliases = -1};

static void call_nothing(void **values) {
  (void)values;
  ++the_seen.calls;
}

typedef struct matrix {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} matrix;

static aotc_status try_matrix(const aotc_value *value, matrix m) {
  const aotc_entry entry = {
      .name = "f", .argument_count = 1, .arguments = value, .call = call_nothing};
  return aotc_entry_call(&entry, (void *[]){&m});
}

static void check_refused(const aotc_value *value, matrix m, const char *why) {
  the_seen.calls = 0;
  CHECK_INT(AOTC_INVALID_ARGUMENT, try_matrix(value, m));
  char expected[256];
  snprintf(expected, sizeof(expected), "f: argument 'x' (%s): %s", value->type, why);
  CHECK_TEXT(expected, aotc_error_message());
  CHECK_INT(0, the_seen.calls);
  CHECK(!aotc_device_is_resolved());
}

static void bad_arguments_are_refused(void) {
  entries_load("cuda");
  static _Alignas(16) char m[4096];
  const int64_t huge = INT64_MAX / 8;
  check_refused(&value_2x3, (matrix){m, NULL, 0, {2, 3}, {3, 1}}, "the pointer is NULL");
  check_refused(&value_2x3, (matrix){m, m, 0, {2, 4}, {4, 1}},
                "dimension 1 has size 4, the type says 3");
  check_refused(&value_2x3, (matrix){m, m, 0, {2, 3}, {4, 1}},
                "dimension 0 has stride 4, the type says 3");
  check_refused(&value_2x3, (matrix){m, m, 0, {2, 3}, {3, -1}},
                "dimension 1 has stride -1, the type says 1");
  check_refused(&value_2x3, (matrix){m, m, 1, {2, 3}, {3, 1}}, "the offset is 1, the type says 0");
  check_refused(&value_any, (matrix){m, m, 0, {2, -3}, {-3, 1}},
                "dimension 1 has the negative size -3");
  check_refused(&value_any, (matrix){m, m, 0, {0, -1}, {1, 1}},
                "dimension 1 has the negative size -1");
  check_refused(&value_any, (matrix){m, m, 0, {INT64_MAX, 2}, {2, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_any, (matrix){m, m, 0, {huge, 1}, {1, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_any, (matrix){m, m, 0, {huge + 1, 1}, {1, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_strided, (matrix){m, m, 2, {2, 3}, {3, 1}},
                "dimension 0 has stride 3, the type says 8");
  check_refused(&value_strided, (matrix){m, m, 0, {2, 3}, {8, 1}},
                "the offset is 0, the type says 2");
  check_refused(&value_free, (matrix){m, m, 0, {3, 3}, {INT64_MAX, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_free, (matrix){m, m, INT64_MAX, {3, 3}, {3, 1}},
                "it has more elements than memory can hold");
  check_refused(&value_free, (matrix){m, m, INT64_MIN, {1, 1}, {1, 1}},
                "it reaches beyond the end of memory");
  check_refused(&value_free, (matrix){m, (void *)2, 0, {4, 1}, {-1, 1}},
                "it reaches beyond the end of memory");
  check_refused(&value_free, (matrix){m, (void *)UINTPTR_MAX, 0, {2, 1}, {1, 1}},
                "it reaches beyond the end of memory");
  char text[128];
  snprintf(text, sizeof(text), "the pointer %p is not aligned to 8 bytes, as its elements must be",
           (void *)(m + 4));
  check_refused(&value_any, (matrix){m, m + 4, 0, {1, 1}, {1, 1}}, text);
  snprintf(text, sizeof(text), "the pointer %p is not aligned to 8 bytes, as its elements must be",
           (void *)(m + 12));
  check_refused(&value_strided, (matrix){m, m + 12, 2, {2, 3}, {8, 1}}, text);
  CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL);

  // Valid arguments.
  setenv("AOTC_DEVICE", "cpu", 1);
  CHECK_INT(AOTC_OK, try_matrix(&value_2x3, (matrix){NULL, m + 4, 0, {2, 3}, {3, 1}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_any, (matrix){NULL, m, 0, {1, 3}, {77, 1}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_any, (matrix){NULL, m, 0, {3, 1}, {1, -9}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_any, (matrix){NULL, NULL, 5, {0, INT64_MAX}, {9, 9}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_strided, (matrix){m, m + 8, 2, {2, 3}, {8, 1}}));
  CHECK_INT(AOTC_OK, try_matrix(&value_free, (matrix){m, m + 1, 7, {2, 3}, {0, -4}}));
  CHECK_INT(6, the_seen.calls);
}

static void missing_values_are_refused(void) {
  static const aotc_value scalar = {
      .name = "n", .type = "i32", .dtype = AOTC_DTYPE_I32, .rank = -1, .aliases = -1};
  const aotc_entry entry = {
      .name = "f", .argument_count = 1, .arguments = &scalar, .call = call_nothing};
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry, (void *[]){NULL}));
  CHECK_TEXT("f: argument 'n' (i32): there is no value", aotc_error_message());
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry_add, (void *[]){NULL, NULL, NULL}));
  CHECK_TEXT("add: argument 'A' (memref<4xf32>): there is no descriptor", aotc_error_message());
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry_add, NULL));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(NULL, NULL));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_enqueue(NULL, NULL, NULL));
}

static void descriptors_are_packed(void) {
  static char m[8];
  matrix d;
  aotc_entry_describe(&value_any, m, (int64_t[]){5, 7}, &d);
  CHECK(d.allocated == m && d.aligned == m && d.offset == 0);
  CHECK(d.sizes[0] == 5 && d.sizes[1] == 7 && d.strides[0] == 7 && d.strides[1] == 1);
  aotc_entry_describe(&value_strided, m, NULL, &d);
  CHECK(d.offset == 2 && d.sizes[0] == 2 && d.sizes[1] == 3);
  CHECK(d.strides[0] == 8 && d.strides[1] == 1);
  aotc_entry_describe(&value_free, m, (int64_t[]){0, 0}, &d);
  CHECK(d.offset == 0 && d.strides[0] == 1 && d.strides[1] == 1);
  aotc_entry_describe(&value_any, m, (int64_t[]){INT64_MAX, INT64_MAX}, &d);
  CHECK_INT(AOTC_INVALID_ARGUMENT, try_matrix(&value_any, d));
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(bad_arguments_are_refused),
      CHECK_TEST(missing_values_are_refused),
      CHECK_TEST(descriptors_are_packed),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
