// A pool of streams, the caller's stream, events, and timers.
#include <stdlib.h>
#include <time.h>

#include "cpu/streams.h"
#include "graphs.h"
#include "mlir_cuda_runtime.h"
#include "state.h"
#include "trace.h"

// -------------------------------------------------------------------------------------------------
// The pool

aotc_rt_stream aotc_rt_stream_of(const aotc_rt_thread *thread, void *stream) {
  if (stream == NULL && thread->has_adopted_stream) {
    return thread->adopted_stream;
  }
  return stream;
}

aotc_rt_stream aotc_rt_stream_for_work(aotc_rt_thread *thread, void *stream) {
  thread->is_adopted_stream_idle = false;
  aotc_rt_submit(thread);
  return aotc_rt_stream_of(thread, stream);
}

// Takes a free slot that already has a stream, or one that has none yet.
static bool take_slot(aotc_rt_stream_block *block, bool must_have_stream,
                      _Atomic(aotc_rt_stream) **out_stream, atomic_bool **out_is_taken) {
  for (; block != NULL; block = atomic_load_explicit(&block->next, memory_order_acquire)) {
    for (int i = 0; i < AOTC_RT_STREAMS_PER_BLOCK; ++i) {
      bool has_stream = atomic_load_explicit(&block->slots[i].stream, memory_order_relaxed) != NULL;
      if (has_stream == must_have_stream &&
          !atomic_load_explicit(&block->slots[i].is_taken, memory_order_relaxed) &&
          !atomic_exchange_explicit(&block->slots[i].is_taken, true, memory_order_acq_rel)) {
        *out_stream = &block->slots[i].stream;
        *out_is_taken = &block->slots[i].is_taken;
        return true;
      }
    }
  }
  return false;
}

static bool add_block(aotc_rt_stream_block *block) {
  aotc_rt_stream_block *added = calloc(1, sizeof(*added));
  if (added == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for more streams");
    return false;
  }
  aotc_rt_stream_block *next = NULL;
  while (!atomic_compare_exchange_strong(&block->next, &next, added)) {
    block = next;
    next = NULL;
  }
  return true;
}

aotc_rt_stream aotc_rt_stream_take(aotc_rt_scope *scope) {
  aotc_rt_stream_block *first = &scope->context->streams;
  _Atomic(aotc_rt_stream) *stream = NULL;
  atomic_bool *is_taken = NULL;
  if (!take_slot(first, true, &stream, &is_taken)) {
    while (!take_slot(first, false, &stream, &is_taken)) {
      if (!add_block(first)) {
        return NULL;
      }
    }
  }

  // The slot may have received its stream in the meantime.
  aotc_rt_stream handle = atomic_load_explicit(stream, memory_order_acquire);
  if (handle == NULL) {
    if (!aotc_rt_make_current(scope) ||
        !AOTC_RT_TRY(scope->driver, stream_create(&handle), "a stream")) {
      atomic_store_explicit(is_taken, false, memory_order_release);
      return NULL;
    }
    atomic_store_explicit(stream, handle, memory_order_release);
  }
  return handle;
}

// The slot of a stream of the pool; NULL for other streams.
static atomic_bool *find_slot(aotc_rt_stream stream) {
  aotc_rt_context *context =
      atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_acquire);
  for (; context != NULL; context = context->next) {
    if (atomic_load_explicit(&context->is_gone, memory_order_relaxed)) {
      continue;
    }
    aotc_rt_stream_block *block = &context->streams;
    for (; block != NULL; block = atomic_load_explicit(&block->next, memory_order_acquire)) {
      for (int i = 0; i < AOTC_RT_STREAMS_PER_BLOCK; ++i) {
        if (atomic_load_explicit(&block->slots[i].stream, memory_order_relaxed) == stream) {
          return &block->slots[i].is_taken;
        }
      }
    }
  }
  return NULL;
}

bool aotc_rt_stream_give_back(aotc_rt_stream stream) {
  atomic_bool *is_taken = stream != NULL ? find_slot(stream) : NULL;
  if (is_taken != NULL) {
    atomic_store_explicit(is_taken, false, memory_order_release);
  }
  return is_taken != NULL;
}

