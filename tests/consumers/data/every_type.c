// Calls an entry for every type of argument and result; as C11, C++17 and C++20.
#include <stdio.h>
#include <string.h>

#include "every_type.h"

static int failures;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("line %d: %s; '%s'\n", __LINE__, #condition, every_type_last_error());                \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)
#define GOOD(call) CHECK((call) == AOTC_OK)

// f16, bf16 and f8 are their bits: 1.5 and -2 in each.
#define F16_A 0x3e00
#define F16_B 0xc000
#define BF16_A 0x3fc0
#define BF16_B 0xc000
#define F8E4M3FN_A 0x3c
#define F8E4M3FN_B 0xc0
#define F8E5M2_A 0x3e
#define F8E5M2_B 0xc0

static const aotc_c64 c64_a = {1.5f, -2.0f}, c64_b = {0.25f, 8.0f};
static const aotc_c128 c128_a = {1.5, -2.0}, c128_b = {0.1, 8.0};

// Three elements by a pointer, by a descriptor, asynchronously and by MLIR's own interface.
#define COPY(name, memref, type, a, b)                                                             \
  do {                                                                                             \
    type x[3] = {a, b, a}, y[3] = {b, b, b};                                                       \
    memref from = {x, x, 0, {3}, {1}}, to = {y, y, 0, {3}, {1}};                                   \
    GOOD(copy_##name(x, 3, y, 3));                                                                 \
    CHECK(memcmp(x, y, sizeof(x)) == 0);                                                           \
    memset(y, 0, sizeof(y));                                                                       \
    GOOD(copy_##name##_memref(&from, &to));                                                        \
    CHECK(memcmp(x, y, sizeof(x)) == 0);                                                           \
    memset(y, 0, sizeof(y));                                                                       \
    GOOD(copy_##name##_async(x, 3, y, 3, NULL));                                                   \
    CHECK(memcmp(x, y, sizeof(x)) == 0);                                                           \
    memset(y, 0, sizeof(y));                                                                       \
    _mlir_ciface_copy_##name(&from, &to);                                                          \
    CHECK(every_type_status() == AOTC_OK && memcmp(x, y, sizeof(x)) == 0);                         \
  } while (0)

// In by value, out by a buffer of rank 0 and as the result.
#define SCALAR(name, memref, type, element, a)                                                     \
  do {                                                                                             \
    const type in = a;                                                                             \
    type out;                                                                                      \
    element stored[1];                                                                             \
    memref to = {stored, stored, 0};                                                               \
    memset(&out, 0, sizeof(out));                                                                  \
    memset(stored, 0, sizeof(stored));                                                             \
    GOOD(scalar_##name(in, stored, &out));                                                         \
    CHECK(memcmp(&in, &out, sizeof(in)) == 0 && memcmp(&in, stored, sizeof(in)) == 0);             \
    memset(&out, 0, sizeof(out));                                                                  \
    memset(stored, 0, sizeof(stored));                                                             \
    GOOD(scalar_##name##_memref(in, &to, &out));                                                   \
    CHECK(memcmp(&in, &out, sizeof(in)) == 0 && memcmp(&in, stored, sizeof(in)) == 0);             \
  } while (0)

#define BOTH(name, memref, type, a, b)                                                             \
  COPY(name, memref##_1, type, a, b);                                                              \
  SCALAR(name, memref##_0, type, type, b)

static void check_elements(void) {
  COPY(bool, aotc_memref_bool_1, uint8_t, 1, 0);
  SCALAR(bool, aotc_memref_bool_0, bool, uint8_t, true);
  BOTH(i8, aotc_memref_i8, int8_t, -128, 7);
  BOTH(i16, aotc_memref_i16, int16_t, -300, 32767);
  BOTH(i32, aotc_memref_i32, int32_t, -70000, INT32_MAX);
  BOTH(i64, aotc_memref_i64, int64_t, INT64_C(-5000000000), INT64_MAX);
  BOTH(si8, aotc_memref_i8, int8_t, -128, 7);
  BOTH(si16, aotc_memref_i16, int16_t, -300, 32767);
  BOTH(si32, aotc_memref_i32, int32_t, -70000, INT32_MAX);
  BOTH(si64, aotc_memref_i64, int64_t, INT64_C(-5000000000), INT64_MAX);
  BOTH(ui8, aotc_memref_u8, uint8_t, 1, 255);
  BOTH(ui16, aotc_memref_u16, uint16_t, 1, 65535);
  BOTH(ui32, aotc_memref_u32, uint32_t, 1, UINT32_MAX);
  BOTH(ui64, aotc_memref_u64, uint64_t, 1, UINT64_MAX);
  BOTH(index, aotc_memref_i64, int64_t, -1, INT64_C(123456789012));
  BOTH(f16, aotc_memref_f16, uint16_t, F16_A, F16_B);
  BOTH(bf16, aotc_memref_bf16, uint16_t, BF16_A, BF16_B);
  BOTH(f32, aotc_memref_f32, float, 0.1f, -1e30f);
  BOTH(f64, aotc_memref_f64, double, 0.1, -1e300);
  BOTH(c64, aotc_memref_c64, aotc_c64, c64_a, c64_b);
  BOTH(c128, aotc_memref_c128, aotc_c128, c128_a, c128_b);
  BOTH(f8e4m3fn, aotc_memref_f8e4m3fn, uint8_t, F8E4M3FN_A, F8E4M3FN_B);
  BOTH(f8e5m2, aotc_memref_f8e5m2, uint8_t, F8E5M2_A, F8E5M2_B);
}

static void check_layouts(void) {
  float x[32], y[6];
  const float even[] = {0, 2, 4, 6, 8, 10};
  for (int i = 0; i < 32; ++i) {
    x[i] = (float)i;
  }
  GOOD(fixed(x, y));
  CHECK(memcmp(y, even, sizeof(y)) == 0);

  // The element 0, 0 is x[5], as the type says; then steps of 8 and 2.
  const float gaps[] = {10, 14, 18, 26, 30, 34};
  memset(y, 0, sizeof(y));
  GOOD(strided(x, y));
  CHECK(memcmp(y, gaps, sizeof(y)) == 0);
  memset(y, 0, sizeof(y));
  GOOD(strided_async(x, y, NULL));
  CHECK(memcmp(y, gaps, sizeof(y)) == 0);
  aotc_memref_f32_2 from = {x, x, 5, {2, 3}, {8, 2}}, to = {y, y, 0, {2, 3}, {3, 1}};
  memset(y, 0, sizeof(y));
  GOOD(strided_memref(&from, &to));
  CHECK(memcmp(y, gaps, sizeof(y)) == 0);

  // What the type leaves open is packed behind a pointer, and is as it says in a descriptor.
  memset(y, 0, sizeof(y));
  GOOD(any_strides(x, 2, 3, y, 2));
  CHECK(memcmp(y, even, sizeof(y)) == 0);
  aotc_memref_f32_2 transposed = {x, x, 1, {2, 3}, {1, 10}};
  const float columns[] = {2, 22, 42, 4, 24, 44};
  GOOD(any_strides_memref(&transposed, &to));
  CHECK(memcmp(y, columns, sizeof(y)) == 0);
}

static void check_results(void) {
  bool flag = true;
  GOOD(negate(true, &flag));
  CHECK(!flag);
  GOOD(negate(false, &flag));
  CHECK(flag && !_mlir_ciface_negate(true) && _mlir_ciface_negate(false));

  GOOD(nothing());
  GOOD(nothing_async(NULL));

  aotc_memref_i32_1 numbers;
  GOOD(count(1000, &numbers));
  CHECK(numbers.sizes[0] == 1000 && numbers.strides[0] == 1);
  CHECK(numbers.aligned[numbers.offset] == 0 && numbers.aligned[numbers.offset + 999] == 999);
  GOOD(every_type_free(numbers.allocated));
  GOOD(every_type_free(NULL));

  float b[4] = {1, 2, 3, 4};
  int32_t next = 0;
  double wide = 0;
  aotc_memref_f32_1 again;
  aotc_memref_i64_1 fresh;
  GOOD(several(41, b, &next, &wide, &again, &fresh));
  CHECK(next == 42 && wide == 41.0);
  CHECK(again.aligned == b && again.sizes[0] == 4);
  CHECK(fresh.sizes[0] == 2 && fresh.aligned[0] == 41 && fresh.aligned[1] == 41);
  GOOD(every_type_free(fresh.allocated));

  several_results all;
  aotc_memref_f32_1 of_b = {b, b, 0, {4}, {1}};
  _mlir_ciface_several(&all, -1, &of_b);
  CHECK(all.a0_result0_ == 0 && all.a1_result1_ == -1.0 && all.a2_result2_.aligned == b);
  CHECK(all.a3_result3_.aligned[1] == -1);
  GOOD(every_type_free(all.a3_result3_.allocated));

  int32_t sum[1] = {0};
  GOOD(named(1, 20, 300, sum, 1));
  CHECK(sum[0] == 321);
}

int main(void) {
  check_elements();
  check_layouts();
  check_results();
  printf("failures: %d\n", failures);
  return failures != 0;
}
