// A call of an entry, and the copies of its arguments' memory.
#ifndef AOTC_RT_ENTRY_STAGING_H
#define AOTC_RT_ENTRY_STAGING_H

#include "entry.h"

#define AOTC_RT_VALUE_ALIGNMENT 16 // of values of any type

// The state of a call.
typedef struct aotc_rt_call {
  const aotc_entry *entry;
  void **values; // the caller's
  void **passed; // the entry's
  aotc_rt_piece *pieces;
  void *memory; // of `passed` and what it points to, if allocated with malloc
  aotc_rt_scope scope;
  aotc_rt_stream stream; // the caller's; NULL if the call is synchronous
  bool is_staged;        // some argument is copied
  bool is_enqueued;      // there is enqueued work to wait for at the end
  // Where the memory of the caller's memrefs is.
  bool has_device_memory, has_host_memory;
} aotc_rt_call;

// Queries the location of every argument's memory; false, with the failure recorded.
bool aotc_rt_call_classify(aotc_rt_call *c);

// Whether the argument represents a group of arguments with a buffer.
bool aotc_rt_call_is_buffer_of(const aotc_rt_call *c, int32_t index);

// Copies memory that cannot be used in place into buffers, and copies back what the entry writes.
// The buffers must be released even after a failed copy.
bool aotc_rt_call_copy_in(aotc_rt_call *c);
void aotc_rt_call_copy_out(aotc_rt_call *c);
void aotc_rt_call_give_back(aotc_rt_call *c);

#endif // AOTC_RT_ENTRY_STAGING_H