void aotc_rt_streams_unload(const aotc_rt_driver *driver, aotc_rt_context *context) {
  aotc_rt_stream_block *block = &context->streams;
  while (block != NULL) {
    for (int i = 0; i < AOTC_RT_STREAMS_PER_BLOCK; ++i) {
      aotc_rt_stream stream = atomic_load(&block->slots[i].stream);
      if (stream != NULL && driver != NULL) {
        AOTC_RT_TRY_RELEASE(driver, stream_destroy(stream), "a stream of the pool");
      }
      atomic_store(&block->slots[i].stream, NULL);
      atomic_store(&block->slots[i].is_taken, false);
    }
    aotc_rt_stream_block *next = atomic_load(&block->next);
    if (block != &context->streams) {
      free(block);
    }
    block = next;
  }
  atomic_store(&context->streams.next, NULL);
}

// -------------------------------------------------------------------------------------------------
// mgpuStream*

void *mgpuStreamCreate(void) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  aotc_rt_phase phase = atomic_load_explicit(&aotc_rt_state_of_process.phase, memory_order_acquire);
  // A caller's stream is always a GPU stream.
  if (thread->error.status == AOTC_OK && thread->has_adopted_stream && phase != AOTC_RT_ON_CPU) {
    return thread->adopted_stream;
  }
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuStreamCreate")) {
    return NULL;
  }
  void *stream =
      scope.driver != NULL ? (void *)aotc_rt_stream_take(&scope) : aotc_rt_cpu_stream_take();
  if (!aotc_rt_end(&scope) && scope.driver != NULL) {
    aotc_rt_stream_give_back(stream);
    stream = NULL;
  }
  return stream;
}

void mgpuStreamDestroy(void *stream) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (stream == NULL || (thread->has_adopted_stream && stream == thread->adopted_stream) ||
      aotc_rt_cpu_stream_give_back(stream, thread->error.status != AOTC_OK) ||
      find_slot(stream) == NULL) {
    return;
  }
  if (thread->error.status != AOTC_OK) {
    // The function that failed will free memory its kernels may still use. The result of this wait
    // is ignored, because the first failure is the one that is reported.
    aotc_rt_scope scope;
    if (aotc_rt_begin_release(&scope, "mgpuStreamDestroy")) {
      if (scope.driver != NULL && aotc_rt_make_current(&scope)) {
        AOTC_RT_TRY_IN(&scope, stream_synchronize(stream), "before it is given back");
      }
      aotc_rt_end(&scope);
    }
  }
  aotc_rt_stream_give_back(stream);
}

static bool is_left_unsynchronized(const aotc_rt_thread *thread, const void *stream) {
  return thread->has_adopted_stream && !thread->synchronizes_adopted_stream &&
         (stream == NULL || stream == thread->adopted_stream);
}

// Waits for a stream; the context need not be current.
static bool synchronize(aotc_rt_scope *scope, void *stream) {
  aotc_rt_submit(scope->thread);
  aotc_rt_stream order = aotc_rt_stream_of(scope->thread, stream);
  if (scope->driver == NULL) {
    int64_t begin = aotc_rt_trace_begin();
    bool is_done = aotc_rt_cpu_stream_wait(order);
    if (begin != 0) {
      aotc_rt_trace_wait(begin);
    }
    return is_done;
  }
  return aotc_rt_make_current(scope) &&
         AOTC_RT_TRY(scope->driver, stream_synchronize(order), "waiting for a stream's work");
}

void mgpuStreamSynchronize(void *stream) {
  aotc_rt_scope scope;
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  // Only an entry knows about all the work on the stream it adopted.
  bool is_entrys = thread->entry_context != NULL && thread->has_adopted_stream &&
                   aotc_rt_stream_of(thread, stream) == thread->adopted_stream;
  if (is_left_unsynchronized(thread, stream) || (is_entrys && thread->is_adopted_stream_idle) ||
      !aotc_rt_begin_unless_failed(&scope, "mgpuStreamSynchronize")) {
    return;
  }
  thread->is_adopted_stream_idle = synchronize(&scope, stream) && is_entrys;
  aotc_rt_end(&scope);
}

// Events are passed between threads: one that a failed thread could not create is NULL.
static bool check_event(const void *event) {
  if (event != NULL) {
    return true;
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT,
               "there is no event; the thread that was to make it may have failed");
  return false;
}

