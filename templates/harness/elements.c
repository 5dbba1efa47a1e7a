#include "elements.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the harness writes .npy files and checksums from little-endian memory"
#endif

// clang-format off
static const harness_dtype_facts facts[] = {
    [AOTC_DTYPE_BOOL] = {"bool",       "b1",  1,  HARNESS_KIND_BOOL,     AOTC_DTYPE_BOOL, 0},
    [AOTC_DTYPE_I8]   = {"int8",       "i1",  1,  HARNESS_KIND_SIGNED,   AOTC_DTYPE_I8,   0},
    [AOTC_DTYPE_I16]  = {"int16",      "i2",  2,  HARNESS_KIND_SIGNED,   AOTC_DTYPE_I16,  0},
    [AOTC_DTYPE_I32]  = {"int32",      "i4",  4,  HARNESS_KIND_SIGNED,   AOTC_DTYPE_I32,  0},
    [AOTC_DTYPE_I64]  = {"int64",      "i8",  8,  HARNESS_KIND_SIGNED,   AOTC_DTYPE_I64,  0},
    [AOTC_DTYPE_U8]   = {"uint8",      "u1",  1,  HARNESS_KIND_UNSIGNED, AOTC_DTYPE_U8,   0},
    [AOTC_DTYPE_U16]  = {"uint16",     "u2",  2,  HARNESS_KIND_UNSIGNED, AOTC_DTYPE_U16,  0},
    [AOTC_DTYPE_U32]  = {"uint32",     "u4",  4,  HARNESS_KIND_UNSIGNED, AOTC_DTYPE_U32,  0},
    [AOTC_DTYPE_U64]  = {"uint64",     "u8",  8,  HARNESS_KIND_UNSIGNED, AOTC_DTYPE_U64,  0},
    [AOTC_DTYPE_F16]  = {"float16",    "f2",  2,  HARNESS_KIND_REAL,     AOTC_DTYPE_F16,  5},
    [AOTC_DTYPE_BF16] = {"bfloat16",   "V2",  2,  HARNESS_KIND_REAL,     AOTC_DTYPE_BF16, 4},
    [AOTC_DTYPE_F32]  = {"float32",    "f4",  4,  HARNESS_KIND_REAL,     AOTC_DTYPE_F32,  9},
    [AOTC_DTYPE_F64]  = {"float64",    "f8",  8,  HARNESS_KIND_REAL,     AOTC_DTYPE_F64,  17},
    [AOTC_DTYPE_C64]  = {"complex64",  "c8",  8,  HARNESS_KIND_COMPLEX,  AOTC_DTYPE_F32,  9},
    [AOTC_DTYPE_C128] = {"complex128", "c16", 16, HARNESS_KIND_COMPLEX,  AOTC_DTYPE_F64,  17},
    [AOTC_DTYPE_F8E4M3FN] =
        {"float8_e4m3fn", "V1", 1, HARNESS_KIND_REAL, AOTC_DTYPE_F8E4M3FN, 3},
    [AOTC_DTYPE_F8E5M2] = {"float8_e5m2", "f1", 1, HARNESS_KIND_REAL, AOTC_DTYPE_F8E5M2, 2},
};
// clang-format on

const harness_dtype_facts *harness_facts(aotc_dtype dtype) {
  return &facts[dtype];
}

int64_t harness_integer_low(aotc_dtype dtype) {
  if (facts[dtype].kind != HARNESS_KIND_SIGNED) {
    return 0;
  }
  return INT64_MIN >> (64 - 8 * facts[dtype].bytes);
}

uint64_t harness_integer_high(aotc_dtype dtype) {
  switch (facts[dtype].kind) {
  case HARNESS_KIND_BOOL:
    return 1;
  case HARNESS_KIND_SIGNED:
    return (uint64_t)INT64_MAX >> (64 - 8 * facts[dtype].bytes);
  default:
    return UINT64_MAX >> (64 - 8 * facts[dtype].bytes);
  }
}

