// Two libraries in one program: FIRST and SECOND are vector_add under two prefixes, or, with
// WITH_DOT, vector_add and dot. What fails in one is nothing to the other.
#include <stdio.h>
#include <string.h>

#ifdef WITH_DOT
#include "dot.h"
#include "vector_add.h"
#define FIRST(name) vector_add_##name
#define first_call vector_add
#define SECOND(name) dot_##name
#else
#include "one_vector_add.h"
#include "two_vector_add.h"
#define FIRST(name) one_##name
#define first_call one_vector_add
#define SECOND(name) two_##name
#endif

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("line %d: %s\n  first: '%s'\n  second: '%s'\n", __LINE__, #condition,                 \
             FIRST(last_error)(), SECOND(last_error)());                                           \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

static int first_failures, second_failures;

static void count(int32_t status, const char *message, void *data) {
  (void)message;
  *(int *)data += status != 0;
}

// What the second library computes of x and y, by a call of `size`.
static int32_t second_call(const float *x, const float *y, int64_t size, double *out_last) {
#ifdef WITH_DOT
  return dot(x, size, y, 4, out_last);
#else
  float z[4] = {0, 0, 0, 0};
  int32_t status = two_vector_add(x, size, y, 4, z, 4);
  *out_last = (double)z[3];
  return status;
#endif
}

static int is_silent(const char *message) {
  return strcmp(message, "") == 0;
}

int main(void) {
  const float x[] = {1, 2, 3, 4}, y[] = {0.5f, 0.5f, 0.5f, 0.5f};
  float z[4] = {0, 0, 0, 0};
  double last = 0;
#ifdef WITH_DOT
  const double expected = 5;
#else
  const double expected = 4.5;
#endif
  FIRST(set_error_hook)(count, &first_failures);
  SECOND(set_error_hook)(count, &second_failures);

  CHECK(first_call(x, 4, y, 4, z, 4) == AOTC_OK && z[3] == 4.5f);
  CHECK(second_call(x, y, 4, &last) == AOTC_OK && last == expected);

  CHECK(first_call(NULL, 4, y, 4, z, 4) == AOTC_INVALID_ARGUMENT);
  CHECK(strstr(FIRST(last_error)(), "'x'") != NULL);
  CHECK(is_silent(SECOND(last_error)()) && SECOND(status)() == AOTC_OK);
  CHECK(first_failures == 1 && second_failures == 0);

  CHECK(second_call(x, y, -1, &last) == AOTC_INVALID_ARGUMENT);
  CHECK(strstr(SECOND(last_error)(), "negative") != NULL);
  CHECK(strstr(FIRST(last_error)(), "negative") == NULL);
  CHECK(first_failures == 1 && second_failures == 1);

  // A good call forgets its own library's failure alone.
  CHECK(first_call(x, 4, y, 4, z, 4) == AOTC_OK && is_silent(FIRST(last_error)()));
  CHECK(!is_silent(SECOND(last_error)()));

  // What one gives back, the other still has.
  CHECK(FIRST(unload)() == AOTC_OK);
  CHECK(second_call(x, y, 4, &last) == AOTC_OK && last == expected);
  CHECK(first_call(x, 4, y, 4, z, 4) == AOTC_OK && z[0] == 1.5f);
  printf("both are right\n");
  return 0;
}
