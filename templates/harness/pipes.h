// Files that may be pipes: who is to open one at its other end may never come, and is not waited
// for without end.
#ifndef AOTC_HARNESS_PIPES_H
#define AOTC_HARNESS_PIPES_H

#include <stdio.h>

#include "text.h"

// Opens a file to read it. Of a pipe that no process opens to write within some seconds: NULL, as
// of what cannot be opened, with the reason.
FILE *harness_open_to_read(const char *path, char out_problem[HARNESS_PROBLEM_TEXT]);

// Opens a device or a pipe to write to it; likewise.
FILE *harness_open_to_write(const char *path, char out_problem[HARNESS_PROBLEM_TEXT]);

// To be called first: a standard stream that is closed must not be the next file that is opened.
// What is written to it then fails, and what is read ends at once.
void harness_claim_standard_streams(void);

#endif