// The formats of 8 and 16 bits differ in how many bits their exponent and their fraction have.
typedef struct narrow_format {
  int exponent_bits, fraction_bits;
} narrow_format;
static const narrow_format binary16 = {5, 10};
static const narrow_format bfloat16 = {8, 7};
static const narrow_format float8_e5m2 = {5, 2}; // its sign at bit 15, as the others have it
// f8E4M3FN has no infinity: all but the highest of these bits are one binade more of numbers.
static const narrow_format float8_e4m3 = {4, 3};
#define F8E4M3FN_NAN 0x7f
#define F8E4M3FN_LARGEST 448.0

static uint16_t narrow(narrow_format format, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  uint16_t sign = (uint16_t)((bits >> 63) << 15);
  uint64_t infinity = ((UINT64_C(1) << format.exponent_bits) - 1) << format.fraction_bits;
  if (isnan(value)) {
    uint64_t quiet = UINT64_C(1) << (format.fraction_bits - 1);
    return (uint16_t)(sign | infinity | quiet);
  }
  if (isinf(value)) {
    return (uint16_t)(sign | infinity);
  }
  // A double's own subnormals are far below half of the least narrow value, so that
  // taking them for normal numbers changes nothing: they become zero either way.
  int exponent = (int)((bits >> 52) & 0x7ff) - 1023 + (1 << (format.exponent_bits - 1)) - 1;
  uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1) << 52);
  int shift = 52 - format.fraction_bits;
  uint64_t base = 0;
  if (exponent < 1) {
    shift += 1 - exponent; // subnormal: the significand's leading 1 is written, not implied
  } else {
    base = (uint64_t)(exponent - 1) << format.fraction_bits;
  }
  if (shift > 53) {
    return sign;
  }
  uint64_t kept = significand >> shift;
  uint64_t rest = significand & ((UINT64_C(1) << shift) - 1);
  uint64_t half = UINT64_C(1) << (shift - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) {
    ++kept;
  }
  // The implied leading 1, or a carry out of the fraction, moves into the exponent by itself.
  uint64_t result = base + kept;
  return (uint16_t)(sign | (result > infinity ? infinity : result));
}

