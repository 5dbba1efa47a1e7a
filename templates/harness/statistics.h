// What a glance at an array tells: its checksum, its least, greatest and mean value.
#ifndef AOTC_HARNESS_STATISTICS_H
#define AOTC_HARNESS_STATISTICS_H

#include "array.h"

typedef struct harness_statistics {
  uint32_t crc32;                // zlib.crc32(a.tobytes()) of the row-major array
  uint64_t nan_count;            // elements that are NaN, in any part
  bool has_values;               // there is an element that is not NaN: then
  uint64_t min_index, max_index; // where they are; complex is ordered as NumPy does
  double mean, mean_imaginary;   // of the elements that are not NaN, summed in double
} harness_statistics;

harness_statistics harness_statistics_of(const harness_array *array);

// The order statistics of times: percentiles are interpolated linearly, as numpy.percentile does.
typedef struct harness_spread {
  double min, p10, median, p90, max;
} harness_spread;

// Sorts `samples`, of which there is one at least.
harness_spread harness_spread_of(double *samples, uint64_t count);

// CRC-32 of zlib and PNG (polynomial 0x04c11db7, reflected).
uint32_t harness_crc32(const void *data, uint64_t bytes);

#endif
