// AOTC_TRACE=FILE: what a process does with its devices, in Chrome's trace event format.
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "aotc_entry.h"

#define NAME_BYTES 1024
#define ARGUMENTS_BYTES 512
#define EVENT_BYTES (2 * NAME_BYTES + 2 * ARGUMENTS_BYTES)

atomic_int aotc_rt_trace_phase = AOTC_RT_TRACE_UNKNOWN;

static pthread_once_t the_start = PTHREAD_ONCE_INIT;
static int the_file = -1;

// -------------------------------------------------------------------------------------------------
// The file

// A trace is no part of what a program does, so its failure is none of the program's: this is the
// one place where the runtime prints.
static void give_up(const char *what, const char *why) {
  if (atomic_exchange(&aotc_rt_trace_phase, AOTC_RT_TRACE_OFF) != AOTC_RT_TRACE_OFF) {
    dprintf(STDERR_FILENO, "warning: AOTC_TRACE: %s: %s\n", what, why);
  }
}

// Every library has a runtime of its own, and processes inherit the variable. Whoever opens the
// file while nobody else writes it begins it anew; the lock lasts as long as the process.
static bool begin_file(int file) {
  static const char start[] = "[\n";
  bool is_begun = true;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) {
    is_begun = ftruncate(file, 0) == 0 && pwrite(file, start, sizeof(start) - 1, 0) > 0;
  }
  return is_begun && flock(file, LOCK_SH) == 0;
}

static void start(void) {
  const char *path = getenv("AOTC_TRACE");
  if (path == NULL || path[0] == '\0') {
    atomic_store(&aotc_rt_trace_phase, AOTC_RT_TRACE_OFF);
    return;
  }
  // Events of several writers stay whole: each is one write at the end of the file, where Linux
  // writes with O_APPEND whatever the offset. (An entry may be called write.)
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  struct stat status;
  if (file < 0) {
    give_up(path, strerror(errno));
  } else if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    give_up(path, "it is no regular file");
  } else if (!begin_file(file)) {
    int error = errno;
    close(file);
    give_up(path, strerror(error));
  } else {
    the_file = file;
    atomic_store(&aotc_rt_trace_phase, AOTC_RT_TRACE_ON);
  }
}

static bool is_on(void) {
  int error = errno;
  pthread_once(&the_start, start);
  errno = error;
  return atomic_load(&aotc_rt_trace_phase) == AOTC_RT_TRACE_ON;
}

