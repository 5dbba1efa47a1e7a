// The sizes of results, before the calls that return them, in C++.
#include <cstdio>
#include <cstring>
#include <vector>

#include "sizes.h"

static int failures;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::printf("%d: %s (%s)\n", __LINE__, #condition, sizes_last_error());                      \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

int main() {
  std::array<int64_t, 2> joined{9, 9};
  std::array<int64_t, 1> filled{9};
  std::array<int64_t, 0> scalar{};
  const float *no_floats = nullptr;
  const uint16_t *no_halves = nullptr;
  CHECK(aotc::sizes::join_result_shapes({no_floats, {3, 4}}, {no_halves, {5, 2}}, 40, true, joined,
                                        filled, scalar)
            .ok());
  CHECK(joined[0] == 5 && joined[1] == 4 && filled[0] == 43);

  // Of a vector, the size is known.
  std::vector<float> x(6), y(6), z(7);
  CHECK(aotc::sizes::add_result_shapes(x, y, filled).ok() && filled[0] == 6);
  const aotc::status differ = aotc::sizes::add_result_shapes(x, z, filled);
  CHECK(differ.code() == AOTC_ASSERTION_FAILED && filled[0] == 0);
  CHECK(std::strstr(differ.message(), "'y' has another size in dimension 0 than 'x'") != nullptr);
  CHECK(aotc::sizes::add_result_shapes(no_floats, y, filled).code() == AOTC_INVALID_ARGUMENT);

  const int64_t *no_numbers = nullptr;
  CHECK(aotc::sizes::count_result_shapes({no_numbers, {3}}, filled).ok() && filled[0] == -1);
  std::printf("failures: %d\n", failures);
  return failures != 0;
}
