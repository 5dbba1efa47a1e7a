#include "compare.h"

#include <math.h>

// The same verdict on every machine: no fused multiply-add here.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

harness_tolerance harness_tolerance_for(harness_dtype dtype, const double *rtol,
                                        const double *atol) {
  harness_tolerance tolerance = {0};
  switch (harness_facts(dtype)->part) {
  case HARNESS_F16: // two units in the last place, as for bfloat16
    tolerance = (harness_tolerance){.rtol = 2e-3, .atol = 1e-5};
    break;
  case HARNESS_BF16:
    tolerance = (harness_tolerance){.rtol = 1.6e-2, .atol = 1e-5};
    break;
  case HARNESS_F32:
    tolerance = (harness_tolerance){.rtol = 1e-5, .atol = 1e-7};
    break;
  case HARNESS_F64:
    tolerance = (harness_tolerance){.rtol = 1e-12, .atol = 1e-14};
    break;
  case HARNESS_BOOL:
    tolerance.is_exact = true;
    return tolerance;
  default:
    tolerance.is_exact = rtol == NULL && atol == NULL;
    break;
  }
  tolerance.rtol = rtol != NULL ? *rtol : tolerance.rtol;
  tolerance.atol = atol != NULL ? *atol : tolerance.atol;
  return tolerance;
}

// One element of both arrays: how far apart, and how large the expected one is.
typedef struct difference {
  double error, magnitude;
  bool is_equal;
} difference;

static difference real_difference(double got, double expected) {
  if (got == expected) { // infinities too, whose difference is NaN
    return (difference){.error = 0, .magnitude = fabs(expected), .is_equal = true};
  }
  return (difference){.error = fabs(got - expected), .magnitude = fabs(expected)};
}

static difference integer_difference(harness_dtype dtype, uint64_t got, uint64_t expected) {
  bool is_signed = harness_facts(dtype)->kind == HARNESS_KIND_SIGNED;
  bool is_greater = is_signed ? (int64_t)got > (int64_t)expected : got > expected;
  // Exact in 64 bits; only its rounding to double is not.
  uint64_t distance = is_greater ? got - expected : expected - got;
  double magnitude = is_signed ? fabs((double)(int64_t)expected) : (double)expected;
  return (difference){
      .error = (double)distance, .magnitude = magnitude, .is_equal = got == expected};
}

static difference difference_at(const harness_array *got, const harness_array *expected,
                                uint64_t index) {
  harness_dtype dtype = got->dtype;
  switch (harness_facts(dtype)->kind) {
  case HARNESS_KIND_REAL:
    return real_difference(harness_load_real(dtype, got->data, index),
                           harness_load_real(dtype, expected->data, index));
  case HARNESS_KIND_COMPLEX: {
    double real = harness_load_real(dtype, expected->data, 2 * index);
    double imaginary = harness_load_real(dtype, expected->data, 2 * index + 1);
    double got_real = harness_load_real(dtype, got->data, 2 * index);
    double got_imaginary = harness_load_real(dtype, got->data, 2 * index + 1);
    difference result = {.magnitude = hypot(real, imaginary),
                         .is_equal = got_real == real && got_imaginary == imaginary};
    if (isnan(got_real) || isnan(got_imaginary) || isnan(real) || isnan(imaginary)) {
      result.error = (double)NAN; // hypot(inf, NaN) is inf
    } else if (!result.is_equal) {
      // Equal infinite parts differ by nothing.
      double x = got_real == real ? 0 : got_real - real;
      double y = got_imaginary == imaginary ? 0 : got_imaginary - imaginary;
      result.error = hypot(x, y);
    }
    return result;
  }
  default:
    return integer_difference(dtype, harness_load_integer(dtype, got->data, index),
                              harness_load_integer(dtype, expected->data, index));
  }
}

static bool is_nan_element(const harness_array *array, uint64_t index) {
  switch (harness_facts(array->dtype)->kind) {
  case HARNESS_KIND_REAL:
    return isnan(harness_load_real(array->dtype, array->data, index));
  case HARNESS_KIND_COMPLEX:
    return isnan(harness_load_real(array->dtype, array->data, 2 * index)) ||
           isnan(harness_load_real(array->dtype, array->data, 2 * index + 1));
  default:
    return false;
  }
}

// The error as a share of what is allowed.
static double share_of(const difference *pair, harness_tolerance tolerance) {
  if (pair->is_equal) {
    return 0;
  }
  double relative = tolerance.is_exact ? 0 : tolerance.rtol * pair->magnitude;
  double allowed = tolerance.is_exact ? 0 : tolerance.atol + relative;
  // An infinity that is expected would allow everything.
  if (isnan(pair->error) || isinf(pair->error) || isinf(pair->magnitude) || allowed == 0) {
    return (double)INFINITY;
  }
  return pair->error / allowed;
}

harness_comparison harness_compare(const harness_array *got, const harness_array *expected,
                                   harness_tolerance tolerance) {
  harness_comparison result = {.tolerance = tolerance, .count = got->count};
  double largest = -1, most_used = -1;
  for (uint64_t i = 0; i < got->count; ++i) {
    difference pair = difference_at(got, expected, i);
    double share = share_of(&pair, tolerance);
    // The share is rounded: compare without dividing.
    double relative = tolerance.rtol * pair.magnitude;
    bool passes = pair.is_equal || (!tolerance.is_exact && isfinite(share) &&
                                    pair.error <= tolerance.atol + relative);
    result.mismatch_count += !passes;
    result.nan_count_got += is_nan_element(got, i);
    result.nan_count_expected += is_nan_element(expected, i);
    double rank = isnan(pair.error) ? (double)INFINITY : pair.error;
    bool is_first_nan = isnan(pair.error) && !isnan(result.largest_error);
    if (rank > largest || is_first_nan) {
      largest = rank;
      result.largest_error = pair.error;
      result.largest_error_index = i;
    }
    if (share > most_used) {
      most_used = share;
      result.tolerance_used = share;
      result.tolerance_used_index = i;
    }
  }
  result.has_passed = result.mismatch_count == 0;
  return result;
}
