// Files that are written atomically: under a temporary name in the same folder, and renamed when
// complete. An interrupt removes unfinished files.
#ifndef AOTC_HARNESS_OUTPUT_H
#define AOTC_HARNESS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct harness_output {
  FILE *stream;
  char *path;      // the final path, with links resolved
  char *temporary; // NULL: written in place, as a device or a pipe is
} harness_output;

// Whether a file could be created there, without creating one; otherwise prints why on stderr.
bool harness_output_check(const char *path);

// Both print errors on stderr and return false. Only one output may be open at a time.
bool harness_output_open(harness_output *output, const char *path);
// Closes the file and renames it. If `is_written` is false, discards it and reports errno.
bool harness_output_close(harness_output *output, bool is_written);

#endif
