#include "compare.h"

#include <math.h>

// No fused multiply-add, so that the verdict is the same on every machine.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

harness_tolerance harness_tolerance_for(aotc_dtype dtype, const double *rtol, const double *atol) {
  harness_tolerance tolerance = {0};
  switch (harness_facts(dtype)->part) {
  case AOTC_DTYPE_F16: // two units in the last place, as for bfloat16
    tolerance = (harness_tolerance){.rtol = 2e-3, .atol = 1e-5};
    break;
  case AOTC_DTYPE_BF16:
    tolerance = (harness_tolerance){.rtol = 1.6e-2, .atol = 1e-5};
    break;
  case AOTC_DTYPE_F8E4M3FN: // two units in the last place, and of the least numbers
    tolerance = (harness_tolerance){.rtol = 2.5e-1, .atol = 4e-3};
    break;
  case AOTC_DTYPE_F8E5M2:
    tolerance = (harness_tolerance){.rtol = 5e-1, .atol = 4e-5};
    break;
  case AOTC_DTYPE_F32:
    tolerance = (harness_tolerance){.rtol = 1e-5, .atol = 1e-7};
    break;
  case AOTC_DTYPE_F64:
    tolerance = (harness_tolerance){.rtol = 1e-12, .atol = 1e-14};
    break;
  case AOTC_DTYPE_BOOL:
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

// The error of one element, and the magnitude of its expected value.
typedef struct difference {
  double error, magnitude;
  bool is_equal;
} difference;

static difference real_difference(double got, double expected) {
  if (got == expected) { // also for infinities, whose difference is NaN
    return (difference){.error = 0, .magnitude = fabs(expected), .is_equal = true};
  }
  return (difference){.error = fabs(got - expected), .magnitude = fabs(expected)};
}

static difference integer_difference(aotc_dtype dtype, uint64_t got, uint64_t expected) {
  bool is_signed = harness_facts(dtype)->kind == HARNESS_KIND_SIGNED;
  bool is_greater = is_signed ? (int64_t)got > (int64_t)expected : got > expected;
  // Exact in 64 bits; only the conversion to double rounds.
  uint64_t distance = is_greater ? got - expected : expected - got;
  double magnitude = is_signed ? fabs((double)(int64_t)expected) : (double)expected;
  return (difference){
      .error = (double)distance, .magnitude = magnitude, .is_equal = got == expected};
}

static difference complex_difference(const double got[2], const double expected[2]) {
  difference result = {.magnitude = hypot(expected[0], expected[1]),
                       .is_equal = got[0] == expected[0] && got[1] == expected[1]};
  if (isnan(got[0]) || isnan(got[1]) || isnan(expected[0]) || isnan(expected[1])) {
    result.error = (double)NAN; // hypot(inf, NaN) is inf
  } else if (!result.is_equal) {
    // Equal infinite parts have the error 0.
    double x = got[0] == expected[0] ? 0 : got[0] - expected[0];
    double y = got[1] == expected[1] ? 0 : got[1] - expected[1];
    result.error = hypot(x, y);
  }
  return result;
}

// The ratio of error to tolerance.
static double share_of(const difference *pair, harness_tolerance tolerance) {
  if (pair->is_equal) {
    return 0;
  }
  double relative = tolerance.is_exact ? 0 : tolerance.rtol * pair->magnitude;
  double allowed = tolerance.is_exact ? 0 : tolerance.atol + relative;
  // An infinite expected value would allow every error.
  if (isnan(pair->error) || isinf(pair->error) || isinf(pair->magnitude) || allowed == 0) {
    return (double)INFINITY;
  }
  return pair->error / allowed;
}

typedef struct comparer {
  const harness_array *got, *expected;
  harness_kind kind;
  harness_comparison result;
  double largest, most_used; // -1 before the first element
} comparer;

static void note_difference(comparer *self, uint64_t index, const difference *pair) {
  harness_comparison *result = &self->result;
  harness_tolerance tolerance = result->tolerance;
  double share = share_of(pair, tolerance);
  // The ratio is rounded, so the verdict is computed without a division.
  double relative = tolerance.rtol * pair->magnitude;
  bool passes = pair->is_equal || (!tolerance.is_exact && isfinite(share) &&
                                   pair->error <= tolerance.atol + relative);
  result->mismatch_count += !passes;
  double rank = isnan(pair->error) ? (double)INFINITY : pair->error;
  bool is_first_nan = isnan(pair->error) && !isnan(result->largest_error);
  if (rank > self->largest || is_first_nan) {
    self->largest = rank;
    result->largest_error = pair->error;
    result->largest_error_index = index;
  }
  if (share > self->most_used) {
    self->most_used = share;
    result->tolerance_used = share;
    result->tolerance_used_index = index;
  }
}

static void compare_integers(comparer *self) {
  aotc_dtype dtype = self->got->dtype;
  for (uint64_t i = 0; i < self->got->count; ++i) {
    difference pair = integer_difference(dtype, harness_load_integer(dtype, self->got->data, i),
                                         harness_load_integer(dtype, self->expected->data, i));
    note_difference(self, i, &pair);
  }
}

static void compare_reals(comparer *self) {
  double got[HARNESS_CHUNK], expected[HARNESS_CHUNK];
  uint64_t parts = self->kind == HARNESS_KIND_COMPLEX ? 2 : 1;
  uint64_t all = parts * self->got->count;
  for (uint64_t first = 0; first < all; first += HARNESS_CHUNK) {
    uint64_t chunk = all - first < HARNESS_CHUNK ? all - first : HARNESS_CHUNK;
    harness_load_reals(self->got->dtype, self->got->data, first, chunk, got);
    harness_load_reals(self->got->dtype, self->expected->data, first, chunk, expected);
    for (uint64_t i = 0; i < chunk; i += parts) {
      difference pair = parts == 2 ? complex_difference(&got[i], &expected[i])
                                   : real_difference(got[i], expected[i]);
      self->result.nan_count_got += isnan(got[i]) || isnan(got[i + parts - 1]);
      self->result.nan_count_expected += isnan(expected[i]) || isnan(expected[i + parts - 1]);
      note_difference(self, (first + i) / parts, &pair);
    }
  }
}

harness_comparison harness_compare(const harness_array *got, const harness_array *expected,
                                   harness_tolerance tolerance) {
  comparer self = {
      .got = got,
      .expected = expected,
      .kind = harness_facts(got->dtype)->kind,
      .result = {.tolerance = tolerance, .count = got->count},
      .largest = -1,
      .most_used = -1,
  };
  if (self.kind == HARNESS_KIND_REAL || self.kind == HARNESS_KIND_COMPLEX) {
    compare_reals(&self);
  } else {
    compare_integers(&self);
  }
  self.result.has_passed = self.result.mismatch_count == 0;
  return self.result;
}
