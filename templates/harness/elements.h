// The elements of each dtype: their size, names, and conversion to numbers and text.
#ifndef AOTC_HARNESS_ELEMENTS_H
#define AOTC_HARNESS_ELEMENTS_H

#include "harness.h"
#include "text.h"

typedef enum harness_kind {
  HARNESS_KIND_BOOL,
  HARNESS_KIND_SIGNED,
  HARNESS_KIND_UNSIGNED,
  HARNESS_KIND_REAL,
  HARNESS_KIND_COMPLEX,
} harness_kind;

typedef struct harness_dtype_facts {
  const char *name; // NumPy's: "float32"; ml_dtypes' for bfloat16
  const char *npy;  // the type in .npy, without its byte order: "f4"
  uint32_t bytes;
  harness_kind kind;
  aotc_dtype part; // of a complex dtype, the dtype of its two parts; otherwise the dtype itself
  int digits;      // decimal digits that distinguish all its values; 0 for integers
} harness_dtype_facts;

const harness_dtype_facts *harness_facts(aotc_dtype dtype);

// The minimum and the maximum of an integer dtype (bool is 0 to 1).
int64_t harness_integer_low(aotc_dtype dtype);
uint64_t harness_integer_high(aotc_dtype dtype);

// Elements of a packed array as doubles: `count` of them, starting at `first`. For complex arrays
// both count parts, two per element.
void harness_load_reals(aotc_dtype dtype, const void *data, uint64_t first, uint64_t count,
                        double *out_values);

// Rounds to nearest, ties to even, directly from double; values that are too large become infinite.
// For real dtypes, and the parts of complex ones.
void harness_store_reals(aotc_dtype dtype, void *data, uint64_t first, uint64_t count,
                         const double *values);

// The same for one element.
double harness_load_real(aotc_dtype dtype, const void *data, uint64_t index);
void harness_store_real(aotc_dtype dtype, void *data, uint64_t index, double value);

// The number of doubles that loops over large arrays load or store at a time.
#define HARNESS_CHUNK 1024

// Element `index` of an integer array, sign-extended to 64 bits, and back (the low bits are kept).
uint64_t harness_load_integer(aotc_dtype dtype, const void *data, uint64_t index);
void harness_store_integer(aotc_dtype dtype, void *data, uint64_t index, uint64_t bits);

// Sets every element to the first one.
void harness_repeat_first(aotc_dtype dtype, void *data, uint64_t count);

// Marks elements as unwritten: NaN, or bytes 0xa5 for integers and bool.
void harness_poison(aotc_dtype dtype, void *data, uint64_t count);

// Element `index` as text: "0.1", "True", "(1+2j)". At most `digits` digits; 0 for the smallest
// number of digits that reads back as the same value.
const char *harness_element_text(aotc_dtype dtype, const void *data, uint64_t index, int digits,
                                 char out[HARNESS_NUMBER_TEXT]);

#endif
