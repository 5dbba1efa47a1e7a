// Submitting the launches of a call together: they are recorded, and launched as a graph if the
// same kernels are launched repeatedly.
#ifndef AOTC_RT_GRAPHS_H
#define AOTC_RT_GRAPHS_H

#include "aotc_entry.h"
#include "state.h"

// The launches of a call that are not submitted yet, in stream order, and memory to be freed after
// them.
struct aotc_rt_recording {
  aotc_rt_scope *scope;
  aotc_rt_stream stream;
  aotc_rt_recorded *launches;
  int count, capacity;
  char *values; // of the launches' parameters
  size_t bytes, values_capacity;
  void **freed;
  int freed_count, freed_capacity;
};

// Begins recording the call of `entry` on this thread, if its launches may become a graph. Nothing
// is recorded on a stream that is being captured, as that makes a graph already.
void aotc_rt_recording_begin(aotc_rt_recording *recording, aotc_rt_scope *scope,
                             const aotc_entry *entry, aotc_rt_stream stream);

// Records a launch with checked sizes. False if it must be launched now, after the recorded ones.
bool aotc_rt_recording_add(aotc_rt_thread *thread, const aotc_rt_launch *l,
                           aotc_rt_binding *binding, aotc_rt_stream stream);

// Frees memory after the recorded launches; false if it can be freed now.
bool aotc_rt_recording_free(aotc_rt_thread *thread, void *pointer, aotc_rt_stream stream);

// Submits the launches recorded so far. Must be called before enqueuing or waiting for other work.
void aotc_rt_recording_submit(aotc_rt_recording *recording);

static inline void aotc_rt_submit(const aotc_rt_thread *thread) {
  if (thread->recording != NULL) {
    aotc_rt_recording_submit(thread->recording);
  }
}

// The same before an allocation, which may reuse the memory to be freed.
static inline void aotc_rt_submit_frees(const aotc_rt_thread *thread) {
  if (thread->recording != NULL && thread->recording->freed_count > 0) {
    aotc_rt_recording_submit(thread->recording);
  }
}

// Submits the rest, unless the call has failed, and ends the recording, if there is one.
void aotc_rt_recording_end(aotc_rt_recording *recording, const aotc_entry *entry);

// Destroys the graphs of a context, or of all. Without a driver they are only forgotten.
void aotc_rt_graphs_unload(const aotc_rt_driver *driver, aotc_rt_context *context);
void aotc_rt_graphs_forget_kernels(const aotc_rt_driver *driver);

#endif // AOTC_RT_GRAPHS_H
