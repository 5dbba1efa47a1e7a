// From the runtime's status to words and exit codes.
#ifndef AOTC_HARNESS_STATUS_H
#define AOTC_HARNESS_STATUS_H

#include "harness.h"
#include "text.h"

// The exit code that tells of a failure of the runtime. `is_on_cpu`: the cpu is the device in use.
// Here, so that program_main.c, which is linked alone, gives the same codes.
static inline int harness_exit_code(aotc_status status, bool is_on_cpu) {
  switch (status) {
  case AOTC_OK:
    return HARNESS_OK;
  case AOTC_NO_DEVICE:
  case AOTC_NO_IMAGE:
  case AOTC_NO_CPU_KERNEL:
    return HARNESS_NO_DEVICE;
  case AOTC_NO_WEIGHTS:
    return HARNESS_USAGE;
  case AOTC_UNSUPPORTED:
    // What the cpu device cannot do, another device may.
    return is_on_cpu ? HARNESS_NO_DEVICE : HARNESS_DEVICE_FAILED;
  default:
    return HARNESS_DEVICE_FAILED;
  }
}

// Prints the runtime's message on stderr and returns the exit code for its status.
int harness_report_status(aotc_status status, const aotc_device *device);

// When auto took the cpu although there are kernels, says so on stderr.
void harness_note_cpu(const aotc_device *device, bool has_kernels);

#endif
