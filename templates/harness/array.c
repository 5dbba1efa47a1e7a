#include "array.h"

#include <stdlib.h>
#include <string.h>

bool harness_shape_size(aotc_dtype dtype, int32_t rank, const int64_t *shape, uint64_t *out_count,
                        uint64_t *out_bytes) {
  // The product of the nonzero sizes must fit, too, so that strides always fit.
  int64_t count = 1, bytes;
  bool is_empty = false;
  for (int32_t i = 0; i < rank; ++i) {
    if (shape[i] < 0) {
      return false;
    }
    if (shape[i] == 0) {
      is_empty = true;
    } else if (__builtin_mul_overflow(count, shape[i], &count)) {
      return false;
    }
  }
  if (__builtin_mul_overflow(count, (int64_t)harness_facts(dtype)->bytes, &bytes)) {
    return false;
  }
  *out_count = is_empty ? 0 : (uint64_t)count;
  *out_bytes = is_empty ? 0 : (uint64_t)bytes;
  return true;
}

bool harness_array_allocate(harness_array *array, const char *name, aotc_dtype dtype, int32_t rank,
                            const int64_t *shape) {
  *array = (harness_array){.dtype = dtype, .rank = rank < 0 ? 0 : rank};
  char shape_text[HARNESS_SHAPE_TEXT];
  uint64_t bytes;
  if (!harness_shape_size(dtype, rank, shape, &array->count, &bytes)) {
    harness_error("'%s' of shape %s is larger than memory can be", name,
                  harness_shape_text(rank, shape, shape_text));
    return false;
  }
  for (int32_t i = 0; i < array->rank; ++i) {
    array->shape[i] = shape[i];
  }
  // The +1 is to avoid zero-byte allocations, for which malloc may return NULL.
  array->data = malloc(bytes + 1);
  if (array->data == NULL) {
    harness_shape_text(rank, shape, shape_text);
    harness_out_of_memory(harness_string("'%s' of shape %s", name, shape_text), bytes);
  }
  return true;
}

void harness_array_free(harness_array *array) {
  free(array->data);
  array->data = NULL;
}

uint64_t harness_array_bytes(const harness_array *array) {
  return array->count * harness_facts(array->dtype)->bytes;
}

bool harness_layout_derive(harness_layout *layout, uint32_t element_bytes) {
  int64_t low = layout->offset, high = layout->offset, count = 1;
  bool is_empty = false;
  layout->is_packed = true;
  for (int32_t i = layout->rank - 1; i >= 0; --i) {
    int64_t size = layout->sizes[i], reach;
    if (size < 0) {
      return false;
    }
    if (size == 0) {
      is_empty = true;
      continue;
    }
    if (size > 1 && layout->strides[i] != count) {
      layout->is_packed = false;
    }
    if (__builtin_mul_overflow(size - 1, layout->strides[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high) ||
        __builtin_mul_overflow(count, size, &count)) {
      return false;
    }
  }
  layout->low = is_empty ? 0 : low;
  layout->high = is_empty ? 0 : high;
  layout->count = is_empty ? 0 : (uint64_t)count;
  int64_t span, bytes;
  return !__builtin_sub_overflow(layout->high, layout->low, &span) &&
         !__builtin_add_overflow(span, 1, &span) &&
         !__builtin_mul_overflow(span, (int64_t)element_bytes, &bytes) &&
         !__builtin_mul_overflow(layout->low, (int64_t)element_bytes, &bytes) &&
         !__builtin_mul_overflow(layout->high, (int64_t)element_bytes, &bytes) &&
         !__builtin_mul_overflow(count, (int64_t)element_bytes, &bytes);
}

bool harness_layout_pack(int32_t rank, const int64_t *sizes, int64_t *strides) {
  int64_t packed = 1;
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (strides[i] == AOTC_DYNAMIC) {
      strides[i] = packed;
    }
    // An outer dimension's stride is the extent of this one, and at least 1.
    int64_t size = sizes[i] > 1 ? sizes[i] : 1;
    int64_t step = strides[i] < 0 ? -strides[i] : strides[i];
    if (__builtin_mul_overflow(size, step > 0 ? step : 1, &packed)) {
      return false;
    }
  }
  return true;
}

// Copies every element in row-major order, in one of the two directions.
static void copy(const harness_layout *layout, uint32_t element_bytes, char *packed, char *strided,
                 bool is_gather) {
  int64_t index[HARNESS_MAX_RANK] = {0};
  int64_t position = layout->offset - layout->low;
  int32_t innermost = layout->rank - 1;
  for (uint64_t i = 0; i < layout->count; ++i) {
    char *at = strided + position * (int64_t)element_bytes;
    memcpy(is_gather ? packed : at, is_gather ? at : packed, element_bytes);
    packed += element_bytes;
    for (int32_t d = innermost; d >= 0; --d) {
      position += layout->strides[d];
      if (++index[d] < layout->sizes[d]) {
        break;
      }
      position -= layout->strides[d] * layout->sizes[d];
      index[d] = 0;
    }
  }
}

void harness_layout_scatter(const harness_layout *layout, uint32_t element_bytes,
                            const void *packed, void *origin) {
  if (layout->count == 0) {
    return;
  }
  if (layout->is_packed) {
    memcpy(origin, packed, layout->count * element_bytes);
  } else {
    copy(layout, element_bytes, (char *)(uintptr_t)packed, origin, false);
  }
}

void harness_layout_gather(const harness_layout *layout, uint32_t element_bytes, const void *origin,
                           void *packed) {
  if (layout->count == 0) {
    return;
  }
  if (layout->is_packed) {
    memcpy(packed, origin, layout->count * element_bytes);
  } else {
    copy(layout, element_bytes, packed, (char *)(uintptr_t)origin, true);
  }
}
