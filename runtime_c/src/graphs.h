// Launches of a call that are one submission: recorded, and handed to the driver as a graph where
// the same kernels come again.
#ifndef AOTC_RT_GRAPHS_H
#define AOTC_RT_GRAPHS_H

#include "aotc_entry.h"
#include "state.h"

// The launches that a call has not submitted yet, in the order of its stream, and memory that is to
// be freed behind them.
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

// Begins to record the call of `entry` on this thread, if its launches may be a graph. Nothing is
// recorded on a stream that is captured: that is a graph already.
void aotc_rt_recording_begin(aotc_rt_recording *recording, aotc_rt_scope *scope,
                             const aotc_entry *entry, aotc_rt_stream stream);

// Records a launch whose sizes were checked. False if it is to be launched now, behind what was
// recorded.
bool aotc_rt_recording_add(aotc_rt_thread *thread, const aotc_rt_launch *l,
                           aotc_rt_binding *binding, aotc_rt_stream stream);

// Frees memory behind the launches; false if that may be done now.
bool aotc_rt_recording_free(aotc_rt_thread *thread, void *pointer, aotc_rt_stream stream);

// Submits what was recorded so far. Whoever enqueues or waits for other work calls it first.
void aotc_rt_recording_submit(aotc_rt_recording *recording);

static inline void aotc_rt_submit(const aotc_rt_thread *thread) {
  if (thread->recording != NULL) {
    aotc_rt_recording_submit(thread->recording);
  }
}

// The same before memory is allocated: it may be that which is to be freed.
static inline void aotc_rt_submit_frees(const aotc_rt_thread *thread) {
  if (thread->recording != NULL && thread->recording->freed_count > 0) {
    aotc_rt_recording_submit(thread->recording);
  }
}

// Submits the rest, unless the call has failed, and ends the recording if there is one.
void aotc_rt_recording_end(aotc_rt_recording *recording, const aotc_entry *entry);

// Destroys the graphs of a context, or of all. Without a driver they are only forgotten.
void aotc_rt_graphs_unload(const aotc_rt_driver *driver, aotc_rt_context *context);
void aotc_rt_graphs_forget_kernels(const aotc_rt_driver *driver);

#endif // AOTC_RT_GRAPHS_H
