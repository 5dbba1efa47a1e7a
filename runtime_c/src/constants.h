// The copies of constants: what constants.c, constant_forms.c and constant_replace.c share.
#ifndef AOTC_RT_CONSTANTS_H
#define AOTC_RT_CONSTANTS_H

#include "mlir_cuda_runtime.h"
#include "state.h"

// A copy in a context, or in host memory; the latter has a form and no context. Added under the
// lock, looked up without it.
typedef struct aotc_rt_constant_copy {
  struct aotc_rt_constant_copy *next;
  aotc_rt_context *context;
  const aotc_rt_constant_form *form;
  size_t rows; // for the form: equal weights may be used as matrices of different shapes
  void *address;
} aotc_rt_constant_copy;

struct aotc_rt_constant_form {
  const char *getter; // the function that returns it
  const char *what;   // the operation on the constant, for messages
  size_t (*bytes)(size_t rows, size_t row_bytes);
  void (*fill)(void *to, const void *from, size_t rows, size_t row_bytes);
  int64_t least_level; // of aotc_cpu_block: kernels for lower ones do not read it
};

// The most recent copy of a constant; NULL if there is none.
const aotc_rt_constant_copy *aotc_rt_constant_copies(const aotc_constant *constant);

// The copy in a context (NULL: host memory), in a form (NULL: unchanged) with this many rows; NULL
// if there is none.
const aotc_rt_constant_copy *aotc_rt_constant_find(const aotc_constant *constant,
                                                   const aotc_rt_context *context,
                                                   const aotc_rt_constant_form *form, size_t rows);

// Publishes a copy allocated with malloc. Its address, if in host memory, is from malloc or NULL.
void aotc_rt_constant_add_locked(aotc_constant *constant, aotc_rt_constant_copy *copy);

// The copy for the scope's context, made if there is none: filled with `data`, or uninitialized if
// `data` is NULL. NULL, with the failure recorded.
const aotc_rt_constant_copy *aotc_rt_constant_provide(aotc_rt_scope *scope, aotc_constant *constant,
                                                      const void *data);

// Frees all copies except one, which may be NULL. Without a driver they are only forgotten.
void aotc_rt_constant_free_others_locked(const aotc_rt_driver *driver, aotc_constant *constant,
                                         const aotc_rt_constant_copy *kept);

// Allocates memory for a copy in the scope's context, which is current (constant_memory.c). NULL,
// with the failure recorded.
void *aotc_rt_constant_memory_take_locked(aotc_rt_scope *scope, uint64_t bytes);

// Releases a copy's memory; the allocation is freed with its last copy. The context is current.
// Without a driver the memory is only forgotten.
void aotc_rt_constant_memory_give_back_locked(const aotc_rt_driver *driver,
                                              const aotc_rt_context *context, const void *address);

#endif // AOTC_RT_CONSTANTS_H
