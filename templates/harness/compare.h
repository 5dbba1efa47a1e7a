// Compares a result with the expected array, as numpy.allclose does: |got - expected| <= atol +
// rtol * |expected|. NaN never passes, not even against NaN; an infinity passes only against
// itself.
#ifndef AOTC_HARNESS_COMPARE_H
#define AOTC_HARNESS_COMPARE_H

#include "array.h"

typedef struct harness_tolerance {
  double rtol, atol;
  bool is_exact; // only equal elements pass: bool, and integers without a tolerance given
} harness_tolerance;

// The tolerance for a dtype. Values of the user replace the defaults; NULL: not given.
harness_tolerance harness_tolerance_for(aotc_dtype dtype, const double *rtol, const double *atol);

typedef struct harness_comparison {
  harness_tolerance tolerance;
  bool has_passed;
  uint64_t count, mismatch_count;
  uint64_t nan_count_got, nan_count_expected;
  // The element with the largest |got - expected|. NaN is larger than all numbers; the error is
  // then NaN.
  double largest_error;
  uint64_t largest_error_index;
  // The element with the largest ratio of error to tolerance; 1 is just allowed. The ratio is
  // infinite without a tolerance, and for NaN.
  double tolerance_used;
  uint64_t tolerance_used_index;
} harness_comparison;

// Both arrays have the same dtype and shape.
harness_comparison harness_compare(const harness_array *got, const harness_array *expected,
                                   harness_tolerance tolerance);

#endif
