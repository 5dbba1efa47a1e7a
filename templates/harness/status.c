#include "status.h"

int harness_report_status(aotc_status status, const aotc_device *device) {
  const char *message = aotc_error_message();
  harness_error("%s", message[0] != '\0' ? message : aotc_status_name(status));
  return harness_exit_code(status, device->kind == AOTC_DEVICE_CPU);
}

void harness_note_cpu(const aotc_device *device, bool has_kernels) {
  if (device->kind == AOTC_DEVICE_CPU && device->reason[0] != '\0' && has_kernels) {
    harness_note("running on the cpu: %s", device->reason);
  }
}
