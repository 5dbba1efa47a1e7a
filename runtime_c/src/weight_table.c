// Weights by name: looking up, checking, and replacing them.
#include <string.h>

#include "aotc_weights.h"
#include "state.h"

// The names used in the manifest.
static const char *const dtype_names[] = {
    [AOTC_DTYPE_BOOL] = "bool",         [AOTC_DTYPE_I8] = "i8",         [AOTC_DTYPE_I16] = "i16",
    [AOTC_DTYPE_I32] = "i32",           [AOTC_DTYPE_I64] = "i64",       [AOTC_DTYPE_U8] = "u8",
    [AOTC_DTYPE_U16] = "u16",           [AOTC_DTYPE_U32] = "u32",       [AOTC_DTYPE_U64] = "u64",
    [AOTC_DTYPE_F16] = "f16",           [AOTC_DTYPE_BF16] = "bf16",     [AOTC_DTYPE_F32] = "f32",
    [AOTC_DTYPE_F64] = "f64",           [AOTC_DTYPE_C64] = "c64",       [AOTC_DTYPE_C128] = "c128",
    [AOTC_DTYPE_F8E4M3FN] = "f8e4m3fn", [AOTC_DTYPE_F8E5M2] = "f8e5m2",
};

enum { TEXT_BYTES = 512, MOST_SHOWN = 8 };

static void refuse_name(const aotc_weight_table *table, const char *name) {
  char names[TEXT_BYTES] = "";
  for (int32_t i = 0; i < table->count && i < MOST_SHOWN; ++i) {
    aotc_rt_append(names, sizeof(names), "%s'%s'", i > 0 ? ", " : "", table->weights[i].value.name);
  }
  if (table->count > MOST_SHOWN) {
    aotc_rt_append(names, sizeof(names), " and %d more", (int)(table->count - MOST_SHOWN));
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT,
               "no weight '%s' can be replaced here: those of --replaceable are %s",
               name == NULL ? "(NULL)" : name, names);
}

// Finds a weight by name; NULL, with the failure recorded.
static const aotc_named_weight *find(const aotc_weight_table *table, const char *name) {
  for (int32_t i = 0; name != NULL && i < table->count; ++i) {
    if (strcmp(table->weights[i].value.name, name) == 0) {
      return &table->weights[i];
    }
  }
  refuse_name(table, name);
  return NULL;
}

static bool check_pointer(const aotc_named_weight *weight, const void *memory) {
  if (memory == NULL && weight->value.bytes > 0) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "weight '%s' (%s): the pointer is NULL", weight->value.name,
                 weight->value.type);
    return false;
  }
  return true;
}

static void append_shape(char *text, size_t bytes, int32_t rank, const int64_t *shape) {
  for (int32_t i = 0; i < rank; ++i) {
    aotc_rt_append(text, bytes, "%s%lld", i > 0 ? "x" : "", (long long)shape[i]);
  }
}

static bool check_type(const aotc_value *value, const char *dtype, int32_t rank,
                       const int64_t *shape) {
  if (dtype == NULL || (shape == NULL && rank > 0)) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "weight '%s' (%s): its %s is NULL", value->name,
                 value->type, dtype == NULL ? "type" : "shape");
    return false;
  }
  bool fits = strcmp(dtype, dtype_names[value->dtype]) == 0 && rank == value->rank;
  for (int32_t i = 0; fits && i < rank; ++i) {
    fits = shape[i] == value->shape[i];
  }
  if (!fits) {
    char given[TEXT_BYTES] = "", own[TEXT_BYTES] = "";
    append_shape(given, sizeof(given), rank, shape);
    append_shape(own, sizeof(own), value->rank, value->shape);
    aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                 "weight '%s' takes elements of %s of shape [%s], not of %s of [%s]", value->name,
                 dtype_names[value->dtype], own, dtype, given);
  }
  return fits;
}

aotc_status aotc_weight_set(const aotc_weight_table *table, const char *name, const char *dtype,
                            int32_t rank, const int64_t *shape, const void *data) {
  const aotc_named_weight *found = find(table, name);
  if (found == NULL || !check_type(&found->value, dtype, rank, shape) ||
      !check_pointer(found, data)) {
    return AOTC_INVALID_ARGUMENT;
  }
  return aotc_rt_weight_replace(found->weight, data);
}

aotc_status aotc_weight_read(const aotc_weight_table *table, const char *name, void *to,
                             uint64_t bytes) {
  const aotc_named_weight *found = find(table, name);
  if (found == NULL || !check_pointer(found, to)) {
    return AOTC_INVALID_ARGUMENT;
  }
  if (bytes != found->value.bytes) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "weight '%s' (%s) has %llu bytes, not %llu", name,
                        found->value.type, (unsigned long long)found->value.bytes,
                        (unsigned long long)bytes);
  }
  const void *data = aotc_rt_constant_source(&found->weight->constant);
  if (data == NULL) {
    data = aotc_weight_get(found->weight);
  }
  aotc_status status = aotc_status_get();
  return status == AOTC_OK ? aotc_memory_copy(to, data, bytes) : status;
}

aotc_status aotc_weight_restore(const aotc_weight_table *table, const char *name) {
  const aotc_named_weight *found = find(table, name);
  if (found == NULL) {
    return AOTC_INVALID_ARGUMENT;
  }
  if (!aotc_rt_constant_is_replaced(&found->weight->constant)) {
    return AOTC_OK;
  }
  const void *data = aotc_rt_weight_in_file(found->weight);
  aotc_status status = aotc_status_get();
  return status == AOTC_OK ? aotc_rt_constant_restore(&found->weight->constant, data) : status;
}
