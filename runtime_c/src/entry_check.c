// Memref descriptors of calls: creating and validating them.
#include <stdarg.h>
#include <stdio.h>

#include "entry.h"

// -------------------------------------------------------------------------------------------------
// Elements

typedef struct element {
  uint32_t bytes, alignment;
} element;

static const element elements[] = {
    [AOTC_DTYPE_BOOL] = {1, 1},     [AOTC_DTYPE_I8] = {1, 1},     [AOTC_DTYPE_I16] = {2, 2},
    [AOTC_DTYPE_I32] = {4, 4},      [AOTC_DTYPE_I64] = {8, 8},    [AOTC_DTYPE_U8] = {1, 1},
    [AOTC_DTYPE_U16] = {2, 2},      [AOTC_DTYPE_U32] = {4, 4},    [AOTC_DTYPE_U64] = {8, 8},
    [AOTC_DTYPE_F16] = {2, 2},      [AOTC_DTYPE_BF16] = {2, 2},   [AOTC_DTYPE_F32] = {4, 4},
    [AOTC_DTYPE_F64] = {8, 8},      [AOTC_DTYPE_C64] = {8, 4},    [AOTC_DTYPE_C128] = {16, 8},
    [AOTC_DTYPE_F8E4M3FN] = {1, 1}, [AOTC_DTYPE_F8E5M2] = {1, 1},
};

uint32_t aotc_rt_element_bytes(aotc_dtype dtype) {
  return elements[dtype].bytes;
}

size_t aotc_rt_value_bytes(const aotc_value *value) {
  return value->rank < 0 ? elements[value->dtype].bytes
                         : sizeof(aotc_rt_memref) + 2 * (size_t)value->rank * sizeof(int64_t);
}

// -------------------------------------------------------------------------------------------------
// Making descriptors

// The product, or INT64_MAX on overflow, which is not a valid size either.
static int64_t multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

void aotc_entry_describe(const aotc_value *value, const void *pointer, const int64_t *sizes,
                         void *out_descriptor) {
  if (value->rank < 0) {
    return;
  }
  aotc_rt_memref *memref = out_descriptor;
  memref->allocated = (void *)(uintptr_t)pointer;
  memref->aligned = memref->allocated;
  memref->offset = value->offset == AOTC_DYNAMIC ? 0 : value->offset;
  int64_t *out_sizes = memref->sizes_and_strides;
  int64_t *out_strides = out_sizes + value->rank;
  for (int32_t i = 0; i < value->rank; ++i) {
    out_sizes[i] = value->shape[i] == AOTC_DYNAMIC ? *sizes++ : value->shape[i];
  }
  int64_t packed = 1;
  for (int32_t i = value->rank - 1; i >= 0; --i) {
    bool is_packed = value->strides == NULL || value->strides[i] == AOTC_DYNAMIC;
    out_strides[i] = is_packed ? packed : value->strides[i];
    // An outer stride is the extent of this dimension, at least 1.
    int64_t step = out_strides[i] < 0 ? -out_strides[i] : out_strides[i];
    packed = multiply(out_sizes[i] > 1 ? out_sizes[i] : 1, step > 0 ? step : 1);
  }
}

// -------------------------------------------------------------------------------------------------
// Checking them

#define MAX_BYTES ((uint64_t)1 << 56) // no processor has more address bits

aotc_status aotc_rt_fail_argument(aotc_status status, const aotc_entry *entry, int32_t index,
                                  const char *format, ...) {
  char text[256];
  va_list values;
  va_start(values, format);
  int written = vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  return aotc_rt_fail(status, "argument '%s' (%s): %s", entry->arguments[index].name,
                      entry->arguments[index].type, written < 0 ? "unusable" : text);
}

typedef struct check {
  const aotc_entry *entry;
  int32_t index;
  const aotc_value *value;
  const aotc_rt_memref *memref;
} check;

#define REFUSE(c, ...)                                                                             \
  (aotc_rt_fail_argument(AOTC_INVALID_ARGUMENT, (c)->entry, (c)->index, __VA_ARGS__), false)

static bool check_size(const check *c, int32_t i, int64_t size) {
  if (size < 0) {
    return REFUSE(c, "dimension %d has the negative size %lld", (int)i, (long long)size);
  }
  return true;
}

static bool check_sizes(const check *c, bool *out_has_elements) {
  *out_has_elements = true;
  for (int32_t i = 0; i < c->value->rank; ++i) {
    int64_t size = c->memref->sizes_and_strides[i];
    if (!check_size(c, i, size)) {
      return false;
    }
    if (size != c->value->shape[i] && c->value->shape[i] != AOTC_DYNAMIC) {
      return REFUSE(c, "dimension %d has size %lld, the type says %lld", (int)i, (long long)size,
                    (long long)c->value->shape[i]);
    }
    *out_has_elements = *out_has_elements && size > 0;
  }
  return true;
}

// The stride of a dimension of size 1 is never used.
static bool check_stride(const check *c, int32_t i, int64_t expected) {
  int64_t size = c->memref->sizes_and_strides[i];
  int64_t stride = c->memref->sizes_and_strides[c->value->rank + i];
  if (size == 1 || stride == expected) {
    return true;
  }
  return REFUSE(c, "dimension %d has stride %lld, the type says %lld", (int)i, (long long)stride,
                (long long)expected);
}

