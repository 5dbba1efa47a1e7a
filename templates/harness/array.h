// Arrays in host memory: packed arrays in row-major order, and how they map to strided memory.
#ifndef AOTC_HARNESS_ARRAY_H
#define AOTC_HARNESS_ARRAY_H

#include "elements.h"

// A packed row-major array. `data` is owned, and NULL until it is allocated.
typedef struct harness_array {
  aotc_dtype dtype;
  int32_t rank; // 0 for a scalar too
  int64_t shape[HARNESS_MAX_RANK];
  uint64_t count;
  void *data;
} harness_array;

// The number of elements of a shape, and their size in bytes. False if one of them does not fit in
// a positive int64_t, or if a dimension is negative.
bool harness_shape_size(aotc_dtype dtype, int32_t rank, const int64_t *shape, uint64_t *out_count,
                        uint64_t *out_bytes);

// Allocates the data of an array of that shape, uninitialized. If the size exceeds any memory,
// prints an error on stderr for the array called `name`, and returns false. If the allocation
// fails, ends the process with exit code 4. `rank` -1 is a scalar.
bool harness_array_allocate(harness_array *array, const char *name, aotc_dtype dtype, int32_t rank,
                            const int64_t *shape);
void harness_array_free(harness_array *array);
uint64_t harness_array_bytes(const harness_array *array);

// The positions of a memref's elements, counted in elements from its aligned pointer.
typedef struct harness_layout {
  int32_t rank;
  int64_t sizes[HARNESS_MAX_RANK], strides[HARNESS_MAX_RANK];
  int64_t offset;
  int64_t low, high; // the lowest and the highest position of an element
  uint64_t count;    // the number of elements; if it is 0, low and high are 0
  bool is_packed;    // row-major without gaps: copying is one memcpy
} harness_layout;

// Computes the derived fields; false if a size is negative or a position overflows.
bool harness_layout_derive(harness_layout *layout, uint32_t element_bytes);

// Replaces strides that are AOTC_DYNAMIC by row-major ones; keeps the others. A dimension is packed
// relative to the next inner one. False on overflow.
bool harness_layout_pack(int32_t rank, const int64_t *sizes, int64_t *strides);

// Copies between packed elements and strided memory. `origin` is the address of `layout->low`.
void harness_layout_scatter(const harness_layout *layout, uint32_t element_bytes,
                            const void *packed, void *origin);
void harness_layout_gather(const harness_layout *layout, uint32_t element_bytes, const void *origin,
                           void *packed);

#endif
