// A driver that traces the calls it forwards to another driver.
//
// Enqueued work is timed with device events in the stream, so tracing does not wait. The times are
// queried when somebody has waited, or when many are pending, relative to an event on one of the
// trace's own streams, for which the host's time is known.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

// Enqueued work for which the times are not known yet.
typedef struct pending {
  struct pending *next;
  const aotc_rt_context *context;
  aotc_rt_stream stream;
  aotc_rt_event start, stop;
  aotc_rt_trace_span host; // when the host enqueued it
  const char *category;    // a string literal
  const char *name;        // points into `arguments`
  char arguments[];
} pending;

// A row of the trace for each stream with work.
typedef struct row {
  struct row *next;
  const aotc_rt_context *context;
  aotc_rt_stream stream;
  int64_t number;
} row;

// The trace's own stream in a context.
typedef struct clock_stream {
  struct clock_stream *next;
  const aotc_rt_context *context;
  aotc_rt_stream stream;
} clock_stream;

#define MOST_PENDING 256        // before their times are queried
#define MOST_KEPT_PENDING 65536 // with times that cannot be queried yet

// Protected by the lock, except for the driver table, which does not change.
typedef struct tracer {
  pthread_mutex_t lock;
  const aotc_rt_driver *driver; // the traced one
  aotc_rt_driver table;
  pending *first, **end;
  size_t count, asked_at; // of pending work: now, and after the last query of times
  row *rows;
  clock_stream *clocks;
} tracer;

static tracer the_tracer = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &the_tracer.first};

static void lock(void) {
  pthread_mutex_lock(&the_tracer.lock);
}

static void unlock(void) {
  pthread_mutex_unlock(&the_tracer.lock);
}

// -------------------------------------------------------------------------------------------------
// Rows

static int64_t row_of_locked(const pending *p) {
  tracer *t = &the_tracer;
  int count = 0;
  row *r = t->rows;
  while (r != NULL && (r->context != p->context || r->stream != p->stream)) {
    count += r->context == p->context ? 1 : 0;
    r = r->next;
  }
  if (r == NULL) {
    char name[96] = "";
    aotc_rt_append(name, sizeof(name), "%s:%d, stream %d", t->driver->name,
                   p->context != NULL ? (int)p->context->description.ordinal : 0, count);
    if (p->stream == NULL || p->stream == AOTC_RT_STREAM_DEFAULT) {
      aotc_rt_append(name, sizeof(name), " (default)");
    }
    int64_t number = aotc_rt_trace_add_row(name);
    r = malloc(sizeof(*r));
    if (r == NULL) {
      return number;
    }
    *r = (row){.next = t->rows, .context = p->context, .stream = p->stream, .number = number};
    t->rows = r;
  }
  return r->number;
}

// -------------------------------------------------------------------------------------------------
// Times

static void destroy_event(aotc_rt_event event) {
  if (event != NULL) {
    (void)the_tracer.driver->event_destroy(event);
  }
}

// Records an event on an idle stream, and gets the host's time of it; NULL if that fails. The
// context is current.
static aotc_rt_event make_clock_locked(const aotc_rt_context *context, int64_t *out_now) {
  tracer *t = &the_tracer;
  clock_stream *clock = t->clocks;
  while (clock != NULL && clock->context != context) {
    clock = clock->next;
  }
  if (clock == NULL) {
    aotc_rt_stream stream = NULL;
    clock = malloc(sizeof(*clock));
    if (clock == NULL || t->driver->stream_create(&stream).code != 0) {
      free(clock);
      return NULL;
    }
    *clock = (clock_stream){.next = t->clocks, .context = context, .stream = stream};
    t->clocks = clock;
  }
  aotc_rt_event event = NULL;
  if (t->driver->event_create(true, &event).code != 0) {
    return NULL;
  }
  int64_t before = aotc_rt_trace_now();
  if (t->driver->event_record(event, clock->stream).code != 0 ||
      t->driver->event_synchronize(event).code != 0) {
    destroy_event(event);
    return NULL;
  }
  *out_now = before + (aotc_rt_trace_now() - before) / 2;
  return event;
}

// Writes the event with the host's times.
static void write_by_host(const pending *p, const char *category, const char *name,
                          const char *arguments) {
  char text[AOTC_RT_TRACE_ARGUMENT_BYTES + 32] = "";
  aotc_rt_append(text, sizeof(text), "%s\"time\":\"host\",", arguments);
  aotc_rt_trace_event(p->context, category, name, text, p->host);
}

