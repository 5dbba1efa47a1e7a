// Statistics of an array: checksum, minimum, maximum and mean.
#ifndef AOTC_HARNESS_STATISTICS_H
#define AOTC_HARNESS_STATISTICS_H

#include "array.h"

typedef struct harness_statistics {
  uint32_t crc32;                // zlib.crc32(a.tobytes()) of the row-major array
  uint64_t nan_count;            // elements with NaN in any part
  bool has_values;               // whether any element is not NaN; the next fields are then valid
  uint64_t min_index, max_index; // their positions; complex numbers are ordered as in NumPy
  double mean, mean_imaginary;   // of the elements that are not NaN, summed in double
} harness_statistics;

harness_statistics harness_statistics_of(const harness_array *array);

// Order statistics of times: percentiles are interpolated linearly, as in numpy.percentile.
typedef struct harness_spread {
  double min, p10, median, p90, max;
} harness_spread;

// Sorts `samples`, which must not be empty.
harness_spread harness_spread_of(double *samples, uint64_t count);

// CRC-32 of zlib and PNG (polynomial 0x04c11db7, reflected).
uint32_t harness_crc32(const void *data, uint64_t bytes);

#endif
