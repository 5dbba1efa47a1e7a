#include "status.h"

#include "text.h"

int harness_report_status(aotc_status status, const aotc_device *device) {
  const char *message = aotc_error_message();
  harness_error("%s", message[0] != '\0' ? message : aotc_status_name(status));
  switch (status) {
  case AOTC_NO_DEVICE:
  case AOTC_NO_IMAGE:
  case AOTC_NO_CPU_KERNEL:
    return HARNESS_NO_DEVICE;
  case AOTC_UNSUPPORTED: {
    // What the cpu device cannot do, another device may.
    bool is_cpu = device != NULL && device->kind == AOTC_DEVICE_CPU;
    return is_cpu ? HARNESS_NO_DEVICE : HARNESS_DEVICE_FAILED;
  }
  default:
    return HARNESS_DEVICE_FAILED;
  }
}

void harness_note_cpu(const aotc_device *device, bool has_kernels) {
  if (device->kind == AOTC_DEVICE_CPU && device->reason[0] != '\0' && has_kernels) {
    harness_note("running on the cpu: %s", device->reason);
  }
}
