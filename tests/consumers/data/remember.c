// Two states of one library: each remembers its own calls.
#include <stdio.h>
#include <string.h>

#include "remember.h"

static int failures;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, remember_last_error());           \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

static int64_t count_of(const remember_state *state) {
  int64_t count = -1;
  CHECK(remember_state_read(state, "count", &count, sizeof(count)) == AOTC_OK);
  return count;
}

static void use_two(void) {
  remember_state *one = NULL, *two = NULL;
  const float x[4] = {1, 1, 1, 1};
  float before[4], sum[4];
  CHECK(remember_state_create(&one) == AOTC_OK && remember_state_create(&two) == AOTC_OK);
  for (int i = 0; i < 3; ++i) {
    CHECK(add(one, x, before) == AOTC_OK);
    CHECK(before[0] == (float)(1 + i) && before[3] == (float)(4 + i));
  }
  CHECK(count_of(one) == 10 && count_of(two) == 7);
  CHECK(remember_state_read(one, "sum", sum, sizeof(sum)) == AOTC_OK);
  CHECK(sum[0] == 4 && sum[3] == 7);
  CHECK(remember_state_copy(two, one) == AOTC_OK && count_of(two) == 10);
  CHECK(remember_state_reset(one) == AOTC_OK && count_of(one) == 7 && count_of(two) == 10);
  const int64_t count = 100;
  CHECK(remember_state_write(one, "count", &count, sizeof(count)) == AOTC_OK);
  CHECK(add(one, x, before) == AOTC_OK && count_of(one) == 101);
  CHECK(remember_state_free(one) == AOTC_OK && remember_state_free(two) == AOTC_OK);
  CHECK(remember_state_free(NULL) == AOTC_OK);
}

static void roll_back(const char *path) {
  remember_state *state = NULL;
  const float row[6] = {1, 2, 3, 4, 5, 6};
  float cache[30];
  CHECK(remember_state_create(&state) == AOTC_OK);
  for (int64_t at = 0; at < 4; ++at) {
    CHECK(put(state, row, at) == AOTC_OK);
  }
  CHECK(remember_state_save(state, path) == AOTC_OK);
  CHECK(remember_state_truncate(state, "cache", 1, 2) == AOTC_OK);
  CHECK(remember_state_read(state, "cache", cache, sizeof(cache)) == AOTC_OK);
  CHECK(cache[5] == 3 && cache[6] == 0 && cache[20] == 6 && cache[21] == 0);
  CHECK(remember_state_load(state, path) == AOTC_OK);
  CHECK(remember_state_read(state, "cache", cache, sizeof(cache)) == AOTC_OK);
  CHECK(cache[11] == 3 && cache[12] == 0 && cache[26] == 6 && cache[27] == 0);
  CHECK(remember_state_free(state) == AOTC_OK);
}

static void refuse(void) {
  const float x[6] = {0};
  float before[4];
  CHECK(add(NULL, x, before) == AOTC_INVALID_ARGUMENT);
  CHECK(strstr(remember_last_error(), "add: argument 'sum' (memref<4xf32>): there is no state"));
  CHECK(put(NULL, x, 0) == AOTC_INVALID_ARGUMENT);
  CHECK(remember_state_create(NULL) == AOTC_INVALID_ARGUMENT);
  CHECK(remember_state_load(NULL, "x") == AOTC_INVALID_ARGUMENT);
  CHECK(remember_state_reset(NULL) == AOTC_INVALID_ARGUMENT);
}

int main(int argc, char **argv) {
  use_two();
  roll_back(argc > 1 ? argv[1] : "saved.state");
  refuse();
  printf("failures: %d\n", failures);
  return failures != 0;
}
