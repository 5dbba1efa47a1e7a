// Definitions shared by the files for sparse tensors.
#ifndef AOTC_PROGRAM_SPARSE_H
#define AOTC_PROGRAM_SPARSE_H

#include <stdint.h>

#include "memref.h"

// X(suffix, number, element, class) for each value type of sparse tensors. The numbers are the ones
// sparse_tensor.new passes.
#define SPARSE_VALUES(X)                                                                           \
  X(F64, 1, f64, REAL)                                                                             \
  X(F32, 2, f32, REAL)                                                                             \
  X(F16, 3, f16, REAL)                                                                             \
  X(BF16, 4, bf16, REAL)                                                                           \
  X(I64, 5, i64, INTEGER)                                                                          \
  X(I32, 6, i32, INTEGER)                                                                          \
  X(I16, 7, i16, INTEGER)                                                                          \
  X(I8, 8, i8, INTEGER)                                                                            \
  X(C64, 9, c64, COMPLEX)                                                                          \
  X(C32, 10, c32, COMPLEX)

// The first element of a one-dimensional contiguous memref.
static inline void *sparse_elements(const void *descriptor, int64_t bytes) {
  aotc_program_memref memref = aotc_program_memref_of(1, descriptor);
  return memref.data + memref.offset * bytes;
}

#endif // AOTC_PROGRAM_SPARSE_H
