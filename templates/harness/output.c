#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipes.h"
#include "text.h"

// The files that the signal handler removes.
static char *volatile unfinished = NULL;

static const int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ};

static void remove_unfinished(int signal_number) {
  char *path = unfinished;
  if (path != NULL) {
    unlink(path);
  }
  // SA_RESETHAND has restored the default action: the signal now ends the process.
  raise(signal_number);
}

static void catch_signals(void) {
  for (size_t i = 0; i < sizeof(fatal_signals) / sizeof(fatal_signals[0]); ++i) {
    struct sigaction action;
    // Signals that the parent ignores (nohup) stay ignored.
    if (sigaction(fatal_signals[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
      action.sa_handler = remove_unfinished;
      action.sa_flags = (int)SA_RESETHAND;
      sigemptyset(&action.sa_mask);
      sigaction(fatal_signals[i], &action, NULL);
    }
  }
}

// Resolves the path, so that the target of a link is replaced and not the link.
static char *followed(const char *path) {
  char *real = realpath(path, NULL);
  return real != NULL ? real : harness_string("%s", path);
}

// "DIR/" of a path, "./" if it has none.
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? harness_string("%.*s", (int)(slash - path + 1), path)
                       : harness_string("./");
}

static bool is_special(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

bool harness_output_check(const char *path) {
  char *real = followed(path), *folder = folder_of(real);
  struct stat status;
  const char *problem = NULL;
  if (path[0] == '\0' || path[strlen(path) - 1] == '/' ||
      (stat(real, &status) == 0 && S_ISDIR(status.st_mode))) {
    problem = strerror(EISDIR);
  } else if (is_special(real)) {
    problem = access(real, W_OK) != 0 ? strerror(errno) : NULL;
  } else if (access(folder, W_OK | X_OK) != 0) {
    problem = strerror(errno);
  }
  if (problem != NULL) {
    harness_error("cannot write '%s': %s", path, problem);
  }
  free(folder);
  free(real);
  return problem == NULL;
}

// Forgets the temporary file; first the handler's copy of its name.
static void forget_temporary(harness_output *output) {
  unfinished = NULL;
  free(output->temporary);
  output->temporary = NULL;
}

static void discard(harness_output *output) {
  if (output->temporary != NULL) {
    unlink(output->temporary);
  }
  forget_temporary(output);
  free(output->path);
  *output = (harness_output){0};
}

// Creates a new file beside `path` and sets output->temporary; -1 and errno on failure.
static int create_temporary(harness_output *output) {
  char *folder = folder_of(output->path);
  const char *name = strrchr(output->path, '/');
  name = name != NULL ? name + 1 : output->path;
  int descriptor = -1;
  // An existing file of that name was left by an earlier process with the same id.
  for (int attempt = 0; attempt < 100 && descriptor < 0; ++attempt) {
    forget_temporary(output);
    output->temporary = harness_string("%s.%.200s.%ld-%d", folder, name, (long)getpid(), attempt);
    unfinished = output->temporary; // set before it exists, so that it is always removed
    descriptor = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) {
      break;
    }
  }
  free(folder);
  if (descriptor < 0) {
    int problem = errno;
    forget_temporary(output);
    errno = problem;
  }
  return descriptor;
}

bool harness_output_open(harness_output *output, const char *path) {
  *output = (harness_output){.path = followed(path)};
  char problem[HARNESS_PROBLEM_TEXT];
  if (is_special(output->path)) {
    output->stream = harness_open_to_write(output->path, problem);
  } else {
    catch_signals();
    int descriptor = create_temporary(output);
    if (descriptor >= 0) {
      output->stream = fdopen(descriptor, "wb");
    }
    snprintf(problem, sizeof(problem), "%s", strerror(errno));
  }
  if (output->stream == NULL) {
    harness_error("cannot write '%s': %s", path, problem);
    discard(output);
    return false;
  }
  return true;
}

bool harness_output_close(harness_output *output, bool is_written) {
  int problem = is_written ? 0 : errno;
  if (fclose(output->stream) != 0 && problem == 0) {
    problem = errno;
  }
  output->stream = NULL;
  if (problem == 0 && output->temporary != NULL && rename(output->temporary, output->path) != 0) {
    problem = errno;
  }
  if (problem != 0) {
    harness_error("cannot write '%s': %s", output->path, strerror(problem));
  } else {
    forget_temporary(output); // it was renamed: there is nothing to remove
  }
  discard(output);
  return problem == 0;
}
