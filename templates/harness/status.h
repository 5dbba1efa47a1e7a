// From the runtime's status to words and exit codes, for both mains.
#ifndef AOTC_HARNESS_STATUS_H
#define AOTC_HARNESS_STATUS_H

#include "harness.h"

// Prints the runtime's message on stderr and returns the exit code for its status. `device` is the
// one in use; NULL when that is not known.
int harness_report_status(aotc_status status, const aotc_device *device);

// When auto took the cpu although there are kernels, says so on stderr.
void harness_note_cpu(const aotc_device *device, bool has_kernels);

#endif
