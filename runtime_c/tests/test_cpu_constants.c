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
  const float (*packed)[ROWS + 1][WIDTH] = aotc_constant_get_packed(&constant, ROWS);
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
  aotc_constant_release(&constant); // there is nothing left to release
  CHECK_NO_FAILURE();
}

static void transposes_are_in_groups(void) {
  static uint16_t halves[COLUMNS][ROWS];
  fill();
  for (int i = 0; i < COLUMNS; ++i) {
    for (int j = 0; j < ROWS; ++j) {
      halves[i][j] = (uint16_t)(100 * j + i + 1);
    }
  }
  aotc_constant constant = {.data = halves, .bytes = sizeof(halves)};
  const uint16_t (*found)[ROWS + 1][WIDTH] = aotc_constant_get_transposed(&constant, ROWS);
  CHECK(found != NULL);
  for (int group = 0; group < 2; ++group) {
    for (int row = 0; row <= ROWS; ++row) {
      for (int i = 0; i < (int)WIDTH; ++i) {
        int column = group * (int)WIDTH + i;
        int expected = row < ROWS && column < COLUMNS ? 100 * row + column + 1 : 0;
        CHECK_INT(expected, found[group][row][i]);
      }
    }
  }
  CHECK(aotc_constant_get_transposed(&constant, ROWS) == (const void *)found);
  aotc_constant_release(&constant);
  CHECK_NO_FAILURE();
}

// Groups of 4 bytes along K, of 20 columns and 12 k: of a matrix with a row for each column, of one
// with a row for each k, and of one with a row of elements of two bytes for each pair of them.
static void narrow_elements_are_in_groups(void) {
  enum { N = 20, K = 12, GROUPS = K / 4 };
  static uint8_t of_columns[N][K];
  static uint8_t of_k[K][N];
  static uint8_t of_pairs[K / 2][N][2];
  setenv("AOTC_DEVICE", "cpu", 1);
  for (int n = 0; n < N; ++n) {
    for (int k = 0; k < K; ++k) {
      of_columns[n][k] = of_k[k][n] = of_pairs[k / 2][n][k % 2] = (uint8_t)(K * n + k + 1);
    }
  }
  aotc_constant constants[] = {{.data = of_columns, .bytes = sizeof(of_columns)},
                               {.data = of_k, .bytes = sizeof(of_k)},
                               {.data = of_pairs, .bytes = sizeof(of_pairs)}};
  const void *copies[] = {aotc_constant_get_grouped_words(&constants[0], GROUPS),
                          aotc_constant_get_grouped_bytes(&constants[1], K),
                          aotc_constant_get_grouped_halves(&constants[2], K / 2)};
  for (int i = 0; i < 3; ++i) {
    if (copies[i] == constants[i].data) {
      continue; // the processor has no kernel that reads it
    }
    const uint8_t (*found)[GROUPS + 1][16][4] = copies[i];
    for (int column = 0; column < 32; ++column) {
      for (int k = 0; k < K + 4; ++k) {
        int expected = column < N && k < K ? of_columns[column][k] : 0;
        CHECK_INT(expected, found[column / 16][k / 4][column % 16][k % 4]);
      }
    }
    aotc_constant_release(&constants[i]);
  }
  CHECK_NO_FAILURE();
}

// Two filters with two channels. For a filter of ones, the transform multiplies 1, 1.5, 0.5 and 1
// for a position's two coordinates.
static void filters_are_transformed(void) {
  enum { CHANNELS = 2, PITCH = CHANNELS + WIDTH };
  static float filters[2][CHANNELS][9];
  static const float factors[4] = {1, 1.5F, 0.5F, 1};
  fill();
  for (int i = 0; i < 9; ++i) {
    filters[0][1][i] = 1;
    filters[1][0][i] = (float)i;
  }
  aotc_constant constant = {.data = filters, .bytes = sizeof(filters)};
  const float (*found)[2][PITCH] = aotc_constant_get_winograd(&constant, 2);
  CHECK(found != NULL);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) {
      CHECK(found[4 * y + x][0][0] == 0);
      CHECK(found[4 * y + x][0][1] == factors[y] * factors[x]);
      CHECK(found[4 * y + x][1][1] == 0);
    }
  }
  // The corners of G g G^T are those of g; the second position is half the sum of a line.
  CHECK(found[0][1][0] == 0 && found[3][1][0] == 2);
  CHECK(found[12][1][0] == 6 && found[15][1][0] == 8);
  CHECK(found[1][1][0] == 1.5F && found[4][1][0] == 4.5F);
  // Another form of the same constant is a separate copy.
  CHECK(aotc_constant_get_packed(&constant, 2) != (const void *)found);
  CHECK(aotc_constant_get_winograd(&constant, 2) == (const void *)found);
  aotc_constant_release(&constant);
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
      CHECK_TEST(transposes_are_in_groups),
      CHECK_TEST(narrow_elements_are_in_groups),
      CHECK_TEST(filters_are_transformed),
      CHECK_TEST(unload_frees_what_is_packed),
      CHECK_TEST(threads_have_one_copy),
      CHECK_TEST(nothing_is_packed_on_a_thread_that_failed),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
