// Buffers are kept by size class, so that only the first calls allocate.
#include "staging.h"

#include <stdlib.h>

#define SMALLEST_BITS 12 // 4 KiB
#define STEPS 4          // size classes per power of 2

// Protects every context's unused buffers. A lock of its own, because the state's lock is held
// while modules are loaded.
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

// The size class for this many bytes, and the size of its buffers; -1 if the size is too large.
static int class_of(uint64_t bytes, uint64_t *out_bytes) {
  uint64_t size = (uint64_t)1 << SMALLEST_BITS;
  int size_class = 0;
  for (; size < ((uint64_t)1 << 61); size *= 2) {
    for (uint64_t step = 0; step < STEPS; ++step, ++size_class) {
      *out_bytes = size + size / STEPS * step;
      if (bytes <= *out_bytes) {
        return size_class;
      }
    }
  }
  return -1;
}

_Static_assert((61 - SMALLEST_BITS) * STEPS <= AOTC_RT_STAGING_CLASSES, "every class has a list");

static void free_memory(const aotc_rt_driver *driver, const aotc_rt_staging_buffer *buffer) {
  if (buffer->kind == AOTC_MEMORY_HOST) {
    free(buffer->start);
  } else if (driver != NULL) {
    AOTC_RT_TRY_RELEASE(driver, memory_free(buffer->start, NULL),
                        "a buffer of %llu bytes to copy to", (unsigned long long)buffer->bytes);
  }
}

void aotc_rt_staging_unload(const aotc_rt_driver *driver, aotc_rt_context *context) {
  // Removed from the lists first, because freeing waits for the device.
  aotc_rt_staging_buffer *all = NULL;
  pthread_mutex_lock(&the_lock);
  for (int kind = 0; kind < 3; ++kind) {
    for (int i = 0; i < AOTC_RT_STAGING_CLASSES; ++i) {
      while (context->staging.unused[kind][i] != NULL) {
        aotc_rt_staging_buffer *buffer = context->staging.unused[kind][i];
        context->staging.unused[kind][i] = buffer->next;
        buffer->next = all;
        all = buffer;
      }
    }
  }
  pthread_mutex_unlock(&the_lock);
  while (all != NULL) {
    aotc_rt_staging_buffer *buffer = all;
    all = buffer->next;
    free_memory(driver, buffer);
    free(buffer);
  }
}

static aotc_rt_result call_driver(const aotc_rt_scope *scope, aotc_rt_staging_buffer *buffer) {
  return scope->driver->memory_allocate(scope->context, buffer->kind, (size_t)buffer->bytes, NULL,
                                        &buffer->start);
}

static bool allocate_on_gpu(aotc_rt_scope *scope, aotc_rt_staging_buffer *buffer,
                            const char *what) {
  // Another thread's capture is unaffected by this buffer.
  aotc_rt_capture_mode mode;
  if (!aotc_rt_capture_relax(scope->driver, &mode)) {
    return false;
  }
  aotc_rt_result result = call_driver(scope, buffer);
  if (result.status == AOTC_OUT_OF_MEMORY) {
    aotc_rt_staging_unload(scope->driver, scope->context);
    result = call_driver(scope, buffer);
  }
  bool is_allocated = aotc_rt_check(scope->driver, result, "%s: a buffer of %llu bytes to copy to",
                                    what, (unsigned long long)buffer->bytes);
  bool is_restored = aotc_rt_capture_restore(scope->driver, mode);
  if (is_allocated && !is_restored) {
    free_memory(scope->driver, buffer);
  }
  return is_allocated && is_restored;
}

static aotc_rt_staging_buffer *make(aotc_rt_scope *scope, aotc_rt_staging_buffer wanted,
                                    const char *what) {
  aotc_rt_staging_buffer *buffer = malloc(sizeof(*buffer));
  if (buffer == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "%s: no host memory to remember a buffer", what);
    return NULL;
  }
  *buffer = wanted;
  bool is_made = false;
  if (buffer->kind == AOTC_MEMORY_HOST) {
    buffer->start = aotc_rt_host_allocate(buffer->bytes);
    is_made = buffer->start != NULL;
  } else {
    is_made = allocate_on_gpu(scope, buffer, what);
  }
  if (!is_made) {
    free(buffer);
    return NULL;
  }
  return buffer;
}

aotc_rt_staging_buffer *aotc_rt_staging_take(aotc_rt_scope *scope, aotc_memory_kind kind,
                                             uint64_t bytes, const char *what) {
  aotc_rt_staging_buffer wanted = {.kind = kind};
  wanted.size_class = class_of(bytes, &wanted.bytes);
  if (wanted.size_class < 0) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "%s: no memory has %llu bytes", what,
                 (unsigned long long)bytes);
    return NULL;
  }
  pthread_mutex_lock(&the_lock);
  aotc_rt_staging_buffer **unused = &scope->context->staging.unused[kind][wanted.size_class];
  aotc_rt_staging_buffer *buffer = *unused;
  if (buffer != NULL) {
    *unused = buffer->next;
  }
  pthread_mutex_unlock(&the_lock);
  return buffer != NULL ? buffer : make(scope, wanted, what);
}

void aotc_rt_staging_give_back(aotc_rt_context *context, aotc_rt_staging_buffer *buffer) {
  pthread_mutex_lock(&the_lock);
  aotc_rt_staging_buffer **unused = &context->staging.unused[buffer->kind][buffer->size_class];
  buffer->next = *unused;
  *unused = buffer;
  pthread_mutex_unlock(&the_lock);
}
