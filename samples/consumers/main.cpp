// Adds two vectors with libvector_add: std::vector and std::span in, a status or an exception out.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_span
#include <span>
#endif

#include "vector_add.h"

namespace {

// How many of z's elements are not the sum of their place and `addend`.
std::size_t count_wrong(const std::vector<float> &z, float addend) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    wrong += z[i] != static_cast<float>(i) + addend;
  }
  return wrong;
}

// Elements that know how many they are: nothing else is said. What went wrong is returned.
bool add_vectors(const std::vector<float> &x, const std::vector<float> &y, std::vector<float> &z) {
  const auto status = aotc::vector_add::vector_add(x, y, z);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message());
  }
  return status.ok();
}

// A pointer and its sizes, or a part of a vector: adds the first half alone.
aotc::status add_halves(const std::vector<float> &x, const std::vector<float> &y,
                        std::vector<float> &z) {
  const std::size_t half = z.size() / 2;
#ifdef __cpp_lib_span
  return aotc::vector_add::vector_add(std::span(x).first(half), std::span(y).first(half),
                                      std::span(z).first(half));
#else
  const auto size = static_cast<std::int64_t>(half);
  return aotc::vector_add::vector_add({x.data(), {size}}, {y.data(), {size}}, {z.data(), {size}});
#endif
}

} // namespace

int main() {
  const std::size_t count = 4096;
  std::vector<float> x(count), y(count, 0.5f), z(count, -1.0f);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i);
  }
  if (!add_vectors(x, y, z)) {
    return 1;
  }
  std::size_t wrong = count_wrong(z, 0.5f);

  y.assign(count, 1.5f);
#ifdef __cpp_exceptions
  try {
    add_halves(x, y, z).or_throw();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
#else
  if (const auto status = add_halves(x, y, z); !status) {
    std::fprintf(stderr, "%s\n", status.message());
    return 1;
  }
#endif
  wrong += count_wrong({z.begin(), z.begin() + count / 2}, 1.5f);
  if (wrong != 0) {
    std::fprintf(stderr, "%zu sums are wrong\n", wrong);
    return 1;
  }
  std::printf("C++: %zu sums are right\n", count);
  return 0;
}
