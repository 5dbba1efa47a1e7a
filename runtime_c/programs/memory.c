// Copying and sorting of memrefs, and the allocation functions that a lowering may call.
#include <stdlib.h>
#include <string.h>

#include "memref.h"
#include "utility.h"

// -------------------------------------------------------------------------------------------------
// Copies

// Copies the dimensions from `depth` on; the pointers are at the first element.
static void copy(const aotc_program_memref *from, const aotc_program_memref *to, int64_t depth,
                 const char *source, char *target, int64_t element_bytes) {
  if (depth == from->rank) {
    memcpy(target, source, (size_t)element_bytes);
    return;
  }
  int64_t count = from->sizes[depth];
  if (depth + 1 == from->rank && from->strides[depth] == 1 && to->strides[depth] == 1) {
    memcpy(target, source, (size_t)(count * element_bytes));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    copy(from, to, depth + 1, source + i * from->strides[depth] * element_bytes,
         target + i * to->strides[depth] * element_bytes, element_bytes);
  }
}

static bool is_empty(const aotc_program_memref *memref) {
  for (int64_t i = 0; i < memref->rank; ++i) {
    if (memref->sizes[i] == 0) {
      return true;
    }
  }
  return false;
}

// Whether the size of the memref in bytes does not overflow.
static bool is_countable(const aotc_program_memref *memref, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (int64_t i = 0; i < memref->rank; ++i) {
    if (memref->sizes[i] < 0 || __builtin_mul_overflow(bytes, memref->sizes[i], &bytes)) {
      return false;
    }
  }
  return true;
}

UTILITY void memrefCopy(int64_t element_bytes, const mlir_unranked_memref *from,
                        const mlir_unranked_memref *to) {
  aotc_program_memref f = aotc_program_memref_of(from->rank, from->descriptor);
  aotc_program_memref t = aotc_program_memref_of(to->rank, to->descriptor);
  // An empty memref may have no memory, so no address may be computed.
  if (aotc_is_stopped() || is_empty(&f)) {
    return;
  }
  if (!is_countable(&f, element_bytes)) {
    aotc_error_adopt(AOTC_OUT_OF_MEMORY, "memrefCopy: no memory has that many elements");
    return;
  }
  copy(&f, &t, 0, f.data + f.offset * element_bytes, t.data + t.offset * element_bytes,
       element_bytes);
}

// -------------------------------------------------------------------------------------------------
// Sorts

#define DEFINE_SORT(suffix, type)                                                                  \
  static int compare_##suffix(const void *left, const void *right) {                               \
    type a = *(const type *)left;                                                                  \
    type b = *(const type *)right;                                                                 \
    return (a > b) - (a < b);                                                                      \
  }                                                                                                \
  UTILITY void _mlir_ciface_stdSort##suffix(uint64_t count, void *descriptor) {                    \
    aotc_program_memref m = aotc_program_memref_of(1, descriptor);                                 \
    if (!aotc_is_stopped() && count > 0) {                                                         \
      qsort(m.data + m.offset * (int64_t)sizeof(type), (size_t)count, sizeof(type),                \
            compare_##suffix);                                                                     \
    }                                                                                              \
  }

DEFINE_SORT(I64, int64_t)
DEFINE_SORT(F32, float)
DEFINE_SORT(F64, double)

// -------------------------------------------------------------------------------------------------
// Allocations

UTILITY void *mlirAlloc(uint64_t bytes) {
  return malloc((size_t)bytes);
}

UTILITY void *mlirAlignedAlloc(uint64_t alignment, uint64_t bytes) {
  return aligned_alloc((size_t)alignment, (size_t)bytes);
}

UTILITY void mlirFree(void *pointer) {
  free(pointer);
}

UTILITY void mlirAlignedFree(void *pointer) {
  free(pointer);
}
