// Compares a result with what was expected, as numpy.allclose does: |got - expected| <= atol +
// rtol * |expected|. NaN never passes, not even against NaN; an infinity passes against itself
// only.
#ifndef AOTC_HARNESS_COMPARE_H
#define AOTC_HARNESS_COMPARE_H

#include "array.h"

typedef struct harness_tolerance {
  double rtol, atol;
  bool is_exact; // only equal elements pass: bool, and integers without a tolerance given
} harness_tolerance;

// The tolerance for a dtype. What the user gave replaces a default; NULL: not given.
harness_tolerance harness_tolerance_for(aotc_dtype dtype, const double *rtol, const double *atol);

typedef struct harness_comparison {
  harness_tolerance tolerance;
  bool has_passed;
  uint64_t count, mismatch_count;
  uint64_t nan_count_got, nan_count_expected;
  // Where |got - expected| is largest. NaN counts as larger than all, and the error is NaN then.
  double largest_error;
  uint64_t largest_error_index;
  // Where the error is the largest share of its tolerance; 1 is just allowed. Infinite where there
  // is no tolerance, or NaN.
  double tolerance_used;
  uint64_t tolerance_used_index;
} harness_comparison;

// Both arrays have the same dtype and shape.
harness_comparison harness_compare(const harness_array *got, const harness_array *expected,
                                   harness_tolerance tolerance);

#endif
