// The streams of the CPU device: queues of work items, each run in order by one thread at a time,
// so that kernels of two streams may wait for each other.
//
// Threads do not belong to streams: a thread that finds no stream with work waits for one. There
// are therefore only as many threads as there were streams with work at the same time, however many
// streams a program leaves behind.
#include "streams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../state.h"
#include "blocks.h"
#include "thread.h"

typedef struct work {
  struct work *next;
  aotc_rt_cpu_work run;
  bool is_skippable; // skipped after a failure on its stream
} work;

// The size of the header before the payload; keeps the payload aligned.
#define WORK_BYTES AOTC_RT_SCRATCH_ALIGNMENT
_Static_assert(sizeof(work) <= WORK_BYTES, "the payload begins behind the work");

typedef struct stream {
  struct stream *next;
  work *first, *last; // `first` stays in the queue while it runs
  bool is_taken, has_thread;
  pthread_t taker;        // the thread that took the stream last
  aotc_rt_error *failure; // the first one that has not been reported; NULL if none
} stream;

// Each record has a number. An event has completed when its latest record has been run.
typedef struct event {
  uint64_t recorded, done;
  int32_t holders; // references: one by the program and one by each work item
  aotc_rt_error *failure;
} event;

// Everything here and in the structs above is protected by the lock.
typedef struct streams {
  pthread_mutex_t lock;
  pthread_cond_t has_work;
  pthread_cond_t has_changed; // a stream has become idle, or an event has completed
  stream *all;
  pthread_t *threads;
  int32_t thread_count; // at least the number of streams with work
  bool is_stopping;
} streams;

static streams the_streams = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .has_work = PTHREAD_COND_INITIALIZER,
    .has_changed = PTHREAD_COND_INITIALIZER,
};
// The number of streams with work; if it is 0, no lock is needed.
static atomic_int the_busy_count;

static void lock(void) {
  pthread_mutex_lock(&the_streams.lock);
}

static void unlock(void) {
  pthread_mutex_unlock(&the_streams.lock);
}

static void wait_for_change_locked(void) {
  pthread_cond_wait(&the_streams.has_changed, &the_streams.lock);
}

static bool is_any_busy(void) {
  return atomic_load_explicit(&the_busy_count, memory_order_acquire) != 0;
}

static stream *find_locked(const void *handle) {
  stream *s = the_streams.all;
  while (s != NULL && s != handle) {
    s = s->next;
  }
  return s;
}

// -------------------------------------------------------------------------------------------------
// Failures

// Stores a copy unless a failure is stored already. Without memory for the copy the failure is
// lost: later work then runs as if nothing had failed.
static void keep_failure_locked(aotc_rt_error **kept, const aotc_rt_error *failure) {
  if (failure == NULL || *kept != NULL) {
    return;
  }
  *kept = malloc(sizeof(**kept));
  if (*kept != NULL) {
    **kept = *failure;
  }
}

// Takes the stored failure and records it; true if there is none.
static bool tell_failure(aotc_rt_error *failure) {
  if (failure == NULL) {
    return true;
  }
  aotc_rt_fail(failure->status, "%s", failure->message);
  free(failure);
  return false;
}

// -------------------------------------------------------------------------------------------------
// Threads

// Runs the stream's first work item, and removes it from the queue.
static void do_first_locked(stream *s) {
  work *w = s->first;
  if (s->failure == NULL || !w->is_skippable) {
    aotc_rt_thread *thread = &aotc_rt_this_thread;
    aotc_rt_error failure = {.status = AOTC_OK};
    unlock();
    thread->sink = &failure; // the failure is reported to the thread that waits
    w->run((char *)w + WORK_BYTES);
    thread->sink = NULL;
    lock();
    if (failure.status != AOTC_OK) {
      keep_failure_locked(&s->failure, &failure);
    }
  }
  s->first = w->next;
  free(w);
  if (s->first == NULL) {
    atomic_fetch_sub_explicit(&the_busy_count, 1, memory_order_release);
    pthread_cond_broadcast(&the_streams.has_changed);
  }
}

static void *run_streams(void *unused) {
  (void)unused;
  streams *all = &the_streams;
  lock();
  for (;;) {
    stream *s = all->all;
    while (s != NULL && (s->first == NULL || s->has_thread)) {
      s = s->next;
    }
    if (s != NULL) {
      s->has_thread = true;
      while (s->first != NULL) {
        do_first_locked(s);
      }
      s->has_thread = false;
    } else if (all->is_stopping) {
      break;
    } else {
      pthread_cond_wait(&all->has_work, &all->lock);
    }
  }
  unlock();
  return NULL;
}

