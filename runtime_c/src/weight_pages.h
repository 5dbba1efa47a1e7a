// Weights that exceed a device's memory budget for them: weight_pages.c.
#ifndef AOTC_RT_WEIGHT_PAGES_H
#define AOTC_RT_WEIGHT_PAGES_H

#include "state.h"
#include "weights_file.h"

// Sets the budget to AOTC_WEIGHTS_BUDGET, in bytes, unless the program has set it; false, with the
// failure recorded, if the value is not a number.
bool aotc_rt_weights_budget_resolve_locked(aotc_rt_state *state);

// The address on the scope's device of data of `file`, which is resident while kernels launched
// with it run. NULL, with the failure recorded, or with *out_is_whole set if the whole file is
// within the budget.
void *aotc_rt_weight_pages_get(aotc_rt_scope *scope, const aotc_rt_weights_file *file,
                               const void *data, bool *out_is_whole);

// Launches a kernel after copying the weights that its parameters refer to.
bool aotc_rt_weight_pages_launch(aotc_rt_scope *scope, const aotc_rt_launch *l,
                                 aotc_rt_binding *binding, aotc_rt_stream stream);

// Copies from memory that may belong to such a weight.
bool aotc_rt_weight_pages_copy(aotc_rt_scope *scope, void *to, const void *from, size_t bytes,
                               aotc_rt_stream stream);

// Records that kernels which get `descriptor` read the weight at `address`, if there is one.
bool aotc_rt_weight_pages_describe(aotc_rt_scope *scope, const void *descriptor,
                                   const void *address);
// Whether such a weight is at `address`.
bool aotc_rt_weight_pages_have(const aotc_rt_context *context, const void *address);

// Records a failure if the budget was too small for this thread's launches.
void aotc_rt_weight_pages_tell(aotc_rt_thread *thread);

// Releases the context's objects for a file that is closed, or for all (NULL); the context is
// current. Without a driver they are only forgotten.
void aotc_rt_weight_pages_unload(const aotc_rt_driver *driver, aotc_rt_context *context,
                                 const aotc_rt_weights_file *file);

static inline bool aotc_rt_has_paged_weights(const aotc_rt_context *context) {
  return atomic_load_explicit(&context->has_paged_weights, memory_order_acquire);
}

#endif // AOTC_RT_WEIGHT_PAGES_H
