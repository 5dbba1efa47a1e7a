// Large copies from host memory to a device.
//
// A driver copies pageable memory with one thread, at a fraction of the bus bandwidth. Here several
// threads copy into a pinned buffer while the previous buffer is being transferred. The source is
// usually a mapped file, so its page faults are handled in parallel as well.
#include "upload.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/thread.h"

// Smaller copies are left to the driver.
#define LEAST_BYTES ((size_t)1 << 20)
#define BUFFER_BYTES ((size_t)16 << 20)
#define BUFFERS 2
#define MOST_THREADS 8
#define PAGE_BYTES 4096

typedef struct aotc_rt_uploads {
  char *buffers[BUFFERS];
  aotc_rt_event sent[BUFFERS]; // the buffer is free after it
  int next;
} uploads;

// Protects every context's buffers: one copy at a time uses all the threads, and the bus.
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

// -------------------------------------------------------------------------------------------------
// Into the buffer

typedef struct part {
  char *to;
  const char *from;
  size_t bytes;
} part;

static void *copy_part(void *argument) {
  const part *p = argument;
  memcpy(p->to, p->from, p->bytes);
  return NULL;
}

// Half of the processors; the others are left to the program.
static int thread_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN) / 2;
  return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (int)count;
}

static void copy_by_threads(char *to, const char *from, size_t bytes) {
  pthread_t threads[MOST_THREADS];
  part parts[MOST_THREADS];
  bool is_started[MOST_THREADS] = {false};
  int count = thread_count();
  size_t each = (bytes / (size_t)count + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
  for (int i = count - 1; i >= 0; --i) {
    size_t start = each * (size_t)i < bytes ? each * (size_t)i : bytes;
    size_t end = bytes - start < each ? bytes : start + each;
    parts[i] = (part){.to = to + start, .from = from + start, .bytes = end - start};
    is_started[i] = i > 0 && aotc_rt_cpu_thread_start(&threads[i], copy_part, &parts[i]);
    if (!is_started[i]) {
      copy_part(&parts[i]); // this thread copies the first part
    }
  }
  for (int i = 1; i < count; ++i) {
    if (is_started[i]) {
      pthread_join(threads[i], NULL);
    }
  }
}

// -------------------------------------------------------------------------------------------------
// From the buffer

static void free_buffers(const aotc_rt_driver *driver, uploads *u) {
  for (int i = 0; i < BUFFERS; ++i) {
    if (u->sent[i] != NULL && driver != NULL) {
      AOTC_RT_TRY_RELEASE(driver, event_destroy(u->sent[i]), "of copies");
    }
    if (u->buffers[i] != NULL && driver != NULL) {
      AOTC_RT_TRY_RELEASE(driver, memory_unregister(u->buffers[i]), "a buffer for copies");
    }
    free(u->buffers[i]);
  }
  free(u);
}

static bool make_buffer(const aotc_rt_driver *driver, uploads *u, int i) {
  void *memory = NULL;
  if (posix_memalign(&memory, PAGE_BYTES, BUFFER_BYTES) != 0) {
    return false;
  }
  if (driver->memory_register(memory, BUFFER_BYTES).code != 0) {
    free(memory);
    return false;
  }
  u->buffers[i] = memory;
  return driver->event_create(false, &u->sent[i]).code == 0;
}

// The context's buffers; NULL, with no failure recorded, if they cannot be allocated, for example
// because little memory can be pinned.
static uploads *buffers_of(const aotc_rt_driver *driver, aotc_rt_context *context) {
  if (context->uploads == NULL) {
    uploads *made = calloc(1, sizeof(*made));
    bool is_good = made != NULL;
    for (int i = 0; i < BUFFERS && is_good; ++i) {
      is_good = make_buffer(driver, made, i);
    }
    if (is_good) {
      context->uploads = made;
    } else if (made != NULL) {
      free_buffers(driver, made);
    }
  }
  return context->uploads;
}

static bool send(const aotc_rt_driver *driver, uploads *u, char *to, const char *from, size_t bytes,
                 aotc_rt_stream stream, const char *what) {
  int i = u->next;
  u->next = (i + 1) % BUFFERS;
  if (!AOTC_RT_TRY(driver, event_synchronize(u->sent[i]), "%s", what)) {
    return false;
  }
  copy_by_threads(u->buffers[i], from, bytes);
  return AOTC_RT_TRY(driver, memory_copy(to, u->buffers[i], bytes, stream), "%s", what) &&
         AOTC_RT_TRY(driver, event_record(u->sent[i], stream), "%s", what);
}

bool aotc_rt_upload(aotc_rt_scope *scope, void *to, const void *from, size_t bytes,
                    aotc_rt_stream stream, const char *what) {
  const aotc_rt_driver *driver = scope->driver;
  if (bytes < LEAST_BYTES) {
    return AOTC_RT_TRY(driver, memory_copy(to, from, bytes, stream), "%s", what);
  }
  pthread_mutex_lock(&the_lock);
  uploads *u = buffers_of(driver, scope->context);
  bool is_sent = u != NULL || AOTC_RT_TRY(driver, memory_copy(to, from, bytes, stream), "%s", what);
  for (size_t at = 0; u != NULL && at < bytes && is_sent; at += BUFFER_BYTES) {
    size_t left = bytes - at;
    is_sent = send(driver, u, (char *)to + at, (const char *)from + at,
                   left < BUFFER_BYTES ? left : BUFFER_BYTES, stream, what);
  }
  pthread_mutex_unlock(&the_lock);
  return is_sent;
}

void aotc_rt_upload_unload(const aotc_rt_driver *driver, aotc_rt_context *context) {
  uploads *all = context->uploads;
  context->uploads = NULL;
  if (all != NULL) {
    free_buffers(driver, all);
  }
}
