// A runtime for the harness's tests: no GPU, the same answers every time, failures on request.
//
// FAKE_DEVICE  cpu (default); auto-cpu: the cpu, with a reason; cuda: a device whose memory traps
// when
//              it is touched outside of a call or a copy; none: nothing is usable; bad: AOTC_DEVICE
//              is malformed.
// FAKE_FAIL    FUNCTION:N:STATUS makes the N-th call (from 1) of a function fail with that status.
// FAKE_LOG     a file that each call is written to, a line each.
// FAKE_MILLISECONDS  how long a call takes, on the device's clock.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_runtime.h"

#include "aotc_entry.h"

#define MOST_ALLOCATIONS 256
#define DEVICE_ALIGNMENT 256

typedef struct allocation {
  aotc_memory_kind kind;
  char *pointer;
  uint64_t bytes;
  char *pages; // device memory: what was mapped, with a page that traps at its end
  size_t page_bytes;
} allocation;

struct aotc_timer {
  int starts;
};

static aotc_status first_status = AOTC_OK;
static char first_message[256];
static const char *requested = NULL;
static allocation allocations[MOST_ALLOCATIONS];
static int open_streams, open_timers, stops;
static char stream_object;

// --- failures and the log ---

static aotc_status fail(aotc_status status, const char *message) {
  if (first_status == AOTC_OK) {
    first_status = status;
    snprintf(first_message, sizeof(first_message), "%s", message);
  }
  return status;
}

void fake_runtime_fail(aotc_status status, const char *message) {
  fail(status, message);
}

static void write_log(const char *line) {
  const char *path = getenv("FAKE_LOG");
  FILE *stream = path != NULL ? fopen(path, "a") : NULL;
  if (stream != NULL) {
    fprintf(stream, "%s\n", line);
    fclose(stream);
  }
}

// Notes a call; the status that it was asked to fail with, or AOTC_OK.
static aotc_status enter(const char *function, int *calls) {
  ++*calls;
  write_log(function);
  const char *request = getenv("FAKE_FAIL");
  size_t length = strlen(function);
  int number, status;
  if (request == NULL || strncmp(request, function, length) != 0 ||
      sscanf(request + length, ":%d:%d", &number, &status) != 2 || number != *calls) {
    return AOTC_OK;
  }
  char message[128];
  snprintf(message, sizeof(message), "%s was asked to fail", function);
  return fail((aotc_status)status, message);
}

#define ENTER()                                                                                    \
  static int calls;                                                                                \
  aotc_status asked = enter(__func__, &calls);                                                     \
  if (asked != AOTC_OK) {                                                                          \
    return asked;                                                                                  \
  }

static bool device_is(const char *name) {
  const char *device = getenv("FAKE_DEVICE");
  return strcmp(device != NULL ? device : "cpu", name) == 0;
}

aotc_status aotc_status_get(void) {
  return first_status;
}

const char *aotc_error_message(void) {
  return first_message;
}

void aotc_error_clear(void) {
  write_log(__func__);
  first_status = AOTC_OK;
  first_message[0] = '\0';
}

const char *aotc_status_name(aotc_status status) {
  return status == AOTC_OK ? "AOTC_OK" : "AOTC_FAILED";
}

// --- devices ---

static aotc_device cpu_device(const char *reason) {
  aotc_device device = {.kind = AOTC_DEVICE_CPU, .multiprocessors = 2};
  device.memory_bytes = UINT64_C(8) << 30;
  strcpy(device.name, "cpu");
  strcpy(device.reason, reason);
  return device;
}

static aotc_device cuda_device(void) {
  aotc_device device = {.kind = AOTC_DEVICE_CUDA, .ordinal = 1, .multiprocessors = 132};
  device.capability_major = 9;
  device.memory_bytes = UINT64_C(140) << 30;
  strcpy(device.name, "Fake GPU");
  return device;
}

#define REASON "no NVIDIA driver: libcuda.so.1 is not there"

aotc_status aotc_device_request(const char *spec) {
  ENTER();
  requested = spec;
  write_log(spec != NULL ? spec : "(null)");
  if (spec == NULL && device_is("bad")) {
    return fail(AOTC_INVALID_ARGUMENT, "AOTC_DEVICE=gpu is not auto, cuda, cuda:N or cpu");
  }
  return AOTC_OK;
}

bool aotc_device_is_resolved(void) {
  return !device_is("none") && !device_is("bad");
}

aotc_status aotc_device_resolve(aotc_device *out_device) {
  ENTER();
  if (device_is("none")) {
    return fail(AOTC_NO_DEVICE, "no device: " REASON ", and no kernels for the cpu");
  }
  bool wants_cpu = requested != NULL && strcmp(requested, "cpu") == 0;
  if (device_is("cuda") && !wants_cpu) {
    *out_device = cuda_device();
  } else {
    *out_device = cpu_device(device_is("auto-cpu") && !wants_cpu ? REASON : "");
  }
  return AOTC_OK;
}

aotc_status aotc_device_list(aotc_device *out_devices, int32_t capacity, int32_t *out_count) {
  ENTER();
  int32_t count = 0;
  if (device_is("cuda") && count < capacity) {
    out_devices[count++] = cuda_device();
  }
  if (count < capacity) {
    out_devices[count++] = cpu_device(device_is("cuda") ? "" : REASON);
  }
  *out_count = count;
  return AOTC_OK;
}

