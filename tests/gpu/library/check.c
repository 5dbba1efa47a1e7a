// Says what differs, and where.
#include "check.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

bool is_on_gpu;
const char *the_argument;
const char *const kind_names[KINDS] = {"pageable", "pinned", "managed", "device", "registered"};

// Other threads may be within the library: nothing is torn down.
static _Noreturn void end(int code, const char *head, const char *format, va_list values) {
  printf("%s", head);
  vprintf(format, values);
  printf("\n");
  fflush(stdout);
  _exit(code);
}

void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  end(1, "", format, values);
}

void skip(const char *format, ...) {
  va_list values;
  va_start(values, format);
  end(77, "skipped: ", format, values);
}

void check_good(int32_t status, const char *call, const char *file, int line) {
  EXPECT(status == AOTC_OK, "%s:%d: %s: status %d: %s", file, line, call, (int)status,
         vectors_last_error());
  EXPECT(vectors_last_error()[0] == '\0', "%s:%d: %s: it went well, and left the message '%s'",
         file, line, call, vectors_last_error());
}

void check_refused(int32_t expected, const char *text, int32_t actual, const char *call, int line) {
  const char *message = vectors_last_error();
  EXPECT(actual == expected, "line %d: %s: expected status %d, got %d: %s", line, call,
         (int)expected, (int)actual, message);
  EXPECT(strstr(message, text) != NULL, "line %d: %s: expected '%s' in the message: %s", line, call,
         text, message);
}

bool has_kind(int kind) {
  return is_on_gpu || kind == PAGEABLE;
}

// -------------------------------------------------------------------------------------------------
// Buffers

void *need(void *memory) {
  EXPECT(memory != NULL, "no host memory");
  return memory;
}

static void *allocate(kind kind, size_t bytes) {
  CUdeviceptr address = 0;
  void *memory = NULL;
  switch (kind) {
  case PAGEABLE:
    memory = need(malloc(bytes));
    break;
  case PINNED:
    MUST(cu.allocate_pinned(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE));
    break;
  case REGISTERED:
    memory = need(malloc(bytes));
    MUST(cu.register_host(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE));
    break;
  case MANAGED:
    MUST(cu.allocate_managed(&address, bytes, CU_MEM_ATTACH_GLOBAL));
    memory = (void *)(uintptr_t)address;
    break;
  case DEVICE:
    MUST(cu.allocate(&address, bytes));
    memory = (void *)(uintptr_t)address;
    break;
  }
  return memory;
}

static size_t bytes_of(const buffer *b) {
  return (size_t)(b->count + 2 * GUARD) * sizeof(float);
}

buffer buffer_make(kind kind, int64_t count) {
  buffer b = {.kind = kind, .count = count};
  b.memory = allocate(kind, bytes_of(&b));
  b.data = b.memory + GUARD;
  buffer_poison(&b);
  return b;
}

void buffer_free(buffer *b) {
  switch (b->kind) {
  case REGISTERED:
    MUST(cu.unregister_host(b->memory));
    free(b->memory);
    break;
  case PAGEABLE:
    free(b->memory);
    break;
  case PINNED:
    MUST(cu.free_pinned(b->memory));
    break;
  case MANAGED:
  case DEVICE:
    MUST(cu.free((CUdeviceptr)(uintptr_t)b->memory));
    break;
  }
  *b = (buffer){.memory = NULL};
}

// Copies to or from a buffer, one side being host memory.
static void copy(const buffer *b, void *to, const void *from, size_t bytes) {
  if (b->kind == DEVICE) {
    MUST(cu.copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes));
  } else {
    memcpy(to, from, bytes);
  }
}

void buffer_read(const buffer *b, float *out_values) {
  copy(b, out_values, b->memory, bytes_of(b));
}

// Whole numbers that a float can have.
float poison_at(int64_t place) {
  return (float)(-1000000 - place % 1000000);
}

void buffer_poison(const buffer *b) {
  float *values = need(malloc(bytes_of(b)));
  for (int64_t i = 0; i < b->count + 2 * GUARD; ++i) {
    values[i] = poison_at(i);
  }
  copy(b, b->memory, values, bytes_of(b));
  free(values);
}

void buffer_put(const buffer *b, const float *values, int64_t count) {
  copy(b, b->data, values, (size_t)count * sizeof(float));
}

void buffer_compare(const float *values, const float *expected, int64_t written, int64_t count,
                    const char *what) {
  int64_t differ = 0;
  int64_t first = 0;
  for (int64_t i = count + 2 * GUARD - 1; i >= 0; --i) {
    bool is_written = i >= GUARD && i < GUARD + written;
    float wanted = is_written ? expected[i - GUARD] : poison_at(i);
    if (values[i] != wanted) {
      ++differ;
      first = i;
    }
  }
  if (differ > 0) {
    bool is_written = first >= GUARD && first < GUARD + written;
    fail("%s: %lld of %lld elements differ; the first is [%lld]: %g, expected %s%g", what,
         (long long)differ, (long long)count, (long long)(first - GUARD), (double)values[first],
         is_written ? "" : "the poison ",
         (double)(is_written ? expected[first - GUARD] : poison_at(first)));
  }
}

void buffer_expect(const buffer *b, const float *expected, int64_t count, const char *format, ...) {
  char what[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof(what), format, arguments);
  va_end(arguments);
  float *values = need(malloc(bytes_of(b)));
  buffer_read(b, values);
  buffer_compare(values, expected, count, b->count, what);
  free(values);
}

void fill_numbers(float *values, int64_t count, uint32_t seed) {
  uint32_t state = seed * 2654435761U + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    values[i] = (float)(state >> 28);
  }
}

// -------------------------------------------------------------------------------------------------
// Threads and time

typedef struct runner {
  pthread_t thread;
  int number;
  void (*body)(int number);
} runner;

static void *run(void *argument) {
  const runner *r = argument;
  r->body(r->number);
  return NULL;
}

void run_threads(int count, void (*body)(int number)) {
  runner *runners = need(calloc((size_t)count, sizeof(*runners)));
  for (int i = 0; i < count; ++i) {
    runners[i].number = i;
    runners[i].body = body;
    EXPECT(pthread_create(&runners[i].thread, NULL, run, &runners[i]) == 0, "no thread");
  }
  for (int i = 0; i < count; ++i) {
    EXPECT(pthread_join(runners[i].thread, NULL) == 0, "a thread cannot be joined");
  }
  free(runners);
}

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
