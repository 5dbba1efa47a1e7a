// The state of a generated library: objects with tensors that entries read and write, and that keep
// their values from call to call. The table of fields is generated beside the module.
//
// An object is made on the device that calls of its thread would use, and stays there. It may be
// passed to calls of any thread, one after another. It must be freed before aotc_unload. Before an
// object is read, written, copied, saved or freed, wait for work on the caller's streams that uses
// it.
#ifndef AOTC_STATE_H
#define AOTC_STATE_H

#include "aotc_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor of the state. `value` has its name, its type, which is contiguous and of static shape
// (so that value.bytes is its size), and where it is on a GPU. Its initial value is at `initial`,
// on the host: `initial_bytes` are the bytes of all elements, or of one element, which all have.
typedef struct aotc_state_field {
  aotc_value value;
  const void *initial;
  uint64_t initial_bytes;
} aotc_state_field;

typedef struct aotc_state_type {
  int32_t field_count;
  const aotc_state_field *fields;
} aotc_state_type;

typedef struct aotc_state aotc_state;

// Makes an object with the initial values of the fields. *out_state is NULL after a failure. `type`
// must outlive it.
AOTC_API aotc_status aotc_state_create(const aotc_state_type *type, aotc_state **out_state);

// Frees an object; NULL is allowed.
AOTC_API aotc_status aotc_state_free(aotc_state *state);

// The index of the field with this name; -1 if there is none.
AOTC_API int32_t aotc_state_find(const aotc_state_type *type, const char *name);

// The memref descriptor of a field, for `values` of aotc_entry_call. NULL if `state` is NULL, which
// the call refuses.
AOTC_API void *aotc_state_memref(const aotc_state *state, int32_t field);

// The following functions are AOTC_INVALID_ARGUMENT for a NULL, and for a field that does not
// exist.

// Resets every field to its initial value.
AOTC_API aotc_status aotc_state_reset(aotc_state *state);

// Copies every field. Both objects must have the same type.
AOTC_API aotc_status aotc_state_copy(aotc_state *to, const aotc_state *from);

// Copies all elements of a field, in row-major order, from and to memory of any kind. `bytes` must
// be the field's size.
AOTC_API aotc_status aotc_state_read(const aotc_state *state, const char *name, void *to,
                                     uint64_t bytes);
AOTC_API aotc_status aotc_state_write(aotc_state *state, const char *name, const void *from,
                                      uint64_t bytes);

// Resets the elements of a field whose index along a dimension is `length` or more.
AOTC_API aotc_status aotc_state_truncate(aotc_state *state, const char *name, int32_t dimension,
                                         int64_t length);

// Writes every field to a file, which appears whole or not at all, and reads such a file. The
// fields of the file must have the names and types of the object's. If the file cannot be read to
// its end, the content of the object is not specified; all other errors are found before it is
// changed.
AOTC_API aotc_status aotc_state_save(const aotc_state *state, const char *path);
AOTC_API aotc_status aotc_state_load(aotc_state *state, const char *path);

#ifdef __cplusplus
}
#endif

#endif // AOTC_STATE_H
