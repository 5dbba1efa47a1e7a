// The sizes of results, before the calls that return them.
#include <stdio.h>
#include <string.h>

#include "sizes.h"

static int failures;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("%d: %s (%s)\n", __LINE__, #condition, sizes_last_error());                           \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

int main(void) {
  int64_t joined[2] = {9, 9}, filled[1] = {9}, scalar[1] = {9};
  CHECK(join_result_shapes(3, 5, 2, 40, true, joined, filled, scalar) == AOTC_OK);
  CHECK(joined[0] == 5 && joined[1] == 4 && filled[0] == 43 && scalar[0] == 9);
  filled[0] = 9;
  CHECK(join_result_shapes(0, 5, 2, 0, true, NULL, filled, NULL) == AOTC_OK);
  CHECK(filled[0] == 0);

  // They are those of the call.
  static float x[12];
  static uint16_t y[10];
  aotc_memref_f16_2 twice;
  aotc_memref_f32_1 zeros;
  aotc_memref_f32_0 zero;
  CHECK(join(x, 3, y, 5, 2, 40, true, &twice, NULL, &zeros, &zero) == AOTC_OK);
  CHECK(twice.sizes[0] == 5 && twice.sizes[1] == 4 && zeros.sizes[0] == 43);
  CHECK(sizes_free(twice.allocated) == AOTC_OK && sizes_free(zeros.allocated) == AOTC_OK &&
        sizes_free(zero.allocated) == AOTC_OK);

  // Elements are not there to be read.
  int64_t counted[1] = {9};
  CHECK(count_result_shapes(3, counted) == AOTC_OK);
  CHECK(counted[0] == -1);

  int64_t added[1] = {9};
  CHECK(add_result_shapes(3, 3, added) == AOTC_OK && added[0] == 3);
  CHECK(add_result_shapes(3, 4, added) == AOTC_ASSERTION_FAILED && added[0] == 0);
  CHECK(strstr(sizes_last_error(), "'y' has another size in dimension 0 than 'x'") != NULL);
  CHECK(add_result_shapes(-1, -1, added) == AOTC_INVALID_ARGUMENT);
  CHECK(join_result_shapes(0, 1, 1, INT64_MAX, true, joined, filled, NULL) == AOTC_OUT_OF_MEMORY);
  CHECK(strstr(sizes_last_error(), "there is no memory for a memref<?xf32>") != NULL);
  CHECK(add_result_shapes(3, 3, added) == AOTC_OK && strcmp(sizes_last_error(), "") == 0);
  printf("failures: %d\n", failures);
  return failures != 0;
}
