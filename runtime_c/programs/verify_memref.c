// verifyMemRef*: counts the elements in which two memrefs differ.
#include <inttypes.h>
#include <string.h>

#include "memref.h"
#include "utility.h"

#define MOST_TOLD 10

typedef struct comparison {
  const aotc_program_memref *actual, *expected;
  const aotc_program_element *element;
  int64_t errors;
} comparison;

static void compare_element(comparison *c, int64_t index) {
  const char *actual = c->actual->data + index * c->element->bytes;
  const char *expected = c->expected->data + index * c->element->bytes;
  if (c->element->is_close(actual, expected)) {
    return;
  }
  if (c->errors++ < MOST_TOLD) {
    c->element->write(stderr, actual);
    fputs(" != ", stderr);
    c->element->write(stderr, expected);
    fprintf(stderr, " offset = %" PRId64 "\n", index);
  }
}

// Both memrefs must have the same sizes, strides and offset.
static void compare(comparison *c, int64_t depth, int64_t index) {
  if (depth == c->actual->rank) {
    compare_element(c, index);
    return;
  }
  for (int64_t i = 0; i < c->actual->sizes[depth]; ++i) {
    compare(c, depth + 1, index + i * c->actual->strides[depth]);
  }
}

static bool is_alike(const aotc_program_memref *a, const aotc_program_memref *b) {
  if (a->rank != b->rank) {
    return false;
  }
  size_t bytes = (size_t)a->rank * sizeof(int64_t);
  return a->offset == b->offset && memcmp(a->sizes, b->sizes, bytes) == 0 &&
         memcmp(a->strides, b->strides, bytes) == 0;
}

static int64_t verify(const mlir_unranked_memref *actual, const mlir_unranked_memref *expected,
                      const aotc_program_element *element) {
  if (aotc_is_stopped()) {
    return -1;
  }
  aotc_program_memref a = aotc_program_memref_of(actual->rank, actual->descriptor);
  aotc_program_memref e = aotc_program_memref_of(expected->rank, expected->descriptor);
  if (!is_alike(&a, &e)) {
    aotc_program_write_shape(stderr, &a);
    aotc_program_write_shape(stderr, &e);
    return -1;
  }
  comparison c = {.actual = &a, .expected = &e, .element = element};
  compare(&c, 0, a.offset);
  return c.errors;
}

#define DEFINE_VERIFY(suffix, element)                                                             \
  UTILITY int64_t _mlir_ciface_verifyMemRef##suffix(const mlir_unranked_memref *actual,            \
                                                    const mlir_unranked_memref *expected) {        \
    return verify(actual, expected, &aotc_program_##element);                                      \
  }

DEFINE_VERIFY(I8, i8)
DEFINE_VERIFY(I16, i16)
DEFINE_VERIFY(I32, i32)
DEFINE_VERIFY(I64, i64)
DEFINE_VERIFY(F16, f16)
DEFINE_VERIFY(BF16, bf16)
DEFINE_VERIFY(F32, f32)
DEFINE_VERIFY(F64, f64)
DEFINE_VERIFY(C32, c32)
DEFINE_VERIFY(C64, c64)
DEFINE_VERIFY(Ind, index)

#define DEFINE_PLAIN_VERIFY(suffix, element)                                                       \
  UTILITY int64_t verifyMemRef##suffix(int64_t rank, void *actual, void *expected) {               \
    return verify(&(mlir_unranked_memref){rank, actual}, &(mlir_unranked_memref){rank, expected},  \
                  &aotc_program_##element);                                                        \
  }

DEFINE_PLAIN_VERIFY(I32, i32)
DEFINE_PLAIN_VERIFY(F32, f32)
DEFINE_PLAIN_VERIFY(F64, f64)
DEFINE_PLAIN_VERIFY(C32, c32)
DEFINE_PLAIN_VERIFY(C64, c64)
DEFINE_PLAIN_VERIFY(Ind, index)