// Sets *out_count to the number of elements of a packed memref.
static bool check_layout(const check *c, int64_t *out_count) {
  const aotc_value *value = c->value;
  int64_t packed = 1;
  for (int32_t i = value->rank - 1; i >= 0; --i) {
    bool is_packed = value->strides == NULL;
    int64_t expected = is_packed ? packed : value->strides[i];
    if ((is_packed || expected != AOTC_DYNAMIC) && !check_stride(c, i, expected)) {
      return false;
    }
    if (is_packed && __builtin_mul_overflow(packed, c->memref->sizes_and_strides[i], &packed)) {
      return REFUSE(c, "it has more elements than memory can hold");
    }
  }
  if (value->offset != AOTC_DYNAMIC && c->memref->offset != value->offset) {
    return REFUSE(c, "the offset is %lld, the type says %lld", (long long)c->memref->offset,
                  (long long)value->offset);
  }
  *out_count = packed;
  return true;
}

// The memory of a nonempty memref; the common packed case does not need to be measured.
static bool reach(const check *c, int64_t count, aotc_rt_piece *piece) {
  int64_t element_bytes = (int64_t)elements[c->value->dtype].bytes;
  if (c->value->strides == NULL && c->memref->offset == 0) {
    piece->start = (uintptr_t)c->memref->aligned;
    return !__builtin_mul_overflow((uint64_t)count, (uint64_t)element_bytes, &piece->bytes);
  }
  return aotc_rt_measure(c->value->rank, c->memref, element_bytes, &piece->start, &piece->bytes);
}

static bool check_pointer(const check *c) {
  const element *e = &elements[c->value->dtype];
  uintptr_t pointer = (uintptr_t)c->memref->aligned;
  if (pointer == 0) {
    return REFUSE(c, "the pointer is NULL");
  }
  if ((pointer & (e->alignment - 1)) != 0) { // a power of 2
    return REFUSE(c, "the pointer %p is not aligned to %u bytes, as its elements must be",
                  c->memref->aligned, (unsigned)e->alignment);
  }
  return true;
}

static bool check_memory(const check *c, int64_t count, aotc_rt_piece *piece) {
  uintptr_t pointer = (uintptr_t)c->memref->aligned;
  if (!check_pointer(c)) {
    return false;
  }
  if (!reach(c, count, piece) || piece->bytes > MAX_BYTES) {
    return REFUSE(c, "it has more elements than memory can hold");
  }
  // The range may extend to both sides of the pointer, but must not wrap around.
  bool is_before = (intptr_t)(piece->start - pointer) < 0;
  if (is_before != (piece->start < pointer) || piece->start + piece->bytes <= piece->start) {
    return REFUSE(c, "it reaches beyond the end of memory");
  }
  return true;
}

static bool check_described(const check *c, aotc_rt_piece *piece) {
  piece->start = (uintptr_t)c->memref->aligned;
  piece->bytes = c->value->bytes;
  return check_pointer(c);
}

bool aotc_rt_entry_check(const aotc_entry *entry, void **values, bool are_described,
                         aotc_rt_piece *out_pieces) {
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    const check c = {entry, i, &entry->arguments[i], values[i]};
    bool has_elements = false;
    int64_t count = 0;
    out_pieces[i].bytes = 0;
    if (c.memref == NULL) {
      return REFUSE(&c, "there is no %s",
                    c.value->state != NULL ? "state"
                    : c.value->rank < 0    ? "value"
                                           : "descriptor");
    }
    if (are_described && c.value->bytes > 0) {
      if (!check_described(&c, &out_pieces[i])) {
        return false;
      }
    } else if (c.value->rank >= 0 &&
               (!check_sizes(&c, &has_elements) ||
                (has_elements &&
                 (!check_layout(&c, &count) || !check_memory(&c, count, &out_pieces[i]))))) {
      return false;
    }
  }
  return true;
}

// -------------------------------------------------------------------------------------------------
// Checking sizes only

bool aotc_rt_fits_memory(const aotc_value *value, const int64_t *sizes) {
  int64_t bytes = (int64_t)elements[value->dtype].bytes;
  bool fits = true;
  for (int32_t i = 0; i < value->rank; ++i) {
    if (sizes[i] == 0) {
      return true;
    }
    fits = fits && (sizes[i] == AOTC_DYNAMIC || !__builtin_mul_overflow(bytes, sizes[i], &bytes));
  }
  return fits && (uint64_t)bytes <= MAX_BYTES;
}

bool aotc_rt_entry_check_sizes(const aotc_entry *entry, const void *const *given) {
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    const check c = {entry, i, &entry->arguments[i], NULL};
    const int64_t *sizes = given[i];
    int64_t bytes = (int64_t)elements[c.value->dtype].bytes;
    bool fits = true;
    bool has_elements = true;
    for (int32_t k = 0; k < c.value->rank; ++k) {
      int64_t size = c.value->shape[k] == AOTC_DYNAMIC ? *sizes++ : c.value->shape[k];
      if (!check_size(&c, k, size)) {
        return false;
      }
      has_elements = has_elements && size > 0;
      fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
    }
    if (has_elements && (!fits || (uint64_t)bytes > MAX_BYTES)) {
      return REFUSE(&c, "it has more elements than memory can hold");
    }
  }
  return true;
}