// Writes the event with the device's times, if they are available relative to `clock`; false if it
// is too early.
static bool write_locked(const pending *p, aotc_rt_event clock, int64_t now) {
  const aotc_rt_driver *driver = the_tracer.driver;
  float milliseconds = 0;
  float ago = 0;
  if (clock == NULL) {
    write_by_host(p, p->category, p->name, p->arguments);
    return true;
  }
  if (driver->event_elapsed(p->start, p->stop, &milliseconds).code != 0 ||
      driver->event_elapsed(p->start, clock, &ago).code != 0) {
    return false;
  }
  aotc_rt_trace_span span = {.begin = now - (int64_t)((double)ago * 1e6), .row = row_of_locked(p)};
  // The work starts after the host has enqueued it.
  span.begin = span.begin > p->host.begin ? span.begin : p->host.begin;
  span.end = span.begin + (int64_t)((double)milliseconds * 1e6);
  aotc_rt_trace_event(p->context, p->category, p->name, p->arguments, span);
  return true;
}

// Writes the context's completed events; if `all`, also the others, with the host's times. If
// `is_current`, releases the device's events.
static void write_pending_locked(const aotc_rt_context *context, bool is_current, bool all) {
  tracer *t = &the_tracer;
  int64_t now = 0;
  aotc_rt_event clock = is_current && t->first != NULL ? make_clock_locked(context, &now) : NULL;
  pending **link = &t->first;
  while (*link != NULL) {
    pending *p = *link;
    bool is_written = p->context == context && ((clock != NULL && write_locked(p, clock, now)) ||
                                                (all && write_locked(p, NULL, 0)));
    if (!is_written) {
      link = &p->next;
      continue;
    }
    *link = p->next;
    --t->count;
    if (is_current) {
      destroy_event(p->start);
      destroy_event(p->stop);
    }
    free(p);
  }
  t->end = link;
  t->asked_at = t->count;
  destroy_event(clock);
}

// The same for the current context of the thread.
static void write_pending(bool all) {
  const aotc_rt_context *context = aotc_rt_this_thread.context;
  lock();
  write_pending_locked(context, true, all);
  unlock();
}

// A process that exits does not wait for its work, which is written with the host's times.
__attribute__((destructor)) static void write_what_is_left(void) {
  if (the_tracer.driver != NULL && pthread_mutex_trylock(&the_tracer.lock) == 0) {
    while (the_tracer.first != NULL) {
      write_pending_locked(the_tracer.first->context, false, true);
    }
    unlock();
  }
}

// -------------------------------------------------------------------------------------------------
// Work

// Records the times of the host and of the stream; not the latter in a capture, where the event
// would become part of the graph.
static pending begin_work(const aotc_rt_context *context, aotc_rt_stream stream) {
  const aotc_rt_driver *driver = the_tracer.driver;
  pending p = {.context = context, .stream = stream};
  bool is_capturing = false;
  if (driver->stream_is_capturing(stream, &is_capturing).code == 0 && !is_capturing &&
      driver->event_create(true, &p.start).code == 0 &&
      (driver->event_create(true, &p.stop).code != 0 ||
       driver->event_record(p.start, stream).code != 0)) {
    destroy_event(p.start);
    destroy_event(p.stop);
    p.start = NULL;
    p.stop = NULL;
  }
  p.host.begin = aotc_rt_trace_now();
  return p;
}

static void end_work(const pending *work, aotc_rt_result result, const char *category,
                     const char *name, const char *arguments) {
  tracer *t = &the_tracer;
  pending here = *work;
  here.host.end = aotc_rt_trace_now();
  here.category = category;
  size_t argument_bytes = strlen(arguments) + 1;
  size_t name_bytes = strlen(name) + 1;
  bool is_timed = result.code == 0 && here.stop != NULL &&
                  t->driver->event_record(here.stop, here.stream).code == 0;
  pending *p = is_timed ? malloc(sizeof(*p) + argument_bytes + name_bytes) : NULL;
  if (p == NULL) {
    destroy_event(here.start);
    destroy_event(here.stop);
    if (result.code == 0) {
      write_by_host(&here, category, name, arguments);
    }
    return;
  }
  *p = here;
  memcpy(p->arguments, arguments, argument_bytes);
  p->name = memcpy(p->arguments + argument_bytes, name, name_bytes);
  lock();
  *t->end = p;
  t->end = &p->next;
  ++t->count;
  bool is_due = t->count >= t->asked_at + MOST_PENDING;
  bool are_too_many = t->count >= MOST_KEPT_PENDING;
  unlock();
  if (is_due) {
    write_pending(are_too_many);
  }
}

