// A call of an entry, and copies of what its arguments reach.
#ifndef AOTC_RT_ENTRY_STAGING_H
#define AOTC_RT_ENTRY_STAGING_H

#include "entry.h"

#define AOTC_RT_VALUE_ALIGNMENT 16 // of any value

// A call under way.
typedef struct aotc_rt_call {
  const aotc_entry *entry;
  void **values; // the caller's
  void **passed; // the entry's
  aotc_rt_piece *pieces;
  void *memory; // of `passed` and what it points to, if it is malloc's
  aotc_rt_scope scope;
  aotc_rt_stream stream; // of the caller's; NULL: the call waits
  bool is_staged;        // some argument is
  bool is_enqueued;      // something was, that the end waits for
  // Of the memrefs that the caller gave: where some of them are.
  bool has_device_memory, has_host_memory;
} aotc_rt_call;

// Asks the driver where every argument's memory is; false, with the failure recorded.
bool aotc_rt_call_classify(aotc_rt_call *c);

// Whether the argument has the buffer of a group of arguments.
bool aotc_rt_call_is_buffer_of(const aotc_rt_call *c, int32_t index);

// Copies what is not used in place to buffers, and back what the entry writes. Whatever became of
// the copies, the buffers are to be given back.
bool aotc_rt_call_copy_in(aotc_rt_call *c);
void aotc_rt_call_copy_out(aotc_rt_call *c);
void aotc_rt_call_give_back(aotc_rt_call *c);

#endif // AOTC_RT_ENTRY_STAGING_H