// --- memory ---

// Lets the process touch the device's memory, or traps it.
static void protect(bool is_open) {
  for (int i = 0; i < MOST_ALLOCATIONS; ++i) {
    const allocation *used = &allocations[i];
    if (used->pages != NULL && mprotect(used->pages, used->page_bytes,
                                        is_open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
      abort();
    }
  }
}

aotc_status aotc_memory_allocate(aotc_memory_kind kind, uint64_t bytes, void **out_pointer) {
  ENTER();
  allocation *used = allocations;
  while (used->pointer != NULL) {
    ++used;
  }
  *used = (allocation){.kind = kind, .bytes = bytes};
  if (kind == AOTC_MEMORY_DEVICE && device_is("cuda")) {
    // The buffer ends just before a page that always traps.
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (bytes + DEVICE_ALIGNMENT) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    used->page_bytes = (room + page - 1) / page * page;
    used->pages =
        mmap(NULL, used->page_bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (used->pages == MAP_FAILED) {
      *used = (allocation){0};
      return fail(AOTC_OUT_OF_MEMORY, "mmap failed");
    }
    used->pointer = used->pages + used->page_bytes - room;
  } else {
    used->pointer = malloc(bytes + 1);
    if (used->pointer == NULL) {
      return fail(AOTC_OUT_OF_MEMORY, "malloc failed");
    }
  }
  *out_pointer = used->pointer;
  char line[64];
  snprintf(line, sizeof(line), "allocate kind %d bytes %llu", (int)kind, (unsigned long long)bytes);
  write_log(line);
  return AOTC_OK;
}

aotc_status aotc_memory_free(aotc_memory_kind kind, void *pointer) {
  static int calls;
  aotc_status asked = enter(__func__, &calls); // it is freed all the same
  if (pointer == NULL) {
    return asked;
  }
  for (int i = 0; i < MOST_ALLOCATIONS; ++i) {
    allocation *used = &allocations[i];
    if (used->pointer == pointer && used->kind == kind) {
      if (used->pages != NULL) {
        munmap(used->pages, used->page_bytes + (size_t)sysconf(_SC_PAGESIZE));
      } else {
        free(used->pointer);
      }
      *used = (allocation){0};
      return asked;
    }
  }
  return fail(AOTC_INVALID_ARGUMENT, "this was not allocated here");
}

aotc_status aotc_memory_copy(void *to, const void *from, uint64_t bytes) {
  ENTER();
  protect(true);
  if (bytes > 0) {
    memcpy(to, from, bytes);
  }
  protect(false);
  return AOTC_OK;
}

// --- streams and time ---

aotc_status aotc_stream_adopt(void *stream, bool synchronize) {
  ENTER();
  if (stream != (device_is("cuda") ? &stream_object : NULL)) {
    return fail(AOTC_INVALID_ARGUMENT, "not the stream that was opened");
  }
  write_log(synchronize ? "synchronizing" : "not synchronizing");
  protect(true);
  return AOTC_OK;
}

void aotc_stream_release(void) {
  write_log(__func__);
  protect(false);
}

aotc_status aotc_stream_open(void **out_stream) {
  ENTER();
  *out_stream = device_is("cuda") ? &stream_object : NULL;
  ++open_streams;
  return AOTC_OK;
}

aotc_status aotc_stream_close(void *stream) {
  static int calls;
  (void)stream;
  --open_streams;
  return enter(__func__, &calls);
}

aotc_status aotc_timer_open(aotc_timer **out_timer) {
  ENTER();
  *out_timer = calloc(1, sizeof(aotc_timer));
  ++open_timers;
  return AOTC_OK;
}

aotc_status aotc_timer_start(aotc_timer *timer, void *stream) {
  ENTER();
  (void)stream;
  ++timer->starts;
  return AOTC_OK;
}

// The N-th call takes N milliseconds, or N times FAKE_MILLISECONDS.
aotc_status aotc_timer_stop(aotc_timer *timer, void *stream, double *out_milliseconds) {
  ENTER();
  (void)stream;
  (void)timer;
  const char *milliseconds = getenv("FAKE_MILLISECONDS");
  *out_milliseconds = ++stops * (milliseconds != NULL ? atof(milliseconds) : 1);
  return AOTC_OK;
}

void aotc_timer_close(aotc_timer *timer) {
  write_log(__func__);
  --open_timers;
  free(timer);
}

// At the end nothing is left open, whatever happened.
__attribute__((destructor)) static void check_balance(void) {
  int left = 0;
  for (int i = 0; i < MOST_ALLOCATIONS; ++i) {
    left += allocations[i].pointer != NULL;
  }
  if (left != 0 || open_streams != 0 || open_timers != 0) {
    fprintf(stderr, "fake runtime: left %d allocations, %d streams, %d timers\n", left,
            open_streams, open_timers);
    _exit(99);
  }
}

aotc_call_note aotc_call_begin(const char *entry) {
  (void)entry;
  return (aotc_call_note){.begin = 0};
}

void aotc_call_end(aotc_call_note note, const char *entry) {
  (void)note;
  (void)entry;
}
