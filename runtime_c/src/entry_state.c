// State objects: the tensors that entries keep from call to call.
#include "entry_state.h"

#include <stdlib.h>
#include <string.h>

// The size of the host pattern used for filling: a multiple of every element size.
#define PATTERN_BYTES 4096

static aotc_status refuse_null(void) {
  return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no state: the pointer is NULL");
}

// -------------------------------------------------------------------------------------------------
// Initial values of fields

// Fills `bytes` bytes on the device with copies of an element.
static aotc_status repeat(char *to, uint64_t bytes, const void *element, uint64_t element_bytes) {
  char pattern[PATTERN_BYTES];
  uint64_t done = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
  for (uint64_t i = 0; i < done; i += element_bytes) {
    memcpy(pattern + i, element, element_bytes);
  }
  aotc_status status = aotc_memory_copy(to, pattern, done);
  while (status == AOTC_OK && done < bytes) {
    uint64_t next = bytes - done < done ? bytes - done : done;
    status = aotc_memory_copy(to + done, to, next);
    done += next;
  }
  return status;
}

// Resets `bytes` bytes of a field, starting at an offset, to their initial values.
static aotc_status begin(const aotc_state *state, int32_t index, uint64_t offset, uint64_t bytes) {
  const aotc_state_field *field = &state->type->fields[index];
  char *to = aotc_rt_state_data(state, index) + offset;
  if (bytes == 0) {
    return AOTC_OK;
  }
  if (field->initial_bytes == field->value.bytes) {
    return aotc_memory_copy(to, (const char *)field->initial + offset, bytes);
  }
  return repeat(to, bytes, field->initial, field->initial_bytes);
}

aotc_status aotc_state_reset(aotc_state *state) {
  if (state == NULL) {
    return refuse_null();
  }
  aotc_status status = AOTC_OK;
  for (int32_t i = 0; i < state->type->field_count && status == AOTC_OK; ++i) {
    status = begin(state, i, 0, state->type->fields[i].value.bytes);
  }
  return status;
}

// -------------------------------------------------------------------------------------------------
// Objects

static aotc_status add_field(aotc_state *state, int32_t index) {
  const aotc_value *value = &state->type->fields[index].value;
  aotc_rt_memref *memref = calloc(1, aotc_rt_value_bytes(value));
  if (memref == NULL) {
    return aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a state");
  }
  state->memrefs[index] = memref;
  void *data = NULL;
  aotc_status status = aotc_memory_allocate(value->memory, value->bytes, &data);
  aotc_entry_describe(value, data, NULL, memref);
  return status;
}

aotc_status aotc_state_create(const aotc_state_type *type, aotc_state **out_state) {
  if (type == NULL || out_state == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no place for a state: it is NULL");
  }
  *out_state = NULL;
  size_t pointers = (size_t)type->field_count * sizeof(aotc_rt_memref *);
  aotc_state *state = calloc(1, sizeof(*state) + pointers);
  if (state == NULL) {
    return aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a state");
  }
  state->type = type;
  aotc_status status = AOTC_OK;
  for (int32_t i = 0; i < type->field_count && status == AOTC_OK; ++i) {
    status = add_field(state, i);
  }
  if (status == AOTC_OK) {
    status = aotc_state_reset(state);
  }
  if (status != AOTC_OK) {
    aotc_state_free(state);
    return status;
  }
  *out_state = state;
  return AOTC_OK;
}

aotc_status aotc_state_free(aotc_state *state) {
  aotc_status status = AOTC_OK;
  for (int32_t i = 0; state != NULL && i < state->type->field_count; ++i) {
    if (state->memrefs[i] != NULL) {
      aotc_memory_kind kind = state->type->fields[i].value.memory;
      aotc_status freed = aotc_memory_free(kind, aotc_rt_state_data(state, i));
      status = status == AOTC_OK ? freed : status;
      free(state->memrefs[i]);
    }
  }
  free(state);
  return status;
}