// Makes sure that there is a thread for one more stream; idle threads look for one.
static bool call_thread_locked(void) {
  streams *all = &the_streams;
  if (all->thread_count > atomic_load_explicit(&the_busy_count, memory_order_relaxed)) {
    pthread_cond_signal(&all->has_work);
    return true;
  }
  size_t count = (size_t)all->thread_count + 1;
  pthread_t *threads = realloc(all->threads, count * sizeof(*all->threads));
  if (threads == NULL) {
    return false;
  }
  all->threads = threads;
  if (!aotc_rt_cpu_thread_start(&threads[count - 1], run_streams, NULL)) {
    return false;
  }
  ++all->thread_count;
  return true;
}

// -------------------------------------------------------------------------------------------------
// Streams

void *aotc_rt_cpu_stream_take(void) {
  aotc_rt_fork_prepare();
  lock();
  stream *s = the_streams.all;
  while (s != NULL && (s->is_taken || s->first != NULL)) {
    s = s->next;
  }
  if (s == NULL && (s = calloc(1, sizeof(*s))) != NULL) {
    s->next = the_streams.all;
    the_streams.all = s;
  }
  if (s != NULL) {
    s->is_taken = true;
    s->taker = pthread_self();
    free(s->failure);
    s->failure = NULL;
  }
  unlock();
  if (s == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for a stream");
  }
  return s;
}

bool aotc_rt_cpu_stream_give_back(void *handle, bool waits) {
  lock();
  stream *s = find_locked(handle);
  while (waits && s != NULL && s->first != NULL) {
    wait_for_change_locked();
  }
  if (s != NULL) {
    s->is_taken = false;
  }
  unlock();
  return s != NULL;
}

void *aotc_rt_cpu_work_new(aotc_rt_cpu_work run, size_t bytes) {
  void *memory = NULL;
  size_t all_bytes = 0;
  if (__builtin_add_overflow(bytes, WORK_BYTES, &all_bytes) ||
      posix_memalign(&memory, AOTC_RT_SCRATCH_ALIGNMENT, all_bytes) != 0) {
    return NULL;
  }
  *(work *)memory = (work){.run = run, .is_skippable = true};
  return (char *)memory + WORK_BYTES;
}

static bool enqueue_locked(stream *s, work *w) {
  bool has_work = s != NULL && s->first != NULL;
  if (s == NULL || (!has_work && (the_streams.is_stopping || !call_thread_locked()))) {
    free(w);
    return false;
  }
  if (!has_work) {
    s->first = w;
    atomic_fetch_add_explicit(&the_busy_count, 1, memory_order_release);
  } else {
    s->last->next = w;
  }
  s->last = w;
  return true;
}

bool aotc_rt_cpu_stream_enqueue(void *handle, void *payload) {
  lock();
  bool is_enqueued =
      enqueue_locked(find_locked(handle), (work *)(void *)((char *)payload - WORK_BYTES));
  unlock();
  return is_enqueued;
}

void aotc_rt_cpu_stream_do(void *handle, aotc_rt_cpu_work run, const void *payload, size_t bytes) {
  if (is_any_busy()) {
    lock();
    stream *s = find_locked(handle);
    if (s != NULL && s->first != NULL) {
      void *enqueued = aotc_rt_cpu_work_new(run, bytes);
      if (enqueued != NULL) {
        memcpy(enqueued, payload, bytes);
        enqueue_locked(s, (work *)(void *)((char *)enqueued - WORK_BYTES));
        unlock();
        return;
      }
      while (s->first != NULL) {
        wait_for_change_locked();
      }
    }
    unlock();
  }
  run(payload);
}

bool aotc_rt_cpu_stream_wait(void *handle) {
  lock();
  stream *s = find_locked(handle);
  aotc_rt_error *failure = NULL;
  if (s != NULL) {
    while (s->first != NULL) {
      wait_for_change_locked();
    }
    failure = s->failure;
    s->failure = NULL;
  }
  unlock();
  return tell_failure(failure);
}

void aotc_rt_cpu_streams_wait(void) {
  if (!is_any_busy()) {
    return;
  }
  lock();
  while (is_any_busy()) {
    wait_for_change_locked();
  }
  unlock();
}

void aotc_rt_cpu_streams_finish(void) {
  aotc_rt_error *failure = NULL;
  lock();
  for (stream *s = the_streams.all; s != NULL; s = s->next) {
    if (!pthread_equal(s->taker, pthread_self())) {
      continue;
    }
    while (s->first != NULL) {
      wait_for_change_locked();
    }
    keep_failure_locked(&failure, s->failure);
    free(s->failure);
    s->failure = NULL;
  }
  unlock();
  tell_failure(failure);
}

// -------------------------------------------------------------------------------------------------
// Events

// The payload of a work item that records an event or waits for one.
typedef struct event_work {
  event *event;
  uint64_t number; // of the record
  stream *stream;
} event_work;

