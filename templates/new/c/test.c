// Calls kernel_name, and compares its result with that of a loop in C.
#include <stdio.h>

#include "kernel_name.h"

enum { COUNT = 1000 };

int main(void) {
  float x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    x[i] = (float)i;
    y[i] = 0.5f;
  }
  // A size for each `?` of the memref, after its pointer.
  if (kernel_name(2, x, COUNT, y, COUNT) != 0) {
    fprintf(stderr, "%s\n", kernel_name_last_error());
    return 1;
  }
  for (int i = 0; i < COUNT; ++i) {
    const float expected = 2 * (float)i + 0.5f;
    if (y[i] != expected) {
      fprintf(stderr, "y[%d] is %g, expected %g\n", i, (double)y[i], (double)expected);
      return 1;
    }
  }
  printf("kernel_name: %d values are right\n", COUNT);
  return 0;
}
