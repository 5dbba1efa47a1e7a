#include "pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_SECONDS 5
#define STEP_MILLISECONDS 20

static bool is_pipe(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now); // cannot fail for this clock
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Waits for a process that writes to the pipe. *out_first is the byte that was read, or EOF.
static bool await_writer(int descriptor, int *out_first) {
  double end = seconds_now() + PATIENCE_SECONDS;
  do {
    unsigned char byte;
    ssize_t count = read(descriptor, &byte, 1);
    if (count == 1) {
      *out_first = byte;
    }
    if (count != 0) {
      // Without data the writer may be slow; another failure recurs when the file is read.
      return true;
    }
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    if (poll(&polled, 1, STEP_MILLISECONDS) > 0 && (polled.revents & POLLIN) == 0) {
      return true; // a writer has closed its end without writing
    }
  } while (seconds_now() < end);
  return false;
}

// A blocking stream of a descriptor; NULL and errno on failure, and the descriptor is closed.
static FILE *stream_of(int descriptor, const char *mode) {
  int flags = fcntl(descriptor, F_GETFL);
  bool is_good = flags >= 0 && fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) == 0;
  FILE *stream = is_good ? fdopen(descriptor, mode) : NULL;
  if (stream == NULL) {
    int problem = errno;
    close(descriptor);
    errno = problem;
  }
  return stream;
}

static FILE *fail(const char *problem, char out_problem[HARNESS_PROBLEM_TEXT]) {
  snprintf(out_problem, HARNESS_PROBLEM_TEXT, "%s", problem);
  return NULL;
}

FILE *harness_open_to_read(const char *path, char out_problem[HARNESS_PROBLEM_TEXT]) {
  int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    return fail(strerror(errno), out_problem);
  }
  int first = EOF;
  if (is_pipe(descriptor) && !await_writer(descriptor, &first)) {
    close(descriptor);
    return fail("it is a pipe that no process writes to", out_problem);
  }
  FILE *stream = stream_of(descriptor, "rb");
  if (stream == NULL) {
    return fail(strerror(errno), out_problem);
  }
  if (first != EOF) {
    ungetc(first, stream);
  }
  return stream;
}

FILE *harness_open_to_write(const char *path, char out_problem[HARNESS_PROBLEM_TEXT]) {
  double end = seconds_now() + PATIENCE_SECONDS;
  int descriptor;
  // Opening a pipe without a reader fails with ENXIO.
  while ((descriptor = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO &&
         seconds_now() < end) {
    poll(NULL, 0, STEP_MILLISECONDS);
  }
  if (descriptor < 0) {
    return fail(errno == ENXIO ? "it is a pipe that no process reads from" : strerror(errno),
                out_problem);
  }
  FILE *stream = stream_of(descriptor, "wb");
  return stream != NULL ? stream : fail(strerror(errno), out_problem);
}

void harness_claim_standard_streams(void) {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
      // The new descriptor gets the lowest free number. Writing to it fails, as it did before.
      int claimed = open("/dev/null", O_RDONLY);
      (void)claimed;
    }
  }
}
