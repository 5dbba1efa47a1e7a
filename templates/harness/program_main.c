// The main of an executable whose module has its own: that function is the program, and this only
// turns a failure of the device, and output that could not be written, into a message and an exit
// code, which the module cannot see.
// It is linked alone: without the rest of the harness, and without a table.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "status.h"

// The module's main, renamed by aotc.
extern int32_t aotc_program_main(int32_t argc, char **argv);

// Waits for tasks that nobody awaited, where the module has any: see mlir_async_runtime.h. A weak
// reference pulls nothing out of an archive.
extern void aotc_async_finish(void) __attribute__((weak));

// The same words as harness_note_cpu's, which is not linked here.
static void note_cpu(const char *name, const aotc_device *device) {
  if (device->kind == AOTC_DEVICE_CPU && device->reason[0] != '\0') {
    fprintf(stderr, "%s: note: running on the cpu: %s\n", name, device->reason);
  }
}

// Whether AOTC_DEVICE names none: the user's input, as it is the harness's.
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
  // Whether it is the cpu matters to whoever reads the times, and for what the cpu cannot do.
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
  // With a device in use, the environment was read.
  if (!is_known && is_environment_bad()) {
    return HARNESS_USAGE;
  }
  return harness_exit_code(status, is_known && device.kind == AOTC_DEVICE_CPU);
}
