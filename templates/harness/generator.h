// The random numbers of inputs. The generator is counter-based: element i depends only on the seed,
// the argument's name and i, so any machine, and NumPy, generates the same values in any order.
// docs/harness.md specifies it, with NumPy code; a test compares the two.
#ifndef AOTC_HARNESS_GENERATOR_H
#define AOTC_HARNESS_GENERATOR_H

#include "elements.h"

// The key of the stream for an argument of this name.
uint64_t harness_generator_key(uint64_t seed, const char *name);

// Draw `index` of the stream: output `index` of SplitMix64 started at `key`.
uint64_t harness_generator_draw(uint64_t key, uint64_t index);

// For real and complex dtypes (two draws per element): low + (high - low) * u, u in [0, 1) with 53
// bits, computed in double and rounded to the dtype.
void harness_generator_reals(uint64_t key, double low, double high, aotc_dtype dtype, void *data,
                             uint64_t count);

// For integer dtypes and bool: low + draw modulo span, modulo 2^64.
void harness_generator_integers(uint64_t key, uint64_t low, uint64_t span, aotc_dtype dtype,
                                void *data, uint64_t count);

#endif
