// Maps the runtime's status to messages and exit codes.
#ifndef AOTC_HARNESS_STATUS_H
#define AOTC_HARNESS_STATUS_H

#include "harness.h"
#include "text.h"

// The exit code for a failure of the runtime. `is_on_cpu`: the device in use is the CPU. Defined in
// the header, so that program_main.c, which is linked without the harness, gives the same codes.
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
    // Another device may support what the CPU device does not.
    return is_on_cpu ? HARNESS_NO_DEVICE : HARNESS_DEVICE_FAILED;
  default:
    return HARNESS_DEVICE_FAILED;
  }
}

// Prints the runtime's message on stderr and returns the exit code for its status.
int harness_report_status(aotc_status status, const aotc_device *device);

// Prints a note on stderr if auto selected the CPU although there are kernels.
void harness_note_cpu(const aotc_device *device, bool has_kernels);

#endif
