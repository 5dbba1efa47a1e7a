// Opens files that may be pipes, with a time limit: another process may never open the other end.
#ifndef AOTC_HARNESS_PIPES_H
#define AOTC_HARNESS_PIPES_H

#include <stdio.h>

#include "text.h"

// Opens a file for reading. NULL, with errno, if that fails, or if it is a pipe that no process
// opens for writing within some seconds.
FILE *harness_open_to_read(const char *path, char out_problem[HARNESS_PROBLEM_TEXT]);

// Opens a device or a pipe for writing, with the same time limit.
FILE *harness_open_to_write(const char *path, char out_problem[HARNESS_PROBLEM_TEXT]);

// Must be called first: replaces closed standard streams, so that no opened file gets their
// descriptors. Writing to them then fails, and reading returns end of file.
void harness_claim_standard_streams(void);

#endif
