// Two libraries over one libmlir_cuda_runtime.so, which is in the process once.
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "dot.h"
#include "vector_add.h"

static int count_runtimes(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  const char *slash = strrchr(info->dlpi_name, '/');
  *(int *)data += slash != NULL && strcmp(slash + 1, "libmlir_cuda_runtime.so") == 0;
  return 0;
}

int main(void) {
  const float x[] = {1, 2, 3, 4};
  float z[4] = {0, 0, 0, 0};
  double product = 0;
  int runtimes = 0;
  if (vector_add(x, 4, x, 4, z, 4) != AOTC_OK || z[3] != 8.0f) {
    printf("vector_add: %s\n", vector_add_last_error());
    return 1;
  }
  if (dot(x, 4, x, 4, &product) != AOTC_OK || product != 30.0) {
    printf("dot: %s\n", dot_last_error());
    return 1;
  }
  dl_iterate_phdr(count_runtimes, &runtimes);
  printf("runtimes: %d\n", runtimes);
  return 0;
}
