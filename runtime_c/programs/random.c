// The random numbers of upstream's utilities: C++'s std::mt19937 (Matsumoto and Nishimura, 1998)
// with libstdc++'s std::uniform_int_distribution (Lemire, 2019) and std::shuffle, so that programs
// print the same numbers as with upstream's library.
#include <stdlib.h>

#include "memref.h"
#include "utility.h"

#define WORDS 624
#define SHIFT 397

typedef struct generator {
  uint32_t words[WORDS];
  int32_t used;
} generator;

static void seed_words(generator *g, uint32_t seed) {
  g->words[0] = seed;
  for (uint32_t i = 1; i < WORDS; ++i) {
    uint32_t before = g->words[i - 1];
    g->words[i] = 1812433253u * (before ^ (before >> 30)) + i;
  }
  g->used = WORDS;
}

static void refill(generator *g) {
  for (int32_t i = 0; i < WORDS; ++i) {
    uint32_t mixed = (g->words[i] & 0x80000000u) | (g->words[(i + 1) % WORDS] & 0x7fffffffu);
    uint32_t twisted = (mixed >> 1) ^ ((mixed & 1u) != 0 ? 0x9908b0dfu : 0u);
    g->words[i] = g->words[(i + SHIFT) % WORDS] ^ twisted;
  }
  g->used = 0;
}

// 32 random bits.
static uint32_t next(generator *g) {
  if (g->used == WORDS) {
    refill(g);
  }
  uint32_t word = g->words[g->used++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

// A number from 0 to count - 1: the upper half of the product of count and 32 random bits. Some
// draws are rejected, so that all results are equally likely.
static uint32_t below(generator *g, uint32_t count) {
  uint64_t product = (uint64_t)next(g) * count;
  if ((uint32_t)product < count) {
    uint32_t least = (0u - count) % count;
    while ((uint32_t)product < least) {
      product = (uint64_t)next(g) * count;
    }
  }
  return (uint32_t)(product >> 32);
}

static uint64_t up_to(generator *g, uint64_t most) {
  if (most < UINT32_MAX) {
    return below(g, (uint32_t)most + 1);
  }
  if (most == UINT32_MAX) {
    return next(g);
  }
  uint64_t high = 0;
  uint64_t value = 0;
  do {
    high = up_to(g, most >> 32) << 32;
    value = high + next(g);
  } while (value > most || value < high);
  return value;
}

UTILITY void *rtsrand(uint64_t seed) {
  generator *g = malloc(sizeof(*g));
  if (g == NULL) {
    aotc_error_adopt(AOTC_OUT_OF_MEMORY, "rtsrand: no host memory for a generator");
    return NULL;
  }
  seed_words(g, (uint32_t)seed);
  return g;
}

UTILITY uint64_t rtrand(void *of, uint64_t most) {
  return of != NULL ? up_to(of, most) : 0;
}

UTILITY void rtdrand(void *of) {
  free(of);
}

// -------------------------------------------------------------------------------------------------
// Shuffling

static void swap(uint64_t *values, int64_t stride, uint64_t left, uint64_t right) {
  uint64_t *a = values + (int64_t)left * stride;
  uint64_t *b = values + (int64_t)right * stride;
  uint64_t kept = *a;
  *a = *b;
  *b = kept;
}

// Swaps each element with itself or an earlier one. For small counts, one random number is used for
// two elements.
static void shuffle(generator *g, uint64_t *values, int64_t stride, uint64_t count) {
  uint64_t i = 1;
  bool in_pairs = UINT32_MAX / count >= count;
  if (in_pairs && count % 2 == 0) {
    swap(values, stride, i, up_to(g, 1));
    ++i;
  }
  while (i < count) {
    if (!in_pairs) {
      swap(values, stride, i, up_to(g, i));
      ++i;
      continue;
    }
    uint64_t both = up_to(g, (i + 1) * (i + 2) - 1);
    swap(values, stride, i, both / (i + 2));
    swap(values, stride, i + 1, both % (i + 2));
    i += 2;
  }
}

UTILITY void _mlir_ciface_shuffle(void *descriptor, void *of) {
  aotc_program_memref m = aotc_program_memref_of(1, descriptor);
  if (aotc_is_stopped() || of == NULL || m.sizes[0] <= 0) {
    return;
  }
  uint64_t *values = (uint64_t *)(void *)m.data + m.offset;
  for (int64_t i = 0; i < m.sizes[0]; ++i) {
    values[i * m.strides[0]] = (uint64_t)i;
  }
  shuffle(of, values, m.strides[0], (uint64_t)m.sizes[0]);
}
