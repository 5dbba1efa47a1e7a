// Weights that are larger than the budget that a device has for them: weight_pages.c.
#ifndef AOTC_RT_WEIGHT_PAGES_H
#define AOTC_RT_WEIGHT_PAGES_H

#include "state.h"
#include "weights_file.h"

// Sets the budget to the bytes of AOTC_WEIGHTS_BUDGET, unless the program has set it; false, with
// the failure recorded, if that is no number.
bool aotc_rt_weights_budget_resolve_locked(aotc_rt_state *state);

// The address on the scope's device of data of `file`, which is resident while kernels that are
// launched with it run. NULL, with the failure recorded; or, with *out_is_whole set, where all of
// the file is within the budget.
void *aotc_rt_weight_pages_get(aotc_rt_scope *scope, const aotc_rt_weights_file *file,
                               const void *data, bool *out_is_whole);

// Launches a kernel behind the copies of the weights that its parameters name.
bool aotc_rt_weight_pages_launch(aotc_rt_scope *scope, const aotc_rt_launch *l,
                                 aotc_rt_binding *binding, aotc_rt_stream stream);

// Copies from memory that may be such a weight's.
bool aotc_rt_weight_pages_copy(aotc_rt_scope *scope, void *to, const void *from, size_t bytes,
                               aotc_rt_stream stream);

// Notes that kernels which get `descriptor` read what is at `address`, if that is a weight's.
bool aotc_rt_weight_pages_describe(aotc_rt_scope *scope, const void *descriptor,
                                   const void *address);
// Whether there is such a weight at `address`.
bool aotc_rt_weight_pages_have(const aotc_rt_context *context, const void *address);

// Makes it a failure that the budget was too small for the launches of this thread.
void aotc_rt_weight_pages_tell(aotc_rt_thread *thread);

// Gives back what a context has for a file, which is closed, or (NULL) for all; the context is
// current. Without a driver it is only forgotten.
void aotc_rt_weight_pages_unload(const aotc_rt_driver *driver, aotc_rt_context *context,
                                 const aotc_rt_weights_file *file);

static inline bool aotc_rt_has_paged_weights(const aotc_rt_context *context) {
  return atomic_load_explicit(&context->has_paged_weights, memory_order_acquire);
}

#endif // AOTC_RT_WEIGHT_PAGES_H
