// printMemref*: prints a memref's address, shape and elements.
#include "memref.h"
#include "utility.h"

// Writes the dimensions from `depth` on; the first element is at `data` plus `index` elements.
static void write_elements(FILE *out, const aotc_program_memref *m,
                           const aotc_program_element *element, int64_t depth, int64_t index) {
  if (depth == m->rank) {
    element->write(out, m->data + index * element->bytes);
    return;
  }
  fputc('[', out);
  for (int64_t i = 0; i < m->sizes[depth]; ++i) {
    if (i > 0) {
      // The innermost elements are on one line, but are still padded like the start of a line.
      fputs(depth + 1 < m->rank ? ", \n" : ", ", out);
      for (int64_t blank = 0; blank <= depth; ++blank) {
        fputc(' ', out);
      }
    }
    write_elements(out, m, element, depth + 1, index + i * m->strides[depth]);
  }
  fputc(']', out);
}

static void print(const char *kind, int64_t rank, const void *descriptor,
                  const aotc_program_element *element) {
  if (aotc_is_stopped()) {
    return;
  }
  aotc_program_memref memref = aotc_program_memref_of(rank, descriptor);
  fputs(kind, stdout);
  aotc_program_write_shape(stdout, &memref);
  fputs(" data = \n", stdout);
  if (rank == 0) {
    fputc('[', stdout);
  }
  write_elements(stdout, &memref, element, 0, memref.offset);
  fputs(rank == 0 ? "]\n" : "\n", stdout);
  fflush(stdout);
}

static void print_unranked(int64_t rank, const void *descriptor,
                           const aotc_program_element *element) {
  print("Unranked Memref ", rank, descriptor, element);
}

static void print_ranked(int64_t rank, const void *descriptor,
                         const aotc_program_element *element) {
  print("Memref ", rank, descriptor, element);
}

static void print_shape(const mlir_unranked_memref *unranked) {
  if (aotc_is_stopped()) {
    return;
  }
  aotc_program_memref memref = aotc_program_memref_of(unranked->rank, unranked->descriptor);
  fputs("Unranked Memref ", stdout);
  aotc_program_write_shape(stdout, &memref);
  fputc('\n', stdout);
}

// -------------------------------------------------------------------------------------------------
// Unranked memrefs

#define DEFINE_PRINT(suffix, element)                                                              \
  UTILITY void _mlir_ciface_printMemref##suffix(const mlir_unranked_memref *memref) {              \
    print_unranked(memref->rank, memref->descriptor, &aotc_program_##element);                     \
  }

DEFINE_PRINT(I8, i8)
DEFINE_PRINT(I16, i16)
DEFINE_PRINT(I32, i32)
DEFINE_PRINT(I64, i64)
DEFINE_PRINT(F16, f16)
DEFINE_PRINT(BF16, bf16)
DEFINE_PRINT(F32, f32)
DEFINE_PRINT(F64, f64)
DEFINE_PRINT(C32, c32)
DEFINE_PRINT(C64, c64)
DEFINE_PRINT(Ind, index)

#define DEFINE_PLAIN_PRINT(suffix, element)                                                        \
  UTILITY void printMemref##suffix(int64_t rank, void *descriptor) {                               \
    print_unranked(rank, descriptor, &aotc_program_##element);                                     \
  }

DEFINE_PLAIN_PRINT(I32, i32)
DEFINE_PLAIN_PRINT(I64, i64)
DEFINE_PLAIN_PRINT(F32, f32)
DEFINE_PLAIN_PRINT(F64, f64)
DEFINE_PLAIN_PRINT(C32, c32)
DEFINE_PLAIN_PRINT(C64, c64)
DEFINE_PLAIN_PRINT(Ind, index)

#define DEFINE_PRINT_SHAPE(suffix)                                                                 \
  UTILITY void _mlir_ciface_printMemrefShape##suffix(const mlir_unranked_memref *memref) {         \
    print_shape(memref);                                                                           \
  }

DEFINE_PRINT_SHAPE(I8)
DEFINE_PRINT_SHAPE(I32)
DEFINE_PRINT_SHAPE(I64)
DEFINE_PRINT_SHAPE(F32)
DEFINE_PRINT_SHAPE(F64)
DEFINE_PRINT_SHAPE(C32)
DEFINE_PRINT_SHAPE(C64)
DEFINE_PRINT_SHAPE(Ind)

// -------------------------------------------------------------------------------------------------
// Memrefs of a known rank

#define DEFINE_RANKED_PRINT(suffix, rank, element)                                                 \
  UTILITY void _mlir_ciface_printMemref##suffix(const void *descriptor) {                          \
    print_ranked(rank, descriptor, &aotc_program_##element);                                       \
  }

DEFINE_RANKED_PRINT(0dF32, 0, f32)
DEFINE_RANKED_PRINT(1dF32, 1, f32)
DEFINE_RANKED_PRINT(2dF32, 2, f32)
DEFINE_RANKED_PRINT(3dF32, 3, f32)
DEFINE_RANKED_PRINT(4dF32, 4, f32)
DEFINE_RANKED_PRINT(1dI8, 1, i8)
DEFINE_RANKED_PRINT(1dI32, 1, i32)
DEFINE_RANKED_PRINT(1dI64, 1, i64)
DEFINE_RANKED_PRINT(1dF64, 1, f64)
DEFINE_RANKED_PRINT(1dC32, 1, c32)
DEFINE_RANKED_PRINT(1dC64, 1, c64)
DEFINE_RANKED_PRINT(1dInd, 1, index)
DEFINE_RANKED_PRINT(Vector4x4xf32, 2, 4x4xf32)
