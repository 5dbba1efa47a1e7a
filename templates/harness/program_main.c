// The main of an executable whose module has its own: that function is the program, and this only
// turns a failure of the device into a message and an exit code, which the module cannot see.
// It is linked alone: without the rest of the harness, and without a table.
#include <stdio.h>
#include <string.h>

#include "status.h"

// The module's main, renamed by aotc.
extern int32_t aotc_program_main(int32_t argc, char **argv);

int main(int argc, char **argv) {
  int32_t code = aotc_program_main(argc, argv);
  aotc_status status = aotc_status_get();
  if (status == AOTC_OK) {
    return code;
  }
  const char *path = argc > 0 ? argv[0] : "";
  const char *slash = strrchr(path, '/');
  const char *message = aotc_error_message();
  fflush(stdout);
  fprintf(stderr, "%s: error: %s\n", slash != NULL ? slash + 1 : path,
          message[0] != '\0' ? message : aotc_status_name(status));
  // Whether it is the cpu matters for what it cannot do; a device is chosen by then.
  aotc_device device;
  bool is_on_cpu = status == AOTC_UNSUPPORTED && aotc_device_resolve(&device) == AOTC_OK &&
                   device.kind == AOTC_DEVICE_CPU;
  return harness_exit_code(status, is_on_cpu);
}
