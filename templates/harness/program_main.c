// The main of an executable whose module has its own main: that function is the program. This one
// only converts failures of the device, and output errors, to messages and exit codes, because
// the module does not know of them.
// It is linked without the rest of the harness, and without a table.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "status.h"

// The module's main, renamed by aotc.
extern int32_t aotc_program_main(int32_t argc, char **argv);

// Waits for tasks that were not awaited, if the module has tasks: see mlir_async_runtime.h. A weak
// reference does not pull in a member of an archive.
extern void aotc_async_finish(void) __attribute__((weak));

// The same text as in harness_note_cpu, which is not linked here.
static void note_cpu(const char *name, const aotc_device *device) {
  if (device->kind == AOTC_DEVICE_CPU && device->reason[0] != '\0') {
    fprintf(stderr, "%s: note: running on the cpu: %s\n", name, device->reason);
  }
}

// Whether AOTC_DEVICE is invalid: an error of the user's input, as in the harness.
static bool is_environment_bad(void) {
  return aotc_device_request(NULL) == AOTC_INVALID_ARGUMENT;
}

int main(int argc, char **argv) {
  const char *path = argc > 0 ? argv[0] : "";
  const char *slash = strrchr(path, '/');
  const char *name = slash != NULL ? slash + 1 : path;
  int32_t code = aotc_program_main(argc, argv);
  if (aotc_async_finish != NULL) {
    aotc_async_finish();
  }
  aotc_status status = aotc_status_get();
  const char *message = aotc_error_message();
  bool is_written = fflush(stdout) == 0 && ferror(stdout) == 0;
  int write_error = errno;
  // Whether the device is the CPU matters to users who measure times, and for unsupported
  // operations.
  aotc_device device;
  bool is_known = aotc_device_is_resolved() && aotc_device_resolve(&device) == AOTC_OK;
  if (is_known) {
    note_cpu(name, &device);
  }
  if (!is_written) {
    fprintf(stderr, "%s: error: cannot write to standard output: %s\n", name,
            strerror(write_error));
    code = code == HARNESS_OK ? HARNESS_USAGE : code;
  }
  if (status == AOTC_OK) {
    return code;
  }
  fprintf(stderr, "%s: error: %s\n", name, message[0] != '\0' ? message : aotc_status_name(status));
  // If a device was used, the environment has been read.
  if (!is_known && is_environment_bad()) {
    return HARNESS_USAGE;
  }
  return harness_exit_code(status, is_known && device.kind == AOTC_DEVICE_CPU);
}
