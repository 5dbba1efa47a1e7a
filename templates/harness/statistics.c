#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- CRC-32, eight bytes at a time ---

#define CRC_POLYNOMIAL UINT32_C(0xedb88320)

static uint32_t crc_tables[8][256];

static void make_crc_tables(void) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? CRC_POLYNOMIAL : 0);
    }
    crc_tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (int table = 1; table < 8; ++table) {
      uint32_t last = crc_tables[table - 1][byte];
      crc_tables[table][byte] = (last >> 8) ^ crc_tables[0][last & 0xff];
    }
  }
}

uint32_t harness_crc32(const void *data, uint64_t bytes) {
  if (crc_tables[0][1] == 0) {
    make_crc_tables();
  }
  const unsigned char *at = data;
  uint32_t crc = UINT32_MAX;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    word ^= crc;
    crc = 0;
    for (int i = 0; i < 8; ++i) {
      crc ^= crc_tables[7 - i][(word >> (8 * i)) & 0xff];
    }
  }
  for (; bytes > 0; --bytes, ++at) {
    crc = (crc >> 8) ^ crc_tables[0][(crc ^ *at) & 0xff];
  }
  return ~crc;
}

// --- least, greatest, mean ---

// A chunk has several partial sums; the sums of chunks are added in pairs of equal size. So
// rounding errors grow with the logarithm of the count.
#define LANES 8

typedef struct part_sums {
  double real, imaginary;
} part_sums;

// The statistics of the elements so far.
typedef struct scan {
  const harness_array *array;
  bool is_complex;
  harness_statistics *result;
  double min[2], max[2]; // real and imaginary part
} scan;

static bool is_less(const double one[2], const double other[2]) {
  return one[0] < other[0] || (one[0] == other[0] && one[1] < other[1]);
}

static void note_element(scan *self, uint64_t index, const double parts[2]) {
  harness_statistics *result = self->result;
  if (isnan(parts[0]) || isnan(parts[1])) {
    ++result->nan_count;
    return;
  }
  if (!result->has_values || is_less(parts, self->min)) {
    memcpy(self->min, parts, sizeof(self->min));
    result->min_index = index;
  }
  if (!result->has_values || is_less(self->max, parts)) {
    memcpy(self->max, parts, sizeof(self->max));
    result->max_index = index;
  }
  result->has_values = true;
}

// Scans up to HARNESS_CHUNK / 2 elements, and returns the sums of those that are not NaN.
static part_sums scan_chunk(scan *self, uint64_t first, uint64_t count) {
  double values[HARNESS_CHUNK];
  double real[LANES] = {0}, imaginary[LANES] = {0};
  if (self->is_complex) {
    harness_load_reals(self->array->dtype, self->array->data, 2 * first, 2 * count, values);
  } else {
    harness_load_reals(self->array->dtype, self->array->data, first, count, values);
  }
  for (uint64_t i = 0; i < count; ++i) {
    double parts[2] = {self->is_complex ? values[2 * i] : values[i],
                       self->is_complex ? values[2 * i + 1] : 0};
    note_element(self, first + i, parts);
    if (!isnan(parts[0]) && !isnan(parts[1])) {
      real[i % LANES] += parts[0];
      imaginary[i % LANES] += parts[1];
    }
  }
  part_sums sums = {0, 0};
  for (int lane = 0; lane < LANES; ++lane) {
    sums.real += real[lane];
    sums.imaginary += imaginary[lane];
  }
  return sums;
}

static part_sums scan_range(scan *self, uint64_t first, uint64_t count) {
  if (count <= HARNESS_CHUNK / 2) {
    return scan_chunk(self, first, count);
  }
  uint64_t half = count / 2;
  part_sums one = scan_range(self, first, half);
  part_sums other = scan_range(self, first + half, count - half);
  return (part_sums){one.real + other.real, one.imaginary + other.imaginary};
}

// Different 64-bit integers may be equal as doubles: they are compared exactly.
static void order_integers(const harness_array *array, harness_statistics *result) {
  bool is_signed = array->dtype == AOTC_DTYPE_I64;
  const uint64_t *data = array->data;
  // With the sign bit flipped, signed integers are in the order of unsigned ones.
  uint64_t flip = is_signed ? UINT64_C(1) << 63 : 0;
  for (uint64_t i = 0; i < array->count; ++i) {
    if ((data[i] ^ flip) < (data[result->min_index] ^ flip)) {
      result->min_index = i;
    }
    if ((data[i] ^ flip) > (data[result->max_index] ^ flip)) {
      result->max_index = i;
    }
  }
}

harness_statistics harness_statistics_of(const harness_array *array) {
  harness_statistics result = {.crc32 = harness_crc32(array->data, harness_array_bytes(array))};
  scan self = {
      .array = array,
      .is_complex = harness_facts(array->dtype)->kind == HARNESS_KIND_COMPLEX,
      .result = &result,
  };
  part_sums sums = scan_range(&self, 0, array->count);
  if (array->dtype == AOTC_DTYPE_I64 || array->dtype == AOTC_DTYPE_U64) {
    order_integers(array, &result);
  }
  if (result.has_values) {
    double count = (double)(array->count - result.nan_count);
    result.mean = sums.real / count;
    result.mean_imaginary = sums.imaginary / count;
  }
  return result;
}

// --- times ---

static int order_doubles(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static double percentile(const double *sorted, uint64_t count, double fraction) {
  double position = fraction * (double)(count - 1);
  uint64_t below = (uint64_t)position;
  if (below + 1 >= count) {
    return sorted[count - 1];
  }
  return sorted[below] + (sorted[below + 1] - sorted[below]) * (position - (double)below);
}

harness_spread harness_spread_of(double *samples, uint64_t count) {
  qsort(samples, count, sizeof(samples[0]), order_doubles);
  return (harness_spread){
      .min = samples[0],
      .p10 = percentile(samples, count, 0.1),
      .median = percentile(samples, count, 0.5),
      .p90 = percentile(samples, count, 0.9),
      .max = samples[count - 1],
  };
}
