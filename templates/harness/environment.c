// The runtime ignores variables that it does not know, so a misspelled one would have no effect.
#include "environment.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define PREFIX "AOTC_"
// Longer names are not considered typing errors.
#define LONGEST_NAME 32

extern char **environ;

// The variables in docs/harness.md and docs/calling.md.
static const char *const known[] = {
    "AOTC_CHECK",          "AOTC_CPU_LEVEL", "AOTC_CPU_THREADS", "AOTC_CUSPARSE", "AOTC_DEVICE",
    "AOTC_GRAPHS",         "AOTC_MPI",       "AOTC_NVTX",        "AOTC_TRACE",    "AOTC_WEIGHTS",
    "AOTC_WEIGHTS_BUDGET",
};

static void note_variable(const char *name) {
  harness_suggestion suggestion = harness_suggest(name);
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    harness_suggest_try(&suggestion, known[i]);
  }
  const char *nearest = harness_suggest_result(&suggestion);
  if (nearest != NULL && suggestion.distance != 0) {
    harness_note("nothing reads the variable %s of the environment: did you mean %s?", name,
                 nearest);
  }
}

void harness_note_variables(void) {
  for (char **variable = environ; variable != NULL && *variable != NULL; ++variable) {
    size_t length = strcspn(*variable, "=");
    char name[LONGEST_NAME];
    if (strncmp(*variable, PREFIX, strlen(PREFIX)) == 0 && length < sizeof(name)) {
      snprintf(name, sizeof(name), "%.*s", (int)length, *variable);
      note_variable(name);
    }
  }
}
