// Elements of memrefs: printing and comparing each type.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "memref.h"

// The relative tolerance of upstream's verification, with respect to the expected value.
#define F32_EPSILON 1e-6f
#define F64_EPSILON 1e-12

static void write_float(FILE *out, double value) {
  fprintf(out, "%g", value);
}

// -------------------------------------------------------------------------------------------------
// Small floats

float aotc_program_bf16_value(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
}

float aotc_program_f16_value(uint16_t bits) {
  uint32_t exponent = (bits >> 10) & 31u;
  uint32_t fraction = bits & 0x3ffu;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    magnitude = ldexpf((float)fraction, -24);
  } else {
    magnitude = ldexpf((float)(fraction | 0x400u), (int)exponent - 25);
  }
  return copysignf(magnitude, bits >> 15 != 0 ? -1.0f : 1.0f);
}

uint16_t aotc_program_small_float(double value, int fraction_bits, int bias) {
  uint16_t sign = signbit(value) ? 0x8000u : 0;
  uint32_t infinity = (uint32_t)(2 * bias + 1) << fraction_bits;
  double magnitude = fabs(value);
  if (isnan(magnitude)) {
    return (uint16_t)(infinity | 1u << (fraction_bits - 1));
  }
  if (magnitude == 0) {
    return sign;
  }
  int exponent = 0;
  frexp(magnitude, &exponent);
  int leading = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  if (isinf(magnitude) || leading > bias) {
    return (uint16_t)(sign | infinity);
  }
  uint32_t units = (uint32_t)nearbyint(ldexp(magnitude, fraction_bits - leading));
  return (uint16_t)(sign | (((uint32_t)(leading + bias - 1) << fraction_bits) + units));
}

// -------------------------------------------------------------------------------------------------
// Text

// As a character, like a C++ stream.
static void write_i8(FILE *out, const void *value) {
  fputc(*(const unsigned char *)value, out);
}

static void write_i16(FILE *out, const void *value) {
  fprintf(out, "%" PRId16, *(const int16_t *)value);
}

static void write_i32(FILE *out, const void *value) {
  fprintf(out, "%" PRId32, *(const int32_t *)value);
}

static void write_i64(FILE *out, const void *value) {
  fprintf(out, "%" PRId64, *(const int64_t *)value);
}

static void write_index(FILE *out, const void *value) {
  fprintf(out, "%" PRIu64, *(const uint64_t *)value);
}

static void write_f16(FILE *out, const void *value) {
  write_float(out, (double)aotc_program_f16_value(*(const uint16_t *)value));
}

static void write_bf16(FILE *out, const void *value) {
  write_float(out, (double)aotc_program_bf16_value(*(const uint16_t *)value));
}

static void write_f32(FILE *out, const void *value) {
  write_float(out, (double)*(const float *)value);
}

static void write_f64(FILE *out, const void *value) {
  write_float(out, *(const double *)value);
}

static void write_c32(FILE *out, const void *value) {
  const float *parts = value;
  fprintf(out, "(%g,%g)", (double)parts[0], (double)parts[1]);
}

static void write_c64(FILE *out, const void *value) {
  const double *parts = value;
  fprintf(out, "(%g,%g)", parts[0], parts[1]);
}

// The spacing is upstream's: two extra blanks before each row except the first and the last.
static void write_4x4xf32(FILE *out, const void *value) {
  const float *at = value;
  static const char *const openings[] = {"((", ",   (", ",   (", ",  ("};
  for (int row = 0; row < 4; ++row, at += 4) {
    fprintf(out, "%s%g, %g, %g, %g)", openings[row], (double)at[0], (double)at[1], (double)at[2],
            (double)at[3]);
  }
  fputc(')', out);
}

// -------------------------------------------------------------------------------------------------
// Comparison

static bool is_same_1(const void *actual, const void *expected) {
  return memcmp(actual, expected, 1) == 0;
}

static bool is_same_2(const void *actual, const void *expected) {
  return memcmp(actual, expected, 2) == 0;
}

static bool is_same_4(const void *actual, const void *expected) {
  return memcmp(actual, expected, 4) == 0;
}

static bool is_same_8(const void *actual, const void *expected) {
  return memcmp(actual, expected, 8) == 0;
}

static bool is_close_f32(const void *actual, const void *expected) {
  float a = *(const float *)actual;
  float e = *(const float *)expected;
  return isfinite(a) && isfinite(e) && fabsf(a - e) <= F32_EPSILON * fabsf(e);
}

static bool is_close_f64(const void *actual, const void *expected) {
  double a = *(const double *)actual;
  double e = *(const double *)expected;
  return isfinite(a) && isfinite(e) && fabs(a - e) <= F64_EPSILON * fabs(e);
}

static bool is_equal_c32(const void *actual, const void *expected) {
  const float *a = actual;
  const float *e = expected;
  return a[0] == e[0] && a[1] == e[1];
}

static bool is_equal_c64(const void *actual, const void *expected) {
  const double *a = actual;
  const double *e = expected;
  return a[0] == e[0] && a[1] == e[1];
}

// -------------------------------------------------------------------------------------------------
// The types

const aotc_program_element aotc_program_i8 = {1, write_i8, is_same_1};
const aotc_program_element aotc_program_i16 = {2, write_i16, is_same_2};
const aotc_program_element aotc_program_i32 = {4, write_i32, is_same_4};
const aotc_program_element aotc_program_i64 = {8, write_i64, is_same_8};
const aotc_program_element aotc_program_index = {8, write_index, is_same_8};
const aotc_program_element aotc_program_f16 = {2, write_f16, is_same_2};
const aotc_program_element aotc_program_bf16 = {2, write_bf16, is_same_2};
const aotc_program_element aotc_program_f32 = {4, write_f32, is_close_f32};
const aotc_program_element aotc_program_f64 = {8, write_f64, is_close_f64};
const aotc_program_element aotc_program_c32 = {8, write_c32, is_equal_c32};
const aotc_program_element aotc_program_c64 = {16, write_c64, is_equal_c64};
const aotc_program_element aotc_program_4x4xf32 = {64, write_4x4xf32, NULL};