void mgpuStreamWaitEvent(void *stream, void *event) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuStreamWaitEvent")) {
    return;
  }
  aotc_rt_stream order = aotc_rt_stream_for_work(scope.thread, stream);
  if (!check_event(event)) {
    // nothing to wait for
  } else if (scope.driver == NULL) {
    aotc_rt_cpu_stream_wait_event(order, event);
  } else if (aotc_rt_make_current(&scope)) {
    AOTC_RT_TRY(scope.driver, stream_wait_event(order, event), "an event of another stream");
  }
  aotc_rt_end(&scope);
}

// -------------------------------------------------------------------------------------------------
// mgpuEvent*

void *mgpuEventCreate(void) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuEventCreate")) {
    return NULL;
  }
  void *handle = NULL;
  if (scope.driver == NULL) {
    handle = aotc_rt_cpu_event_create();
  } else {
    aotc_rt_event event = NULL;
    bool is_made = aotc_rt_make_current(&scope) &&
                   AOTC_RT_TRY(scope.driver, event_create(false, &event), "an event");
    handle = is_made ? event : NULL;
  }
  return aotc_rt_end(&scope) ? handle : NULL;
}

static void destroy_event(aotc_rt_scope *scope, aotc_rt_event event) {
  if (event != NULL && scope->driver != NULL && aotc_rt_make_current(scope)) {
    AOTC_RT_TRY_IN(scope, event_destroy(event), "an event");
  }
}

void mgpuEventDestroy(void *event) {
  aotc_rt_scope scope;
  if (event != NULL && aotc_rt_begin_release(&scope, "mgpuEventDestroy")) {
    if (scope.driver == NULL) {
      aotc_rt_cpu_event_destroy(event);
    }
    destroy_event(&scope, event);
    aotc_rt_end(&scope);
  }
}

void mgpuEventSynchronize(void *event) {
  aotc_rt_scope scope;
  if (is_left_unsynchronized(&aotc_rt_this_thread, NULL) ||
      !aotc_rt_begin_unless_failed(&scope, "mgpuEventSynchronize")) {
    return;
  }
  if (!check_event(event)) {
    // nothing to wait for
  } else if (scope.driver == NULL) {
    int64_t begin = aotc_rt_trace_begin();
    aotc_rt_cpu_event_wait(event);
    if (begin != 0) {
      aotc_rt_trace_wait(begin);
    }
  } else if (aotc_rt_make_current(&scope)) {
    AOTC_RT_TRY(scope.driver, event_synchronize(event), "waiting for an event");
  }
  aotc_rt_end(&scope);
}

void mgpuEventRecord(void *event, void *stream) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuEventRecord")) {
    return;
  }
  aotc_rt_stream order = aotc_rt_stream_of(scope.thread, stream);
  aotc_rt_submit(scope.thread);
  if (!check_event(event)) {
    // nothing to record
  } else if (scope.driver == NULL) {
    aotc_rt_cpu_event_record(event, order);
  } else if (aotc_rt_make_current(&scope)) {
    AOTC_RT_TRY(scope.driver, event_record(event, order), "an event");
  }
  aotc_rt_end(&scope);
}

// -------------------------------------------------------------------------------------------------
// aotc_stream_*

aotc_status aotc_stream_adopt(void *stream, bool synchronizes) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  thread->has_adopted_stream = true;
  thread->adopted_stream = stream != NULL ? stream : AOTC_RT_STREAM_DEFAULT;
  thread->synchronizes_adopted_stream = synchronizes;
  thread->is_adopted_stream_idle = false;
  return AOTC_OK;
}

void aotc_stream_release(void) {
  aotc_rt_cpu_streams_finish();
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  thread->has_adopted_stream = false;
  thread->adopted_stream = NULL;
}

aotc_status aotc_stream_open(void **out_stream) {
  if (out_stream == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                        "aotc_stream_open: there is no place for the stream");
  }
  *out_stream = NULL;
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_stream_open")) {
    return aotc_rt_this_thread.latest;
  }
  bool is_open = true;
  if (scope.driver != NULL) {
    aotc_rt_stream stream = aotc_rt_stream_take(&scope);
    *out_stream = stream;
    is_open = stream != NULL;
  }
  if (!aotc_rt_end(&scope)) {
    aotc_rt_stream_give_back(*out_stream);
    *out_stream = NULL;
    is_open = false;
  }
  return is_open ? AOTC_OK : scope.thread->latest;
}

