// The random numbers of the inputs. The generator counts: element i depends on the seed, the
// argument's name and i alone, so that any machine, and NumPy, makes the same values in any order.
// docs/harness.md states it, with the NumPy code; a test compares the two.
#ifndef AOTC_HARNESS_GENERATOR_H
#define AOTC_HARNESS_GENERATOR_H

#include "elements.h"

// The key of the stream that an argument of this name draws from.
uint64_t harness_generator_key(uint64_t seed, const char *name);

// Draw `index` of the stream: output `index` of SplitMix64 started at `key`.
uint64_t harness_generator_draw(uint64_t key, uint64_t index);

// Real and complex (two draws an element) dtypes: low + (high - low) * u, u in [0, 1) with 53 bits,
// computed in double and rounded to the dtype.
void harness_generator_reals(uint64_t key, double low, double high, aotc_dtype dtype, void *data,
                             uint64_t count);

// Integer dtypes and bool: low + draw modulo span, modulo 2^64.
void harness_generator_integers(uint64_t key, uint64_t low, uint64_t span, aotc_dtype dtype,
                                void *data, uint64_t count);

#endif