aotc_status aotc_state_copy(aotc_state *to, const aotc_state *from) {
  if (to == NULL || from == NULL) {
    return refuse_null();
  }
  if (to->type != from->type) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "the states are those of two libraries");
  }
  aotc_status status = AOTC_OK;
  for (int32_t i = 0; i < to->type->field_count && status == AOTC_OK && to != from; ++i) {
    status = aotc_memory_copy(aotc_rt_state_data(to, i), aotc_rt_state_data(from, i),
                              to->type->fields[i].value.bytes);
  }
  return status;
}

void *aotc_state_memref(const aotc_state *state, int32_t field) {
  return state == NULL ? NULL : state->memrefs[field];
}

// -------------------------------------------------------------------------------------------------
// Fields

int32_t aotc_state_find(const aotc_state_type *type, const char *name) {
  for (int32_t i = 0; i < type->field_count; ++i) {
    if (strcmp(type->fields[i].value.name, name) == 0) {
      return i;
    }
  }
  return -1;
}

static void append_names(const aotc_state_type *type, char *text, size_t bytes) {
  for (int32_t i = 0; i < type->field_count; ++i) {
    aotc_rt_append(text, bytes, "%s'%s'", i > 0 ? ", " : "", type->fields[i].value.name);
  }
}

// Finds a field by its name; false, with the failure recorded.
static bool find(const aotc_state *state, const char *name, int32_t *out_field) {
  if (state == NULL) {
    refuse_null();
    return false;
  }
  *out_field = name == NULL ? -1 : aotc_state_find(state->type, name);
  if (*out_field < 0) {
    char names[512] = "";
    append_names(state->type, names, sizeof(names));
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "the state has no field '%s': it has %s",
                 name == NULL ? "(NULL)" : name, names);
  }
  return *out_field >= 0;
}

// The same, for copying all elements of the field.
static bool find_whole(const aotc_state *state, const char *name, const void *memory,
                       uint64_t bytes, int32_t *out_field) {
  if (!find(state, name, out_field)) {
    return false;
  }
  const aotc_value *value = &state->type->fields[*out_field].value;
  if (bytes != value->bytes) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "field '%s' (%s) has %llu bytes, not %llu", name,
                 value->type, (unsigned long long)value->bytes, (unsigned long long)bytes);
  } else if (memory == NULL && bytes > 0) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "field '%s' (%s): the pointer is NULL", name, value->type);
  }
  return bytes == value->bytes && (memory != NULL || bytes == 0);
}

aotc_status aotc_state_read(const aotc_state *state, const char *name, void *to, uint64_t bytes) {
  int32_t field;
  if (!find_whole(state, name, to, bytes, &field)) {
    return AOTC_INVALID_ARGUMENT;
  }
  return aotc_memory_copy(to, aotc_rt_state_data(state, field), bytes);
}

aotc_status aotc_state_write(aotc_state *state, const char *name, const void *from,
                             uint64_t bytes) {
  int32_t field;
  if (!find_whole(state, name, from, bytes, &field)) {
    return AOTC_INVALID_ARGUMENT;
  }
  return aotc_memory_copy(aotc_rt_state_data(state, field), from, bytes);
}

aotc_status aotc_state_truncate(aotc_state *state, const char *name, int32_t dimension,
                                int64_t length) {
  int32_t field;
  if (!find(state, name, &field)) {
    return AOTC_INVALID_ARGUMENT;
  }
  const aotc_value *value = &state->type->fields[field].value;
  if (dimension < 0 || dimension >= value->rank) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "field '%s' (%s) has no dimension %d", name,
                        value->type, (int)dimension);
  }
  int64_t size = value->shape[dimension];
  if (length < 0 || length > size) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                        "field '%s' (%s): dimension %d cannot be cut to %lld of %lld elements",
                        name, value->type, (int)dimension, (long long)length, (long long)size);
  }
  if (value->bytes == 0) {
    return AOTC_OK;
  }
  uint64_t row = aotc_rt_element_bytes(value->dtype); // bytes per index along the dimension
  for (int32_t i = dimension + 1; i < value->rank; ++i) {
    row *= (uint64_t)value->shape[i];
  }
  uint64_t block = row * (uint64_t)size, kept = row * (uint64_t)length;
  aotc_status status = AOTC_OK;
  for (uint64_t at = 0; at < value->bytes && status == AOTC_OK; at += block) {
    status = begin(state, field, at + kept, block - kept);
  }
  return status;
}
