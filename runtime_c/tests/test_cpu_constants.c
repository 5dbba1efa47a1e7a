// Constants of generated code on the CPU device: packed once, and freed.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"

enum { ROWS = 3, COLUMNS = 20, WIDTH = AOTC_VECTOR_BYTES / sizeof(float) };

static float matrix[ROWS][COLUMNS];

static void fill(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < COLUMNS; ++j) {
      matrix[i][j] = (float)(100 * i + j + 1);
    }
  }
}

static aotc_constant constant_of_matrix(void) {
  fill();
  return (aotc_constant){.data = matrix, .bytes = sizeof(matrix)};
}

static void columns_are_in_groups(void) {
  aotc_constant constant = constant_of_matrix();
  const float(*packed)[ROWS + 1][WIDTH] = aotc_constant_get_packed(&constant, ROWS);
  CHECK(packed != NULL);
  for (int group = 0; group < 2; ++group) {
    for (int row = 0; row <= ROWS; ++row) {
      for (int i = 0; i < (int)WIDTH; ++i) {
        int column = group * (int)WIDTH + i;
        float expected = row < ROWS && column < COLUMNS ? matrix[row][column] : 0;
        CHECK(packed[group][row][i] == expected);
      }
    }
  }
  CHECK_INT(0, (uintptr_t)packed % AOTC_VECTOR_BYTES);
  CHECK(aotc_constant_get_packed(&constant, ROWS) == packed);
  CHECK(aotc_constant_get(&constant) == matrix);
  aotc_constant_release(&constant);
  aotc_constant_release(&constant); // there is nothing any more
  CHECK_NO_FAILURE();
}

static void unload_frees_what_is_packed(void) {
  aotc_constant constant = constant_of_matrix();
  CHECK(aotc_constant_get_packed(&constant, ROWS) != NULL);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK(constant.copies == NULL);
  const float *again = aotc_constant_get_packed(&constant, ROWS);
  CHECK(again != NULL && again[0] == 1);
  aotc_constant_release(&constant);
}

static void *get(void *constant) {
  return aotc_constant_get_packed(constant, ROWS);
}

static void threads_have_one_copy(void) {
  aotc_constant constant = constant_of_matrix();
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) {
    CHECK_INT(0, pthread_create(&threads[i], NULL, get, &constant));
  }
  const void *packed = get(&constant);
  for (int i = 0; i < 8; ++i) {
    void *other = NULL;
    CHECK_INT(0, pthread_join(threads[i], &other));
    CHECK(other == packed);
  }
  aotc_constant_release(&constant);
}

static void nothing_is_packed_on_a_thread_that_failed(void) {
  aotc_constant constant = constant_of_matrix();
  aotc_assertion_failed("it does not hold");
  CHECK(aotc_constant_get_packed(&constant, ROWS) == NULL);
  CHECK(constant.copies == NULL);
  aotc_error_clear();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(columns_are_in_groups),
      CHECK_TEST(unload_frees_what_is_packed),
      CHECK_TEST(threads_have_one_copy),
      CHECK_TEST(nothing_is_packed_on_a_thread_that_failed),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