static int64_t now(void) {
  struct timespec time = {0};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t aotc_rt_trace_start(void) {
  return is_on() ? now() : 0;
}

// -------------------------------------------------------------------------------------------------
// Events

// The bytes of the UTF-8 sequence at `text`; 0 if there is none.
static size_t sequence_bytes(const unsigned char *text) {
  static const unsigned char first[] = {0xc2, 0xe0, 0xf0};
  static const unsigned char last[] = {0xdf, 0xef, 0xf4};
  for (size_t more = 1; more <= 3; ++more) {
    if (text[0] >= first[more - 1] && text[0] <= last[more - 1]) {
      for (size_t i = 1; i <= more; ++i) {
        if (text[i] < 0x80 || text[i] > 0xbf) {
          return 0;
        }
      }
      // Longer than need be, halves of surrogate pairs, and what is beyond the last character.
      bool is_none = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
                     (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f);
      return is_none ? 0 : more + 1;
    }
  }
  return 0;
}

// The text as part of a JSON string, cut to NAME_BYTES.
static const char *escape(const char *text, char *out) {
  size_t used = 0;
  const unsigned char *at = (const unsigned char *)text;
  while (*at != '\0' && used < NAME_BYTES - 8) {
    size_t bytes = *at < 0x80 ? 1 : sequence_bytes(at);
    if (bytes == 0) {
      out[used++] = '?';
      bytes = 1;
    } else if (*at < 0x20 || *at == '"' || *at == '\\') {
      used += (size_t)snprintf(out + used, NAME_BYTES - used, "\\u%04x", *at);
    } else {
      memcpy(out + used, at, bytes);
      used += bytes;
    }
    at += bytes;
  }
  out[used] = '\0';
  return out;
}

// "cuda:0"
static void describe_device(const aotc_rt_context *context, char *text, size_t bytes) {
  const aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_phase phase = atomic_load_explicit(&state->phase, memory_order_acquire);
  text[0] = '\0';
  if (phase == AOTC_RT_ON_CPU) {
    aotc_rt_append(text, bytes, "cpu");
  } else if (phase == AOTC_RT_ON_GPU) {
    aotc_rt_append(text, bytes, "%s:%d", state->driver->name,
                   (int)(context != NULL ? context->description : state->device).ordinal);
  } else {
    aotc_rt_append(text, bytes, "none");
  }
}

// Writes an event that ends now. `arguments` is "" or JSON that ends with a comma.
static void end_in(const aotc_rt_context *context, int64_t begin, const char *category,
                   const char *name, const char *arguments) {
  int64_t length = now() - begin;
  if (!is_on()) {
    return; // the file could not be written any more
  }
  int error = errno;
  char device[64], event[EVENT_BYTES];
  describe_device(context, device, sizeof(device));
  event[0] = '\0';
  aotc_rt_append(event, sizeof(event),
                 "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"ts\":%lld.%03d,\"dur\":%lld.%03d,"
                 "\"pid\":%ld,\"tid\":%ld,\"args\":{%s\"device\":\"%s\"}},\n",
                 category, name, (long long)(begin / 1000), (int)(begin % 1000),
                 (long long)(length / 1000), (int)(length % 1000), (long)getpid(),
                 (long)syscall(SYS_gettid), arguments, device);
  size_t bytes = strlen(event);
  ssize_t written = pwrite(the_file, event, bytes, 0);
  if (written != (ssize_t)bytes) {
    give_up("the trace ends here", written < 0 ? strerror(errno) : "there is no room for more");
  }
  errno = error;
}

// The same of a call under way.
static void end(int64_t begin, const char *category, const char *name, const char *arguments) {
  end_in(aotc_rt_this_thread.context, begin, category, name, arguments);
}

void aotc_rt_trace_call(int64_t begin, const char *entry, const aotc_rt_context *context) {
  char name[NAME_BYTES];
  end_in(context, begin, "call", escape(entry, name), "");
}

void aotc_rt_trace_wait(int64_t begin) {
  end(begin, "wait", "wait", "");
}

void aotc_rt_trace_copy(int64_t begin, const char *name, uint64_t bytes, const char *direction) {
  char arguments[ARGUMENTS_BYTES] = "";
  aotc_rt_append(arguments, sizeof(arguments), "\"bytes\":%llu,\"direction\":\"%s\",",
                 (unsigned long long)bytes, direction);
  end(begin, "copy", name, arguments);
}

void aotc_rt_trace_launch(int64_t begin, const char *kernel, const int64_t *grid,
                          const int64_t *block) {
  char name[NAME_BYTES], arguments[NAME_BYTES + ARGUMENTS_BYTES] = "";
  escape(kernel, name);
  aotc_rt_append(arguments, sizeof(arguments),
                 "\"kernel\":\"%s\",\"grid\":[%lld,%lld,%lld],\"block\":[%lld,%lld,%lld],", name,
                 (long long)grid[0], (long long)grid[1], (long long)grid[2], (long long)block[0],
                 (long long)block[1], (long long)block[2]);
  end(begin, "launch", name, arguments);
}

int64_t aotc_trace_begin(void) {
  return aotc_rt_trace_begin();
}

void aotc_trace_end(int64_t begin, const char *entry) {
  if (begin != 0) {
    aotc_rt_trace_call(begin, entry, NULL);
  }
}

// -------------------------------------------------------------------------------------------------
// GPUs: a driver that notes what goes through it

static const aotc_rt_driver *the_driver;
static aotc_rt_driver the_traced_driver;

static const char *place_of(const void *pointer) {
  aotc_rt_place place = {.is_known = false};
  if (the_driver->memory_locate(pointer, &place).code != 0) {
    return "unknown";
  }
  return place.is_managed ? "managed" : place.is_device ? "device" : "host";
}

static aotc_rt_result copy(void *to, const void *from, size_t bytes, aotc_rt_stream stream) {
  char direction[64] = "";
  aotc_rt_append(direction, sizeof(direction), "%s to %s", place_of(from), place_of(to));
  int64_t begin = now();
  aotc_rt_result result = the_driver->memory_copy(to, from, bytes, stream);
  aotc_rt_trace_copy(begin, "copy", bytes, direction);
  return result;
}

static aotc_rt_result fill(void *to, uint32_t value, size_t element_bytes, size_t count,
                           aotc_rt_stream stream) {
  int64_t begin = now();
  aotc_rt_result result = the_driver->memory_fill(to, value, element_bytes, count, stream);
  aotc_rt_trace_copy(begin, "fill", element_bytes * count, "fill");
  return result;
}

static aotc_rt_result launch(const aotc_rt_binding *binding, const aotc_rt_launch *l,
                             aotc_rt_stream stream) {
  int64_t begin = now();
  aotc_rt_result result = the_driver->launch(binding, l, stream);
  aotc_rt_trace_launch(begin, l->kernel->name, l->grid, l->block);
  return result;
}

static aotc_rt_result wait_for_stream(aotc_rt_stream stream) {
  int64_t begin = now();
  aotc_rt_result result = the_driver->stream_synchronize(stream);
  aotc_rt_trace_wait(begin);
  return result;
}

static aotc_rt_result wait_for_event(aotc_rt_event event) {
  int64_t begin = now();
  aotc_rt_result result = the_driver->event_synchronize(event);
  aotc_rt_trace_wait(begin);
  return result;
}

const aotc_rt_driver *aotc_rt_trace_driver(const aotc_rt_driver *driver) {
  if (!is_on()) {
    return driver;
  }
  the_driver = driver;
  the_traced_driver = *driver;
  the_traced_driver.memory_copy = copy;
  the_traced_driver.memory_fill = fill;
  the_traced_driver.launch = launch;
  the_traced_driver.stream_synchronize = wait_for_stream;
  the_traced_driver.event_synchronize = wait_for_event;
  return &the_traced_driver;
}
