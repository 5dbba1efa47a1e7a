// Streams and events of the CPU device. A stream has a thread while it has work.
#ifndef AOTC_RT_CPU_STREAMS_H
#define AOTC_RT_CPU_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

// A work item's function, which gets its payload.
typedef void (*aotc_rt_cpu_work)(const void *payload);

// Takes an idle stream from the pool or creates one; NULL, with the failure recorded. Any other
// value that a caller has for a stream (a default stream, a foreign stream) never has work.
void *aotc_rt_cpu_stream_take(void);

// Returns a stream to the pool; its pending work continues, or is waited for if `waits`. False if
// it is not a stream of the pool.
bool aotc_rt_cpu_stream_give_back(void *stream, bool waits);

// Allocates a work item's payload, aligned to 128 bytes; NULL if there is no memory.
void *aotc_rt_cpu_work_new(aotc_rt_cpu_work run, size_t bytes);

// Appends the work item, which the stream then owns, to the stream's queue. False, without a
// recorded failure, if the stream has no thread and cannot get one; the item is then freed.
bool aotc_rt_cpu_stream_enqueue(void *stream, void *payload);

// Runs `run` with a copy of `payload` after the stream's pending work: at once, if there is none.
void aotc_rt_cpu_stream_do(void *stream, aotc_rt_cpu_work run, const void *payload, size_t bytes);

// Waits for the stream's work. False, with the failure recorded, if some of it failed.
bool aotc_rt_cpu_stream_wait(void *stream);

// Waits for the work of all streams, and ignores failures.
void aotc_rt_cpu_streams_wait(void);

// Called at the end of an entry: waits for the work of all streams that this thread took, and
// records a failure that has not been reported.
void aotc_rt_cpu_streams_finish(void);

// NULL, with the failure recorded, if there is no memory.
void *aotc_rt_cpu_event_create(void);
void aotc_rt_cpu_event_destroy(void *event);
void aotc_rt_cpu_event_record(void *event, void *stream);
// False, with the failure recorded, if the work before the event failed.
bool aotc_rt_cpu_event_wait(void *event);
// Makes the stream's later work wait for the event.
void aotc_rt_cpu_stream_wait_event(void *stream, void *event);

// Waits for all work, ends the threads and forgets the streams. `is_for_good`: no new threads will
// be created.
void aotc_rt_cpu_streams_stop(bool is_for_good);

// Keep the streams consistent across a fork, like the functions of cpu.h. A child has none of their
// work.
void aotc_rt_cpu_streams_before_fork(void);
void aotc_rt_cpu_streams_after_fork_in_parent(void);
void aotc_rt_cpu_streams_after_fork_in_child(void);

#endif // AOTC_RT_CPU_STREAMS_H
