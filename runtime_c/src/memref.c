// Memrefs: the range of bytes they access.
#include "state.h"

bool aotc_rt_measure(int64_t rank, const aotc_rt_memref *memref, int64_t element_bytes,
                     uintptr_t *out_start, uint64_t *out_bytes) {
  *out_start = 0;
  *out_bytes = 0;
  if (rank < 0 || memref == NULL || element_bytes < 1) {
    return false;
  }
  const int64_t *sizes = memref->sizes_and_strides;
  const int64_t *strides = sizes + rank;
  for (int64_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0) {
      return false;
    }
  }
  int64_t lowest = memref->offset; // in elements, relative to the aligned pointer
  int64_t highest = memref->offset;
  for (int64_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0) {
      return true;
    }
    int64_t *end = strides[i] < 0 ? &lowest : &highest;
    int64_t reach = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(*end, reach, end)) {
      return false;
    }
  }
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t start = 0;
  if (__builtin_sub_overflow(highest, lowest, &count) || __builtin_add_overflow(count, 1, &count) ||
      __builtin_mul_overflow(count, element_bytes, &bytes) ||
      __builtin_mul_overflow(lowest, element_bytes, &start)) {
    return false;
  }
  *out_start = (uintptr_t)memref->aligned + (uintptr_t)start;
  *out_bytes = (uint64_t)bytes;
  return true;
}
