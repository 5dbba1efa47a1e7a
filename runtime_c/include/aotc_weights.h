// The weights of a generated library or program by their names, to be replaced while it runs. The
// table is generated beside the module.
//
// No call of an entry that reads a weight may be under way while that is replaced or restored, and
// work that was enqueued on a stream of the caller's must be waited for.
#ifndef AOTC_WEIGHTS_H
#define AOTC_WEIGHTS_H

#include "aotc_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

// A weight: `value` has its name and its type, which is contiguous and of known shape.
typedef struct aotc_named_weight {
  aotc_value value;
  aotc_weight *weight;
} aotc_named_weight;

typedef struct aotc_weight_table {
  int32_t count;
  const aotc_named_weight *weights;
} aotc_weight_table;

// All these are AOTC_INVALID_ARGUMENT for a name that there is not, and for a NULL.

// Copies `data` to the weight's place: elements of `dtype` ("f32", as the manifest has it), row by
// row, in memory of any kind, of `rank` sizes. AOTC_INVALID_ARGUMENT if the weight has another type
// or shape. On a GPU, the copy is in the context of the call, from which others get theirs; there a
// weight that an entry has used, or that was replaced before, stays at its address, so that graphs
// that the caller captured read the new data; but one whose data another weight shares gets an
// address of its own when it is first replaced. It holds until aotc_weight_restore or aotc_unload.
AOTC_API aotc_status aotc_weight_set(const aotc_weight_table *table, const char *name,
                                     const char *dtype, int32_t rank, const int64_t *shape,
                                     const void *data);

// Copies what the weight is now to memory of any kind. `bytes` must be its size.
AOTC_API aotc_status aotc_weight_read(const aotc_weight_table *table, const char *name, void *to,
                                      uint64_t bytes);

// Lets the weight be what its file has.
AOTC_API aotc_status aotc_weight_restore(const aotc_weight_table *table, const char *name);

#ifdef __cplusplus
}
#endif

#endif // AOTC_WEIGHTS_H
