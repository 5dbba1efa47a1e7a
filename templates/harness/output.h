// Files that appear whole or not at all: written under another name in the same folder, and renamed
// when complete. An interrupt removes what is unfinished.
#ifndef AOTC_HARNESS_OUTPUT_H
#define AOTC_HARNESS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct harness_output {
  FILE *stream;
  char *path;      // where it will be; links are followed
  char *temporary; // NULL: written in place, as a device or a pipe is
} harness_output;

// Whether a file could be put there, without making one; else says on stderr why not.
bool harness_output_check(const char *path);

// Each says on stderr what went wrong and returns false. One output may be open at a time.
bool harness_output_open(harness_output *output, const char *path);
// Closes the file and gives it its name. `is_written` false discards it, and reports errno.
bool harness_output_close(harness_output *output, bool is_written);

#endif
