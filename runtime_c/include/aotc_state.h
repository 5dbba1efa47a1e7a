// The state of a generated library: objects that hold tensors which entries read and write, and
// keep from call to call. The fields as data are generated beside the module.
//
// An object is made on the device that calls of its thread would use, and stays there; it may be
// passed to calls of any thread, one after another. It must be freed before aotc_unload. Work that
// was enqueued on a stream of the caller's must be waited for, before an object that it uses is
// read, written, copied, saved or freed.
#ifndef AOTC_STATE_H
#define AOTC_STATE_H

#include "aotc_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor: `value` has its name and its type, which is contiguous and of known shape, so that
// value.bytes is its size, and where it is on a GPU. It begins with the bytes at `initial`, on the
// host: `initial_bytes` of them, which are all, or one element, which all are.
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

// Makes an object, whose fields are as they begin. *out_state is NULL after a failure. `type` must
// outlive it.
AOTC_API aotc_status aotc_state_create(const aotc_state_type *type, aotc_state **out_state);

// Frees an object; NULL is fine.
AOTC_API aotc_status aotc_state_free(aotc_state *state);

// The number of the field of this name; -1 if there is none.
AOTC_API int32_t aotc_state_find(const aotc_state_type *type, const char *name);

// The memref descriptor of a field, for `values` of aotc_entry_call. NULL if `state` is: the call
// refuses it.
AOTC_API void *aotc_state_memref(const aotc_state *state, int32_t field);

// All these are AOTC_INVALID_ARGUMENT for a NULL, and for a field that there is not.

// Lets every field begin again.
AOTC_API aotc_status aotc_state_reset(aotc_state *state);

// Copies every field. Both objects must be of one type.
AOTC_API aotc_status aotc_state_copy(aotc_state *to, const aotc_state *from);

// Copies all elements of a field, row by row, from and to memory of any kind. `bytes` must be the
// field's size.
AOTC_API aotc_status aotc_state_read(const aotc_state *state, const char *name, void *to,
                                     uint64_t bytes);
AOTC_API aotc_status aotc_state_write(aotc_state *state, const char *name, const void *from,
                                      uint64_t bytes);

// Lets the elements of a field begin again whose index along a dimension is `length` or more.
AOTC_API aotc_status aotc_state_truncate(aotc_state *state, const char *name, int32_t dimension,
                                         int64_t length);

// Writes every field to a file, which appears whole or not at all, and reads them again. The fields
// of the file must have the names and types of the object's. What a file that cannot be read to its
// end leaves in the object is not specified; all else that is wrong is found before.
AOTC_API aotc_status aotc_state_save(const aotc_state *state, const char *path);
AOTC_API aotc_status aotc_state_load(aotc_state *state, const char *path);

#ifdef __cplusplus
}
#endif

#endif // AOTC_STATE_H