static aotc_rt_result launch(const aotc_rt_binding *binding, const aotc_rt_launch *l,
                             aotc_rt_stream stream) {
  char arguments[AOTC_RT_TRACE_ARGUMENT_BYTES];
  pending work = begin_work(binding->context, stream);
  aotc_rt_result result = the_tracer.driver->launch(binding, l, stream);
  aotc_rt_trace_describe_launch(arguments, l->kernel->name, l->grid, l->block);
  end_work(&work, result, "launch", l->kernel->name, arguments);
  return result;
}

static const char *place_of(const void *pointer) {
  aotc_rt_place place = {.is_known = false};
  if (the_tracer.driver->memory_locate(pointer, &place).code != 0) {
    return "unknown";
  }
  return place.is_managed ? "managed" : place.is_device ? "device" : "host";
}

static aotc_rt_result memory_copy(void *to, const void *from, size_t bytes, aotc_rt_stream stream) {
  char direction[64] = "";
  char arguments[AOTC_RT_TRACE_ARGUMENT_BYTES];
  aotc_rt_append(direction, sizeof(direction), "%s to %s", place_of(from), place_of(to));
  aotc_rt_trace_describe_copy(arguments, bytes, direction);
  pending work = begin_work(aotc_rt_this_thread.context, stream);
  aotc_rt_result result = the_tracer.driver->memory_copy(to, from, bytes, stream);
  end_work(&work, result, "copy", "copy", arguments);
  return result;
}

static aotc_rt_result memory_fill(void *to, uint32_t value, size_t element_bytes, size_t count,
                                  aotc_rt_stream stream) {
  char arguments[AOTC_RT_TRACE_ARGUMENT_BYTES];
  aotc_rt_trace_describe_copy(arguments, element_bytes * count, "fill");
  pending work = begin_work(aotc_rt_this_thread.context, stream);
  aotc_rt_result result = the_tracer.driver->memory_fill(to, value, element_bytes, count, stream);
  end_work(&work, result, "copy", "fill", arguments);
  return result;
}

// -------------------------------------------------------------------------------------------------
// Waits

static aotc_rt_result end_wait(aotc_rt_result result, int64_t begin) {
  aotc_rt_trace_wait(begin);
  if (result.code == 0 && aotc_rt_this_thread.context != NULL) {
    write_pending(false);
  }
  return result;
}

static aotc_rt_result stream_synchronize(aotc_rt_stream stream) {
  int64_t begin = aotc_rt_trace_now();
  return end_wait(the_tracer.driver->stream_synchronize(stream), begin);
}

static aotc_rt_result event_synchronize(aotc_rt_event event) {
  int64_t begin = aotc_rt_trace_now();
  return end_wait(the_tracer.driver->event_synchronize(event), begin);
}

static aotc_rt_result context_synchronize(void) {
  int64_t begin = aotc_rt_trace_now();
  return end_wait(the_tracer.driver->context_synchronize(), begin);
}

// The trace's objects in the context are destroyed with it.
static void context_empty(aotc_rt_context *context, bool is_current) {
  tracer *t = &the_tracer;
  lock();
  write_pending_locked(context, is_current, true);
  clock_stream **link = &t->clocks;
  while (*link != NULL) {
    clock_stream *clock = *link;
    if (clock->context != context) {
      link = &clock->next;
      continue;
    }
    if (is_current) {
      (void)t->driver->stream_destroy(clock->stream);
    }
    *link = clock->next;
    free(clock);
  }
  for (row *r = t->rows; r != NULL; r = r->next) {
    r->context = r->context == context ? NULL : r->context; // the address may be reused
  }
  unlock();
  t->driver->context_empty(context, is_current);
}

const aotc_rt_driver *aotc_rt_trace_driver(const aotc_rt_driver *driver) {
  tracer *t = &the_tracer;
  if (!aotc_rt_trace_is_on()) {
    return driver;
  }
  t->driver = driver;
  t->table = *driver;
  t->table.launch = launch;
  t->table.memory_copy = memory_copy;
  t->table.memory_fill = memory_fill;
  t->table.stream_synchronize = stream_synchronize;
  t->table.event_synchronize = event_synchronize;
  t->table.context_synchronize = context_synchronize;
  t->table.context_empty = context_empty;
  return &t->table;
}
