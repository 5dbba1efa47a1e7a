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

// The element count of a shape, and that count in bytes; false when either does not fit in a
// positive int64_t, or a dimension is negative.
bool harness_shape_size(aotc_dtype dtype, int32_t rank, const int64_t *shape, uint64_t *out_count,
                        uint64_t *out_bytes);

// Allocates the data of an array of that shape (not set to anything). Of a shape that no memory
// could hold, says so on stderr, for the array called `name`, and returns false; without the
// memory, ends the process with exit code 4. `rank` -1 is a scalar.
bool harness_array_allocate(harness_array *array, const char *name, aotc_dtype dtype, int32_t rank,
                            const int64_t *shape);
void harness_array_free(harness_array *array);
uint64_t harness_array_bytes(const harness_array *array);

// Where the elements of a memref lie, counted in elements from its aligned pointer.
typedef struct harness_layout {
  int32_t rank;
  int64_t sizes[HARNESS_MAX_RANK], strides[HARNESS_MAX_RANK];
  int64_t offset;
  int64_t low, high; // the least and the greatest position of an element
  uint64_t count;    // how many elements there are; 0 makes low and high 0
  bool is_packed;    // row-major without gaps: copying is one memcpy
} harness_layout;

// Fills the derived fields; false when a size is negative or a position overflows.
bool harness_layout_derive(harness_layout *layout, uint32_t element_bytes);

// Row-major strides for these sizes, where `strides` says AOTC_DYNAMIC; others are kept. A
// dimension is packed on the one inside it. False on overflow.
bool harness_layout_pack(int32_t rank, const int64_t *sizes, int64_t *strides);

// Between packed elements and strided memory. `origin` is the address of position `layout->low`.
void harness_layout_scatter(const harness_layout *layout, uint32_t element_bytes,
                            const void *packed, void *origin);
void harness_layout_gather(const harness_layout *layout, uint32_t element_bytes, const void *origin,
                           void *packed);

#endif
