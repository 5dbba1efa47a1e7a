// Streams and events of the CPU device. A stream has a thread while it has work.
#ifndef AOTC_RT_CPU_STREAMS_H
#define AOTC_RT_CPU_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

// What a stream does, with what it knows of it.
typedef void (*aotc_rt_cpu_work)(const void *payload);

// Takes a stream that has no work, or makes one; NULL, with the failure recorded. Whatever else a
// caller has for a stream (a default stream, a stream of its own) never has work.
void *aotc_rt_cpu_stream_take(void);

// Gives a stream back; what it has to do goes on. `waits`: it is waited for before. False for
// other streams.
bool aotc_rt_cpu_stream_give_back(void *stream, bool waits);

// Room for what a stream needs to know of a work, aligned to 128 bytes; NULL if there is none.
void *aotc_rt_cpu_work_new(aotc_rt_cpu_work run, size_t bytes);

// Puts the work, which belongs to the stream from then on, behind the others of the stream. False,
// without a record, when the stream has no thread, and cannot get one; the work is freed then.
bool aotc_rt_cpu_stream_enqueue(void *stream, void *payload);

// Does `run` when the stream's work so far is done, with a copy of `payload`: at once, if it has
// none.
void aotc_rt_cpu_stream_do(void *stream, aotc_rt_cpu_work run, const void *payload, size_t bytes);

// Waits for the stream's work. False, with the failure recorded, if some of it failed.
bool aotc_rt_cpu_stream_wait(void *stream);

// Waits for the work of all streams, whatever comes of it.
void aotc_rt_cpu_streams_wait(void);

// Waits for the work of all streams that this thread took, and records a failure that nobody was
// told of: the end of an entry.
void aotc_rt_cpu_streams_finish(void);

// NULL, with the failure recorded, if there is no memory.
void *aotc_rt_cpu_event_create(void);
void aotc_rt_cpu_event_destroy(void *event);
void aotc_rt_cpu_event_record(void *event, void *stream);
// False, with the failure recorded, if the work before the event failed.
bool aotc_rt_cpu_event_wait(void *event);
// Makes the stream's later work wait for the event.
void aotc_rt_cpu_stream_wait_event(void *stream, void *event);

// Waits for all work, ends the threads and forgets the streams. `is_for_good`: there will be no
// threads any more.
void aotc_rt_cpu_streams_stop(bool is_for_good);

// Keep the streams right over a fork, as those of cpu.h. A child has none of their work.
void aotc_rt_cpu_streams_before_fork(void);
void aotc_rt_cpu_streams_after_fork_in_parent(void);
void aotc_rt_cpu_streams_after_fork_in_child(void);

#endif // AOTC_RT_CPU_STREAMS_H