static void let_go_locked(event *e) {
  if (--e->holders == 0) {
    free(e->failure);
    free(e);
  }
}

void *aotc_rt_cpu_event_create(void) {
  event *e = calloc(1, sizeof(*e));
  if (e == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for an event");
    return NULL;
  }
  e->holders = 1;
  return e;
}

void aotc_rt_cpu_event_destroy(void *handle) {
  lock();
  let_go_locked(handle);
  unlock();
}

static void record_locked(const event_work *w) {
  event *e = w->event;
  e->done = w->number > e->done ? w->number : e->done;
  keep_failure_locked(&e->failure, w->stream != NULL ? w->stream->failure : NULL);
  pthread_cond_broadcast(&the_streams.has_changed);
  let_go_locked(e);
}

static void record(const void *payload) {
  lock();
  record_locked(payload);
  unlock();
}

static void wait_for_event_locked(const event_work *w) {
  while (w->event->done < w->number) {
    wait_for_change_locked();
  }
  if (w->stream != NULL) {
    keep_failure_locked(&w->stream->failure, w->event->failure);
  }
}

static void wait_for_event(const void *payload) {
  const event_work *w = payload;
  lock();
  wait_for_event_locked(w);
  let_go_locked(w->event);
  unlock();
}

// Also runs after a failure on the stream, because others wait for the event.
static bool enqueue_event_locked(aotc_rt_cpu_work run, const event_work *w) {
  void *payload = aotc_rt_cpu_work_new(run, sizeof(*w));
  if (payload == NULL) {
    return false;
  }
  memcpy(payload, w, sizeof(*w));
  work *enqueued = (work *)(void *)((char *)payload - WORK_BYTES);
  enqueued->is_skippable = false;
  return enqueue_locked(w->stream, enqueued);
}

void aotc_rt_cpu_event_record(void *handle, void *stream_handle) {
  event *e = handle;
  lock();
  stream *s = find_locked(stream_handle);
  event_work w = {.event = e, .number = ++e->recorded, .stream = s};
  ++e->holders;
  if (s == NULL || s->first == NULL || !enqueue_event_locked(record, &w)) {
    while (s != NULL && s->first != NULL) {
      wait_for_change_locked();
    }
    record_locked(&w);
  }
  unlock();
}

bool aotc_rt_cpu_event_wait(void *handle) {
  event *e = handle;
  lock();
  event_work w = {.event = e, .number = e->recorded};
  wait_for_event_locked(&w);
  aotc_rt_error *failure = NULL;
  keep_failure_locked(&failure, e->failure);
  unlock();
  return tell_failure(failure);
}

void aotc_rt_cpu_stream_wait_event(void *stream_handle, void *handle) {
  event *e = handle;
  lock();
  event_work w = {.event = e, .number = e->recorded, .stream = find_locked(stream_handle)};
  ++e->holders;
  bool has_happened = e->done >= w.number && (w.stream == NULL || w.stream->first == NULL);
  if (has_happened || w.stream == NULL || !enqueue_event_locked(wait_for_event, &w)) {
    wait_for_event_locked(&w);
    let_go_locked(e);
  }
  unlock();
}

// -------------------------------------------------------------------------------------------------
// The end, and forks

static void forget_threads_locked(void) {
  free(the_streams.threads);
  the_streams.threads = NULL;
  the_streams.thread_count = 0;
}

void aotc_rt_cpu_streams_stop(bool is_for_good) {
  streams *all = &the_streams;
  lock();
  all->is_stopping = true; // from now on work runs on the calling thread
  pthread_cond_broadcast(&all->has_work);
  for (int32_t i = 0; i < all->thread_count; ++i) {
    pthread_t thread = all->threads[i];
    unlock();
    // A kernel that calls exit runs this on one of these threads.
    if (!pthread_equal(thread, pthread_self())) {
      pthread_join(thread, NULL);
    }
    lock();
  }
  forget_threads_locked();
  while (all->all != NULL) {
    stream *s = all->all;
    all->all = s->next;
    free(s->failure);
    free(s);
  }
  all->is_stopping = is_for_good;
  unlock();
}

void aotc_rt_cpu_streams_before_fork(void) {
  lock();
}

void aotc_rt_cpu_streams_after_fork_in_parent(void) {
  unlock();
}

void aotc_rt_cpu_streams_after_fork_in_child(void) {
  forget_threads_locked();
  for (stream *s = the_streams.all; s != NULL; s = s->next) {
    s->first = NULL; // the parent's
    s->has_thread = false;
  }
  atomic_store(&the_busy_count, 0);
  pthread_cond_init(&the_streams.has_work, NULL);
  pthread_cond_init(&the_streams.has_changed, NULL);
  unlock();
}
