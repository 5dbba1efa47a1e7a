// Buffers that calls of entries copy to, for memory that the GPU does not reach.
#ifndef AOTC_RT_STAGING_H
#define AOTC_RT_STAGING_H

#include "state.h"

struct aotc_rt_staging_buffer {
  aotc_rt_staging_buffer *next;
  aotc_memory_kind kind;
  int size_class;
  void *start; // aligned to 64 bytes at least
  uint64_t bytes;
};

// A buffer of at least so many bytes, from those that are unused or a new one; the scope's context
// is current. NULL, with the failure recorded as one of `what`.
aotc_rt_staging_buffer *aotc_rt_staging_take(aotc_rt_scope *scope, aotc_memory_kind kind,
                                             uint64_t bytes, const char *what);
void aotc_rt_staging_give_back(aotc_rt_context *context, aotc_rt_staging_buffer *buffer);

// Frees the context's unused buffers; it is current. Without a driver they are only forgotten.
void aotc_rt_staging_unload(const aotc_rt_driver *driver, aotc_rt_context *context);

#endif // AOTC_RT_STAGING_H
