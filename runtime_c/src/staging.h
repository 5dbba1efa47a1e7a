// Buffers that entry calls copy memory to if the GPU cannot access it.
#ifndef AOTC_RT_STAGING_H
#define AOTC_RT_STAGING_H

#include "state.h"

struct aotc_rt_staging_buffer {
  aotc_rt_staging_buffer *next;
  aotc_memory_kind kind;
  int size_class;
  void *start; // aligned to at least 64 bytes
  uint64_t bytes;
};

// Takes an unused buffer of at least this size, or allocates one; the scope's context is current.
// NULL, with the failure recorded for `what`.
aotc_rt_staging_buffer *aotc_rt_staging_take(aotc_rt_scope *scope, aotc_memory_kind kind,
                                             uint64_t bytes, const char *what);
void aotc_rt_staging_give_back(aotc_rt_context *context, aotc_rt_staging_buffer *buffer);

// Frees the unused buffers of the current context. Without a driver they are only forgotten.
void aotc_rt_staging_unload(const aotc_rt_driver *driver, aotc_rt_context *context);

#endif // AOTC_RT_STAGING_H
