// Memref descriptors, their elements, and printing both.
#ifndef AOTC_PROGRAM_MEMREF_H
#define AOTC_PROGRAM_MEMREF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mlir_runner_utils.h"

// The decoded descriptor of a memref of any rank.
typedef struct aotc_program_memref {
  int64_t rank;
  char *data; // the aligned pointer; the element at index 0 is `offset` elements further
  int64_t offset;
  const int64_t *sizes, *strides; // in elements; `rank` of each
} aotc_program_memref;

aotc_program_memref aotc_program_memref_of(int64_t rank, const void *descriptor);

// An element type.
typedef struct aotc_program_element {
  int64_t bytes;
  void (*write)(FILE *out, const void *value);
  bool (*is_close)(const void *actual, const void *expected); // NULL if the type is never compared
} aotc_program_element;

extern const aotc_program_element aotc_program_i8, aotc_program_i16, aotc_program_i32,
    aotc_program_i64, aotc_program_index, aotc_program_f16, aotc_program_bf16, aotc_program_f32,
    aotc_program_f64, aotc_program_c32, aotc_program_c64, aotc_program_4x4xf32;

float aotc_program_f16_value(uint16_t bits);
float aotc_program_bf16_value(uint16_t bits);

// Converts to a 16-bit float, rounding to nearest, ties to even. f16 has 10 fraction bits and a
// bias of 15, bf16 has 7 and 127.
uint16_t aotc_program_small_float(double value, int fraction_bits, int bias);

// "base@ = 0x55d5 rank = 1 offset = 0 sizes = [2] strides = [1]"
void aotc_program_write_shape(FILE *out, const aotc_program_memref *memref);

#endif // AOTC_PROGRAM_MEMREF_H
