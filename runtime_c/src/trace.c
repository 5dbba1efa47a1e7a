// AOTC_TRACE=FILE: writes a process's device activity in Chrome's trace event format.
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

#define NAME_BYTES 1024
#define EVENT_BYTES (NAME_BYTES + AOTC_RT_TRACE_ARGUMENT_BYTES + 512)

atomic_int aotc_rt_trace_phase = AOTC_RT_TRACE_UNKNOWN;

static pthread_once_t the_start = PTHREAD_ONCE_INIT;
static int the_file = -1;

// -------------------------------------------------------------------------------------------------
// The file

// Tracing is not part of the program's function, so a failure is not recorded as the program's.
// This is the only place where the runtime prints.
static void give_up(const char *what, const char *why) {
  if (atomic_exchange(&aotc_rt_trace_phase, AOTC_RT_TRACE_OFF) != AOTC_RT_TRACE_OFF) {
    dprintf(STDERR_FILENO, "warning: AOTC_TRACE: %s: %s\n", what, why);
  }
}

// Every library has its own runtime, and child processes inherit the variable. The first writer to
// open the file while no other has it truncates it; the lock is held until the process ends.
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
  // Events of several writers do not mix: each is a single write at the end of the file, where
  // Linux writes with O_APPEND. (An entry may be called write.)
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

bool aotc_rt_trace_is_on(void) {
  int error = errno;
  pthread_once(&the_start, start);
  errno = error;
  return atomic_load(&aotc_rt_trace_phase) == AOTC_RT_TRACE_ON;
}

int64_t aotc_rt_trace_now(void) {
  struct timespec time = {0};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t aotc_rt_trace_start(void) {
  return aotc_rt_trace_is_on() ? aotc_rt_trace_now() : 0;
}

// -------------------------------------------------------------------------------------------------
// Events

// The length of the UTF-8 sequence at `text`; 0 if it is invalid.
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
      // Overlong encodings, surrogate halves, and code points that are too large.
      bool is_none = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
                     (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f);
      return is_none ? 0 : more + 1;
    }
  }
  return 0;
}

// Escapes the text for a JSON string, truncated to NAME_BYTES.
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

// Writes a line in a single write.
static void write_line(const char *line) {
  int error = errno;
  size_t bytes = strlen(line);
  ssize_t written = pwrite(the_file, line, bytes, 0);
  if (written != (ssize_t)bytes) {
    give_up("the trace ends here", written < 0 ? strerror(errno) : "there is no room for more");
  }
  errno = error;
}

void aotc_rt_trace_event(const aotc_rt_context *context, const char *category, const char *name,
                         const char *arguments, aotc_rt_trace_span span) {
  if (!aotc_rt_trace_is_on()) {
    return; // writing to the file has failed
  }
  char device[64], escaped[NAME_BYTES], event[EVENT_BYTES];
  int64_t length = span.end > span.begin ? span.end - span.begin : 0;
  describe_device(context, device, sizeof(device));
  event[0] = '\0';
  aotc_rt_append(
      event, sizeof(event),
      "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"ts\":%lld.%03d,\"dur\":%lld.%03d,"
      "\"pid\":%ld,\"tid\":%lld,\"args\":{%s\"device\":\"%s\"}},\n",
      category, escape(name, escaped), (long long)(span.begin / 1000), (int)(span.begin % 1000),
      (long long)(length / 1000), (int)(length % 1000), (long)getpid(),
      span.row != 0 ? (long long)span.row : (long long)syscall(SYS_gettid), arguments, device);
  write_line(event);
}

int64_t aotc_rt_trace_add_row(const char *name) {
  // Each runtime in a process has its own addresses; threads have small numbers.
  static atomic_int count;
  int64_t row = ((int64_t)((uintptr_t)&count >> 4 & 0xffffffffu) << 16) + ((int64_t)1 << 48) +
                atomic_fetch_add(&count, 1);
  char escaped[NAME_BYTES], event[EVENT_BYTES] = "";
  aotc_rt_append(event, sizeof(event),
                 "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%ld,\"tid\":%lld,"
                 "\"args\":{\"name\":\"%s\"}},\n",
                 (long)getpid(), (long long)row, escape(name, escaped));
  if (aotc_rt_trace_is_on()) {
    write_line(event);
  }
  return row;
}

// Writes an event of this call that ends now.
static void end(int64_t begin, const char *category, const char *name, const char *arguments) {
  const aotc_rt_trace_span span = {.begin = begin, .end = aotc_rt_trace_now()};
  aotc_rt_trace_event(aotc_rt_this_thread.context, category, name, arguments, span);
}

void aotc_rt_trace_call(int64_t begin, const char *entry, const aotc_rt_context *context) {
  const aotc_rt_trace_span span = {.begin = begin, .end = aotc_rt_trace_now()};
  aotc_rt_trace_event(context, "call", entry, "", span);
}

void aotc_rt_trace_wait(int64_t begin) {
  end(begin, "wait", "wait", "");
}

void aotc_rt_trace_copy(int64_t begin, const char *name, uint64_t bytes, const char *direction) {
  char arguments[AOTC_RT_TRACE_ARGUMENT_BYTES];
  aotc_rt_trace_describe_copy(arguments, bytes, direction);
  end(begin, "copy", name, arguments);
}

void aotc_rt_trace_launch(int64_t begin, const char *kernel, const int64_t *grid,
                          const int64_t *block) {
  char arguments[AOTC_RT_TRACE_ARGUMENT_BYTES];
  aotc_rt_trace_describe_launch(arguments, kernel, grid, block);
  end(begin, "launch", kernel, arguments);
}

void aotc_rt_trace_describe_copy(char *text, uint64_t bytes, const char *direction) {
  text[0] = '\0';
  aotc_rt_append(text, AOTC_RT_TRACE_ARGUMENT_BYTES, "\"bytes\":%llu,\"direction\":\"%s\",",
                 (unsigned long long)bytes, direction);
}

void aotc_rt_trace_describe_launch(char *text, const char *kernel, const int64_t *grid,
                                   const int64_t *block) {
  char name[NAME_BYTES];
  text[0] = '\0';
  aotc_rt_append(text, AOTC_RT_TRACE_ARGUMENT_BYTES,
                 "\"kernel\":\"%s\",\"grid\":[%lld,%lld,%lld],\"block\":[%lld,%lld,%lld],",
                 escape(kernel, name), (long long)grid[0], (long long)grid[1], (long long)grid[2],
                 (long long)block[0], (long long)block[1], (long long)block[2]);
}