aotc_status aotc_stream_close(void *stream) {
  if (stream == NULL || aotc_rt_stream_give_back(stream)) {
    return AOTC_OK;
  }
  return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                      "aotc_stream_close: the stream is not from aotc_stream_open");
}

aotc_status aotc_stream_wait(void *stream) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_stream_wait")) {
    return aotc_rt_this_thread.latest;
  }
  bool is_done = synchronize(&scope, stream);
  is_done = aotc_rt_end(&scope) && is_done;
  return is_done ? AOTC_OK : scope.thread->latest;
}

// -------------------------------------------------------------------------------------------------
// aotc_timer_*

struct aotc_timer {
  aotc_rt_event start, stop; // NULL on the CPU
  struct timespec started;
};

aotc_status aotc_timer_open(aotc_timer **out_timer) {
  if (out_timer == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "aotc_timer_open: there is no place for the timer");
  }
  *out_timer = NULL;
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_timer_open")) {
    return aotc_rt_this_thread.latest;
  }
  bool is_open = false;
  aotc_timer *timer = calloc(1, sizeof(*timer));
  if (timer == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a timer");
  } else {
    is_open = scope.driver == NULL ||
              (aotc_rt_make_current(&scope) &&
               AOTC_RT_TRY(scope.driver, event_create(true, &timer->start), "start") &&
               AOTC_RT_TRY(scope.driver, event_create(true, &timer->stop), "stop"));
  }
  is_open = aotc_rt_end(&scope) && is_open;
  if (!is_open) {
    aotc_status status = scope.thread->latest;
    aotc_timer_close(timer);
    return status;
  }
  *out_timer = timer;
  return AOTC_OK;
}

// Records a time: on the stream, or from the clock.
static bool record(aotc_rt_scope *scope, aotc_rt_event event, void *stream,
                   struct timespec *out_now) {
  if (scope->driver == NULL) {
    if (clock_gettime(CLOCK_MONOTONIC, out_now) == 0) {
      return true;
    }
    aotc_rt_fail(AOTC_UNSUPPORTED, "there is no monotonic clock");
    return false;
  }
  aotc_rt_submit(scope->thread);
  return aotc_rt_make_current(scope) &&
         AOTC_RT_TRY(scope->driver, event_record(event, aotc_rt_stream_of(scope->thread, stream)),
                     "of a timer");
}

aotc_status aotc_timer_start(aotc_timer *timer, void *stream) {
  if (timer == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT, "aotc_timer_start: there is no timer");
  }
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_timer_start")) {
    return aotc_rt_this_thread.latest;
  }
  bool is_started = record(&scope, timer->start, stream, &timer->started);
  is_started = aotc_rt_end(&scope) && is_started;
  return is_started ? AOTC_OK : scope.thread->latest;
}

aotc_status aotc_timer_stop(aotc_timer *timer, void *stream, double *out_milliseconds) {
  if (timer == NULL || out_milliseconds == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                        "aotc_timer_stop: there is no timer, or no place for the time");
  }
  *out_milliseconds = 0;
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_timer_stop")) {
    return aotc_rt_this_thread.latest;
  }
  struct timespec stopped = timer->started;
  bool is_stopped = record(&scope, timer->stop, stream, &stopped);
  float elapsed = 0;
  if (is_stopped && scope.driver == NULL) {
    *out_milliseconds = (double)(stopped.tv_sec - timer->started.tv_sec) * 1e3 +
                        (double)(stopped.tv_nsec - timer->started.tv_nsec) * 1e-6;
  } else if (is_stopped) {
    is_stopped =
        AOTC_RT_TRY(scope.driver, event_synchronize(timer->stop), "waiting for a timer's stop") &&
        AOTC_RT_TRY(scope.driver, event_elapsed(timer->start, timer->stop, &elapsed), "of a timer");
    *out_milliseconds = is_stopped ? (double)elapsed : 0;
  }
  is_stopped = aotc_rt_end(&scope) && is_stopped;
  return is_stopped ? AOTC_OK : scope.thread->latest;
}

void aotc_timer_close(aotc_timer *timer) {
  if (timer == NULL) {
    return;
  }
  aotc_rt_scope scope;
  if (aotc_rt_begin_release(&scope, "aotc_timer_close")) {
    destroy_event(&scope, timer->start);
    destroy_event(&scope, timer->stop);
    aotc_rt_end(&scope);
  }
  free(timer);
}
