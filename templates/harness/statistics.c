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

// Below this many elements a plain sum is as good.
#define PAIRWISE_BLOCK 128

// Element `index`, or the imaginary part of it, as a double.
static double part_of(const harness_array *array, uint64_t index, int part) {
  bool is_complex = harness_facts(array->dtype)->kind == HARNESS_KIND_COMPLEX;
  return harness_load_real(array->dtype, array->data,
                           is_complex ? 2 * index + (uint64_t)part : index);
}

static bool is_nan_at(const harness_array *array, uint64_t index) {
  bool is_complex = harness_facts(array->dtype)->kind == HARNESS_KIND_COMPLEX;
  return isnan(part_of(array, index, 0)) || (is_complex && isnan(part_of(array, index, 1)));
}

// Halves the range until it is short, so that rounding errors grow with the logarithm of the count.
static double sum(const harness_array *array, uint64_t first, uint64_t count, int part) {
  if (count > PAIRWISE_BLOCK) {
    uint64_t half = count / 2;
    return sum(array, first, half, part) + sum(array, first + half, count - half, part);
  }
  double total = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    total += is_nan_at(array, i) ? 0 : part_of(array, i, part);
  }
  return total;
}

// -1, 0 or 1: integers exactly, complex by the real part first. Neither element is NaN.
static int order(const harness_array *array, uint64_t one, uint64_t other) {
  if (array->dtype == HARNESS_U64) {
    const uint64_t *data = array->data;
    return (data[one] > data[other]) - (data[one] < data[other]);
  }
  if (array->dtype == HARNESS_I64) {
    const int64_t *data = array->data;
    return (data[one] > data[other]) - (data[one] < data[other]);
  }
  double a = part_of(array, one, 0), b = part_of(array, other, 0);
  if (a == b && harness_facts(array->dtype)->kind == HARNESS_KIND_COMPLEX) {
    a = part_of(array, one, 1);
    b = part_of(array, other, 1);
  }
  return (a > b) - (a < b);
}

harness_statistics harness_statistics_of(const harness_array *array) {
  harness_statistics result = {.crc32 = harness_crc32(array->data, harness_array_bytes(array))};
  for (uint64_t i = 0; i < array->count; ++i) {
    if (is_nan_at(array, i)) {
      ++result.nan_count;
    } else if (!result.has_values) {
      result.has_values = true;
      result.min_index = result.max_index = i;
    } else if (order(array, i, result.min_index) < 0) {
      result.min_index = i;
    } else if (order(array, i, result.max_index) > 0) {
      result.max_index = i;
    }
  }
  if (result.has_values) {
    double count = (double)(array->count - result.nan_count);
    result.mean = sum(array, 0, array->count, 0) / count;
    if (harness_facts(array->dtype)->kind == HARNESS_KIND_COMPLEX) {
      result.mean_imaginary = sum(array, 0, array->count, 1) / count;
    }
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
