// A module with its own main: returns its first argument, after failing with its second.
#include <stdlib.h>

#include "fake_runtime.h"

int32_t aotc_program_main(int32_t argc, char **argv);

int32_t aotc_program_main(int32_t argc, char **argv) {
  if (argc > 2) {
    fake_runtime_fail((aotc_status)atoi(argv[2]), "the launch of 'k' failed");
  }
  return atoi(argv[1]);
}
