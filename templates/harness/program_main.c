// The main of an executable whose module has its own: that function is the program, and this only
// turns a failure of the device into a message and an exit code, which the module cannot see.
#include <stdio.h>

#include "status.h"
#include "text.h"

// The module's main, renamed by aotc.
extern int32_t aotc_program_main(int32_t argc, char **argv);

int main(int argc, char **argv) {
  int32_t code = aotc_program_main(argc, argv);
  aotc_status status = aotc_status_get();
  if (status == AOTC_OK) {
    return code;
  }
  // The kernel ran, or failed to, on the device that is chosen by now; the message is kept.
  aotc_device device;
  bool has_device = status == AOTC_UNSUPPORTED && aotc_device_resolve(&device) == AOTC_OK;
  return harness_report_status(status, has_device ? &device : NULL);
}
