// AOTC_TRACE=FILE: writes a process's device activity (trace.c).
#ifndef AOTC_RT_TRACE_H
#define AOTC_RT_TRACE_H

#include "state.h"

enum { AOTC_RT_TRACE_UNKNOWN = 0, AOTC_RT_TRACE_OFF, AOTC_RT_TRACE_ON };
extern atomic_int aotc_rt_trace_phase;

// Opens the file on the first call.
bool aotc_rt_trace_is_on(void);

int64_t aotc_rt_trace_now(void);
int64_t aotc_rt_trace_start(void);

// The start time of an event, in nanoseconds; 0 if tracing is off.
static inline int64_t aotc_rt_trace_begin(void) {
  return atomic_load_explicit(&aotc_rt_trace_phase, memory_order_relaxed) == AOTC_RT_TRACE_OFF
             ? 0
             : aotc_rt_trace_start();
}

// Write an event that ends now; `begin` is not 0.
void aotc_rt_trace_call(int64_t begin, const char *entry, const aotc_rt_context *context);
void aotc_rt_trace_wait(int64_t begin);
void aotc_rt_trace_copy(int64_t begin, const char *name, uint64_t bytes, const char *direction);
void aotc_rt_trace_launch(int64_t begin, const char *kernel, const int64_t *grid,
                          const int64_t *block);

// The time and the row of an event.
typedef struct aotc_rt_trace_span {
  int64_t begin, end;
  int64_t row; // 0 for this thread's, else from aotc_rt_trace_add_row
} aotc_rt_trace_span;

// Writes an event with any times; `arguments` is "" or JSON that ends with a comma.
void aotc_rt_trace_event(const aotc_rt_context *context, const char *category, const char *name,
                         const char *arguments, aotc_rt_trace_span span);
// Adds a row with this name and returns its number.
int64_t aotc_rt_trace_add_row(const char *name);

// The arguments of a copy and of a launch.
#define AOTC_RT_TRACE_ARGUMENT_BYTES 1536
void aotc_rt_trace_describe_copy(char *text, uint64_t bytes, const char *direction);
void aotc_rt_trace_describe_launch(char *text, const char *kernel, const int64_t *grid,
                                   const int64_t *block);

// The driver, or a wrapper that traces its copies, fills, launches and waits (trace_driver.c).
// Under the lock.
const aotc_rt_driver *aotc_rt_trace_driver(const aotc_rt_driver *driver);

#endif // AOTC_RT_TRACE_H
