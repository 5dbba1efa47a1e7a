// The weights of a generated library or program, by name, which can be replaced at run time. The
// table is generated beside the module.
//
// While a weight is replaced or restored, no call of an entry may read it; wait for work on the
// caller's streams before.
#ifndef AOTC_WEIGHTS_H
#define AOTC_WEIGHTS_H

#include "aotc_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

// A weight. `value` has its name and its type, which is contiguous and of static shape.
typedef struct aotc_named_weight {
  aotc_value value;
  aotc_weight *weight;
} aotc_named_weight;

typedef struct aotc_weight_table {
  int32_t count;
  const aotc_named_weight *weights;
} aotc_weight_table;

// The following functions are AOTC_INVALID_ARGUMENT for a name that does not exist, and for a NULL.

// Replaces a weight by a copy of `data`: elements of `dtype` ("f32", as in the manifest),
// row-major, in memory of any kind, with `rank` sizes. AOTC_INVALID_ARGUMENT if the weight has
// another type or shape. On a GPU, the copy is in the context of the call, from which other
// contexts copy it. A weight that an entry has used there, or that was replaced before, keeps its
// address, so that graphs that the caller has captured read the new data. But a weight that shares
// its data with another one gets its own address when it is first replaced. The replacement holds
// until aotc_weight_restore or aotc_unload.
AOTC_API aotc_status aotc_weight_set(const aotc_weight_table *table, const char *name,
                                     const char *dtype, int32_t rank, const int64_t *shape,
                                     const void *data);

// Copies the current value of a weight to memory of any kind. `bytes` must be its size.
AOTC_API aotc_status aotc_weight_read(const aotc_weight_table *table, const char *name, void *to,
                                      uint64_t bytes);

// Restores the weight to the value in its file.
AOTC_API aotc_status aotc_weight_restore(const aotc_weight_table *table, const char *name);

#ifdef __cplusplus
}
#endif

#endif // AOTC_WEIGHTS_H
