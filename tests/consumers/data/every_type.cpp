// The C++ functions: what they take for a buffer, what they refuse, what they return.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_span
#include <span>
#endif
#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

#include "every_type.h"

namespace every = aotc::every_type;

namespace {

int failures = 0;

void check(bool holds, int line, const char *text) {
  if (!holds) {
    std::printf("line %d: %s; '%s'\n", line, text, every_type_last_error());
    ++failures;
  }
}
#define CHECK(condition) check(condition, __LINE__, #condition)
#define GOOD(call) check((call).ok(), __LINE__, #call)

void refused(const aotc::status &status, const char *argument, int line) {
  const std::string name = std::string("'") + argument + "'";
  const bool holds = !status && status.code() == AOTC_INVALID_ARGUMENT &&
                     std::strstr(status.message(), name.c_str()) != nullptr;
  if (!holds) {
    std::printf("line %d: status %d, '%s'\n", line, static_cast<int>(status.code()),
                status.message());
    ++failures;
  }
}
#define REFUSED(call, argument) refused(call, argument, __LINE__)

void check_containers() {
  std::vector<double> x{1, 2, 3}, y(3);
  GOOD(every::copy_f64(x, y));
  CHECK(y == x);

  const std::array<std::int16_t, 3> from{1, 2, 3};
  std::array<std::int16_t, 3> to{};
  GOOD(every::copy_i16(from, to));
  CHECK(to == from);

  const std::uint8_t bits[] = {1, 0, 1};
  std::uint8_t copies[3] = {};
  GOOD(every::copy_bool(bits, copies));
  CHECK(std::memcmp(bits, copies, sizeof(bits)) == 0);

  std::vector<aotc_c64> complex{{1, 2}, {3, 4}}, conjugate(2);
  GOOD(every::copy_c64(complex, conjugate));
  CHECK(conjugate[1].imaginary == 4);

  // A pointer and its sizes.
  std::vector<double> more(3);
  GOOD(every::copy_f64({x.data(), {3}}, {more.data(), {3}}));
  CHECK(more == x);
  GOOD(every::copy_f64_async({x.data(), {3}}, more, nullptr));

  // Nothing at all is a buffer, too.
  std::vector<double> none;
  GOOD(every::copy_f64(none, none));
#ifdef __cpp_lib_span
  std::vector<double> part(2);
  GOOD(every::copy_f64(std::span(x).last(2), std::span<double>(part)));
  CHECK(part[0] == 2 && part[1] == 3);
#endif

  // const is kept: what an entry writes cannot be const.
  using Read = aotc::buffer<const float, 1>;
  using Write = aotc::buffer<float, 1>;
  static_assert(std::is_convertible_v<const std::vector<float> &, Read>);
  static_assert(std::is_convertible_v<std::vector<float> &, Write>);
  static_assert(!std::is_convertible_v<const std::vector<float> &, Write>);
  static_assert(!std::is_convertible_v<const float *, Write>);
  static_assert(!std::is_convertible_v<std::vector<double> &, Read>);
}

void check_layouts() {
  std::vector<float> x(32), y(6);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i);
  }
  const std::vector<float> even{0, 2, 4, 6, 8, 10}, gaps{10, 14, 18, 26, 30, 34};
  // A pointer does where the type says all; elements must be as many as it says.
  GOOD(every::fixed(x.data(), y.data()));
  CHECK(y == even);
  REFUSED(every::fixed(x, y), "x");
  REFUSED(every::fixed(x.data(), std::vector<float>(5)), "y");
  REFUSED(every::fixed({x.data(), {3, 2}}, y), "x");
  REFUSED(every::fixed_async({x.data(), {3, 2}}, y, nullptr), "x");

  // Of elements with gaps there must be so many that the last is one: 5 + 8 + 2 * 2 + 1.
  y.assign(6, 0);
  GOOD(every::strided(x, y));
  CHECK(y == gaps);
  std::vector<float> enough(x.begin(), x.begin() + 18), too_few(x.begin(), x.begin() + 17);
  y.assign(6, 0);
  GOOD(every::strided(enough, y));
  CHECK(y == gaps);
  GOOD(every::strided_async(enough, y, nullptr));
  REFUSED(every::strided(too_few, y), "x");

  // Sizes that nothing says, or that do not come out even, or cannot be.
  y.assign(6, 0);
  GOOD(every::any_strides({x.data(), {2, 3}}, y));
  CHECK(y == even);
  REFUSED(every::any_strides(x, y), "x");
  REFUSED(every::any_strides({x.data(), {2, 3}}, y.data()), "y");
  std::vector<float> uneven(7);
  REFUSED(every::any_strides({x.data(), {2, 3}}, uneven), "y");
  REFUSED(every::any_strides({x.data(), {-2, 3}}, y), "x");
  REFUSED(every::any_strides({x.data(), {INT64_MAX, INT64_MAX}}, y), "x");
  REFUSED(every::any_strides_async({x.data(), {INT64_MAX, INT64_MAX}}, y, nullptr), "x");
  REFUSED(every::copy_f32({nullptr, {4}}, x), "x");

#ifdef __cpp_lib_mdspan
  y.assign(6, 0);
  const std::mdspan<const float, std::dextents<int, 2>> rows(x.data(), 2, 3);
  const std::mdspan<float, std::extents<int, 2, 3>> out(y.data());
  GOOD(every::fixed(rows, out));
  CHECK(y == even);
  y.assign(6, 0);
  GOOD(every::fixed_async(rows, out, nullptr));
  CHECK(y == even);
  const std::mdspan<const float, std::dextents<int, 2>, std::layout_left> columns(x.data(), 2, 3);
  const std::vector<float> by_columns{0, 4, 8, 2, 6, 10};
  GOOD(every::any_strides(columns, out));
  CHECK(y == by_columns);
  REFUSED(every::fixed(columns, out), "x");
  REFUSED(every::any_strides_async(columns, out, nullptr), "x");
  const std::mdspan<float, std::dextents<int, 1>> empty(y.data(), 0);
  GOOD(every::copy_f32(empty, empty));
  GOOD(every::copy_f32_async(empty, empty, nullptr));
#endif
}

void check_results() {
  bool flag = true;
  GOOD(every::negate(true, flag));
  CHECK(!flag);
  double stored = 0, result = 0;
  GOOD(every::scalar_f64(0.5, &stored, result));
  CHECK(stored == 0.5 && result == 0.5);
  GOOD(every::nothing());

  aotc_memref_i32_1 numbers;
  GOOD(every::count(3, numbers));
  CHECK(numbers.sizes[0] == 3 && numbers.aligned[2] == 2);
  GOOD(every::free(numbers.allocated));
  CHECK(!every::count(-1, numbers) || every::free(numbers.allocated));

  // A message lasts until the next call.
  const aotc::status bad = every::copy_f32({nullptr, {4}}, nullptr);
  CHECK(!bad.ok() && std::strlen(bad.message()) > 0);
#ifdef __cpp_exceptions
  try {
    every::copy_f32({nullptr, {4}}, {nullptr, {4}}).or_throw();
    CHECK(false);
  } catch (const std::runtime_error &error) {
    CHECK(std::strstr(error.what(), "NULL") != nullptr);
  }
  every::nothing().or_throw();
#endif
}

} // namespace

int main() {
  check_containers();
  check_layouts();
  check_results();
  std::printf("failures: %d\n", failures);
  return failures != 0;
}