static double widen(narrow_format format, uint16_t bits) {
  int fraction_bits = format.fraction_bits;
  uint64_t all_ones = (UINT64_C(1) << format.exponent_bits) - 1;
  uint64_t exponent = (bits >> fraction_bits) & all_ones;
  uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1);
  uint64_t bias = all_ones >> 1;
  double magnitude;
  if (exponent == 0) {
    magnitude = ldexp((double)fraction, 1 - (int)bias - fraction_bits);
  } else {
    uint64_t wide = exponent == all_ones ? 0x7ff : exponent - bias + 1023;
    wide = wide << 52 | fraction << (52 - fraction_bits);
    memcpy(&magnitude, &wide, sizeof(magnitude));
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Too large numbers become NaN, as everywhere.
static uint8_t narrow_f8e4m3fn(double value) {
  int sign = signbit(value) ? 0x80 : 0;
  double magnitude = fabs(value);
  if (isnan(value) || magnitude > F8E4M3FN_LARGEST + 16.0) { // half of the last place
    return (uint8_t)(sign | F8E4M3FN_NAN);
  }
  if (magnitude >= 240.0) { // of the highest binade, whose exponent is infinity's elsewhere
    // Half of it has the same fraction, and the exponent before.
    int half = narrow(float8_e4m3, magnitude / 2) & 0x7f;
    return (uint8_t)(sign | (half + 8));
  }
  return (uint8_t)(sign | (narrow(float8_e4m3, magnitude) & 0x7f));
}

static double widen_f8e4m3fn(uint8_t bits) {
  uint8_t magnitude = bits & 0x7f;
  double value = (double)NAN;
  if (magnitude >= 0x78 && magnitude < F8E4M3FN_NAN) {
    value = 2 * widen(float8_e4m3, (uint16_t)(magnitude - 8));
  } else if (magnitude < 0x78) {
    value = widen(float8_e4m3, magnitude);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

// One loop for each type, so that the choice is not made for each element.
#define LOAD_AS(TYPE, EXPRESSION)                                                                  \
  for (uint64_t i = 0; i < count; ++i) {                                                           \
    TYPE element = ((const TYPE *)data)[first + i];                                                \
    out_values[i] = EXPRESSION;                                                                    \
  }                                                                                                \
  break

void harness_load_reals(aotc_dtype dtype, const void *data, uint64_t first, uint64_t count,
                        double *out_values) {
  switch (facts[dtype].part) {
  case AOTC_DTYPE_I8:
    LOAD_AS(int8_t, (double)element);
  case AOTC_DTYPE_I16:
    LOAD_AS(int16_t, (double)element);
  case AOTC_DTYPE_I32:
    LOAD_AS(int32_t, (double)element);
  case AOTC_DTYPE_I64:
    LOAD_AS(int64_t, (double)element);
  case AOTC_DTYPE_U16:
    LOAD_AS(uint16_t, (double)element);
  case AOTC_DTYPE_U32:
    LOAD_AS(uint32_t, (double)element);
  case AOTC_DTYPE_U64:
    LOAD_AS(uint64_t, (double)element);
  case AOTC_DTYPE_F16:
    LOAD_AS(uint16_t, widen(binary16, element));
  case AOTC_DTYPE_BF16:
    LOAD_AS(uint16_t, widen(bfloat16, element));
  case AOTC_DTYPE_F8E4M3FN:
    LOAD_AS(uint8_t, widen_f8e4m3fn(element));
  case AOTC_DTYPE_F8E5M2: // the upper half of a binary16
    LOAD_AS(uint8_t, widen(binary16, (uint16_t)(element << 8)));
  case AOTC_DTYPE_F32:
    LOAD_AS(float, (double)element);
  case AOTC_DTYPE_F64:
    LOAD_AS(double, element);
  default: // one unsigned byte: U8 and bool
    LOAD_AS(uint8_t, (double)element);
  }
}

void harness_store_reals(aotc_dtype dtype, void *data, uint64_t first, uint64_t count,
                         const double *values) {
  uint16_t *narrow_data = (uint16_t *)data + first;
  switch (facts[dtype].part) {
  case AOTC_DTYPE_F16:
    for (uint64_t i = 0; i < count; ++i) {
      narrow_data[i] = narrow(binary16, values[i]);
    }
    break;
  case AOTC_DTYPE_BF16:
    for (uint64_t i = 0; i < count; ++i) {
      narrow_data[i] = narrow(bfloat16, values[i]);
    }
    break;
  case AOTC_DTYPE_F8E4M3FN:
    for (uint64_t i = 0; i < count; ++i) {
      ((uint8_t *)data)[first + i] = narrow_f8e4m3fn(values[i]);
    }
    break;
  case AOTC_DTYPE_F8E5M2:
    for (uint64_t i = 0; i < count; ++i) {
      uint16_t bits = narrow(float8_e5m2, values[i]);
      ((uint8_t *)data)[first + i] = (uint8_t)(((bits >> 8) & 0x80) | (bits & 0x7f));
    }
    break;
  case AOTC_DTYPE_F32:
    for (uint64_t i = 0; i < count; ++i) {
      ((float *)data)[first + i] = (float)values[i];
    }
    break;
  default:
    memcpy((double *)data + first, values, count * sizeof(double));
    break;
  }
}

double harness_load_real(aotc_dtype dtype, const void *data, uint64_t index) {
  double value;
  harness_load_reals(dtype, data, index, 1, &value);
  return value;
}

void harness_store_real(aotc_dtype dtype, void *data, uint64_t index, double value) {
  harness_store_reals(dtype, data, index, 1, &value);
}

uint64_t harness_load_integer(aotc_dtype dtype, const void *data, uint64_t index) {
  switch (dtype) {
  case AOTC_DTYPE_I8:
    return (uint64_t)(int64_t)((const int8_t *)data)[index];
  case AOTC_DTYPE_I16:
    return (uint64_t)(int64_t)((const int16_t *)data)[index];
  case AOTC_DTYPE_I32:
    return (uint64_t)(int64_t)((const int32_t *)data)[index];
  case AOTC_DTYPE_U16:
    return ((const uint16_t *)data)[index];
  case AOTC_DTYPE_U32:
    return ((const uint32_t *)data)[index];
  case AOTC_DTYPE_I64:
  case AOTC_DTYPE_U64:
    return ((const uint64_t *)data)[index];
  default:
    return ((const uint8_t *)data)[index];
  }
}

void harness_store_integer(aotc_dtype dtype, void *data, uint64_t index, uint64_t bits) {
  switch (facts[dtype].bytes) {
  case 1:
    ((uint8_t *)data)[index] = (uint8_t)bits;
    break;
  case 2:
    ((uint16_t *)data)[index] = (uint16_t)bits;
    break;
  case 4:
    ((uint32_t *)data)[index] = (uint32_t)bits;
    break;
  default:
    ((uint64_t *)data)[index] = bits;
    break;
  }
}

void harness_repeat_first(aotc_dtype dtype, void *data, uint64_t count) {
  // Doubles what is there.
  uint64_t bytes = facts[dtype].bytes, all = count * bytes;
  while (bytes < all) {
    uint64_t more = bytes < all - bytes ? bytes : all - bytes;
    memcpy((char *)data + bytes, data, more);
    bytes += more;
  }
}

void harness_poison(aotc_dtype dtype, void *data, uint64_t count) {
  const harness_dtype_facts *fact = &facts[dtype];
  if (count == 0) {
    return;
  }
  if (fact->kind == HARNESS_KIND_REAL || fact->kind == HARNESS_KIND_COMPLEX) {
    harness_store_real(dtype, data, 0, (double)NAN);
    if (fact->kind == HARNESS_KIND_COMPLEX) {
      harness_store_real(dtype, data, 1, (double)NAN);
    }
    harness_repeat_first(dtype, data, count);
  } else {
    memset(data, 0xa5, count * fact->bytes);
  }
}

// The shortest text that rounds to the same value of that dtype.
static const char *real_text(aotc_dtype dtype, double value, int digits,
                             char out[HARNESS_NUMBER_TEXT]) {
  if (isnan(value)) {
    return strcpy(out, "nan");
  }
  int all_digits = facts[dtype].digits;
  int most = digits > 0 && digits < all_digits ? digits : all_digits;
  for (int precision = 1; precision <= most; ++precision) {
    harness_format_real(value, precision, most, out);
    union {
      uint16_t narrow;
      float single;
      double wide;
    } stored;
    // strtof, so that a float's text is rounded once.
    bool is_single = facts[dtype].part == AOTC_DTYPE_F32;
    double again = is_single ? (double)strtof(out, NULL) : strtod(out, NULL);
    harness_store_real(dtype, &stored, 0, again);
    if (harness_load_real(dtype, &stored, 0) == value) {
      break;
    }
  }
  return out;
}

const char *harness_element_text(aotc_dtype dtype, const void *data, uint64_t index, int digits,
                                 char out[HARNESS_NUMBER_TEXT]) {
  char real[HARNESS_NUMBER_TEXT], imaginary[HARNESS_NUMBER_TEXT];
  switch (facts[dtype].kind) {
  case HARNESS_KIND_BOOL: {
    uint8_t byte = ((const uint8_t *)data)[index];
    if (byte > 1) { // not a bool: nobody wrote it, or something else did
      snprintf(out, HARNESS_NUMBER_TEXT, "0x%02x", byte);
      return out;
    }
    return strcpy(out, byte != 0 ? "True" : "False");
  }
  case HARNESS_KIND_SIGNED:
    snprintf(out, HARNESS_NUMBER_TEXT, "%lld", (long long)harness_load_integer(dtype, data, index));
    return out;
  case HARNESS_KIND_UNSIGNED:
    snprintf(out, HARNESS_NUMBER_TEXT, "%llu",
             (unsigned long long)harness_load_integer(dtype, data, index));
    return out;
  case HARNESS_KIND_REAL:
    return real_text(dtype, harness_load_real(dtype, data, index), digits, out);
  case HARNESS_KIND_COMPLEX: {
    double second = harness_load_real(dtype, data, 2 * index + 1);
    real_text(dtype, harness_load_real(dtype, data, 2 * index), digits, real);
    real_text(dtype, second, digits, imaginary);
    const char *plus = imaginary[0] == '-' ? "" : "+";
    snprintf(out, HARNESS_NUMBER_TEXT, "(%.40s%s%.40sj)", real, plus, imaginary);
    return out;
  }
  }
  return strcpy(out, "");
}
