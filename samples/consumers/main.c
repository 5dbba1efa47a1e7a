// Adds two vectors with libvector_add: host memory in, host memory out.
#include <stdio.h>
#include <stdlib.h>

#include "vector_add.h"

int main(void) {
  enum { COUNT = 4096 };
  float *x = malloc(COUNT * sizeof *x);
  float *y = malloc(COUNT * sizeof *y);
  float *z = malloc(COUNT * sizeof *z);
  int result = EXIT_FAILURE;
  if (x == NULL || y == NULL || z == NULL) {
    fprintf(stderr, "no memory\n");
    goto done;
  }
  for (int i = 0; i < COUNT; ++i) {
    x[i] = (float)i;
    y[i] = 0.5f;
    z[i] = -1.0f;
  }
  // A size for each `?` of the memref, behind its pointer.
  if (vector_add(x, COUNT, y, COUNT, z, COUNT) != AOTC_OK) {
    fprintf(stderr, "%s\n", vector_add_last_error());
    goto done;
  }
  for (int i = 0; i < COUNT; ++i) {
    if (z[i] != (float)i + 0.5f) {
      fprintf(stderr, "z[%d] is %g, not %g\n", i, (double)z[i], i + 0.5);
      goto done;
    }
  }
  printf("C: %d sums are right\n", COUNT);
  result = EXIT_SUCCESS;
done:
  free(x);
  free(y);
  free(z);
  return result;
}
