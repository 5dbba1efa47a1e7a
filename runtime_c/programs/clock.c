// Time, and numbers derived from it.
#include <stdio.h>
#include <time.h>

#include "mlir_runner_utils.h"
#include "utility.h"

UTILITY double rtclock(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-6 * (double)(now.tv_nsec / 1000);
}

UTILITY int64_t _mlir_ciface_nanoTime(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

UTILITY void printFlops(double flops) {
  if (!aotc_is_stopped()) {
    fprintf(stderr, "%f GFLOPS\n", flops / 1e9);
  }
}
