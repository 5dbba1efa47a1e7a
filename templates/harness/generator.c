#include "generator.h"

// A fused multiply-add rounds once where NumPy rounds twice. GCC fuses nothing under -std=c11.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

// SplitMix64's constants (Steele, Lea, Flood: Fast splittable pseudorandom number generators) and
// FNV-1a's.
#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15)
#define MIX_ONE UINT64_C(0xbf58476d1ce4e5b9)
#define MIX_TWO UINT64_C(0x94d049bb133111eb)
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * MIX_ONE;
  z = (z ^ (z >> 27)) * MIX_TWO;
  return z ^ (z >> 31);
}

uint64_t harness_generator_key(uint64_t seed, const char *name) {
  uint64_t hash = FNV_BASIS;
  for (const char *c = name; *c != '\0'; ++c) {
    hash = (hash ^ (unsigned char)*c) * FNV_PRIME;
  }
  return mix(hash ^ mix(seed));
}

uint64_t harness_generator_draw(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * GOLDEN_GAMMA);
}

void harness_generator_reals(uint64_t key, double low, double high, aotc_dtype dtype, void *data,
                             uint64_t count) {
  uint64_t parts = harness_facts(dtype)->kind == HARNESS_KIND_COMPLEX ? 2 * count : count;
  double width = high - low, values[HARNESS_CHUNK];
  for (uint64_t first = 0; first < parts; first += HARNESS_CHUNK) {
    uint64_t chunk = parts - first < HARNESS_CHUNK ? parts - first : HARNESS_CHUNK;
    for (uint64_t i = 0; i < chunk; ++i) {
      double unit = (double)(harness_generator_draw(key, first + i) >> 11) * 0x1p-53;
      double scaled = width * unit;
      values[i] = low + scaled;
    }
    harness_store_reals(dtype, data, first, chunk, values);
  }
}

void harness_generator_integers(uint64_t key, uint64_t low, uint64_t span, aotc_dtype dtype,
                                void *data, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    harness_store_integer(dtype, data, i, low + harness_generator_draw(key, i) % span);
  }
}
