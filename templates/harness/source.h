// Sources of arguments' values: parses a SOURCE of the command line, and checks it against the
// argument.
#ifndef AOTC_HARNESS_SOURCE_H
#define AOTC_HARNESS_SOURCE_H

#include "elements.h"

typedef enum harness_source_kind {
  HARNESS_SOURCE_POISON,  // marked as unwritten: for arguments that the entry only writes
  HARNESS_SOURCE_INITIAL, // the initial value of the state's field that the argument is
  HARNESS_SOURCE_FILE,
  HARNESS_SOURCE_RANDOM,
  HARNESS_SOURCE_ZEROS,
  HARNESS_SOURCE_ONES,
  HARNESS_SOURCE_ARANGE,
  HARNESS_SOURCE_NUMBER,
} harness_source_kind;

typedef struct harness_source {
  harness_source_kind kind;
  const char *path; // FILE: as given
  uint64_t seed;    // RANDOM
  // RANDOM, real dtypes: values in [low, high). The texts are NULL if not given.
  double low, high;
  const char *range_text;
  // RANDOM, integer dtypes: low + (a draw modulo span).
  uint64_t integer_low, integer_span;
  // NUMBER: an integer's bits, or a real and an imaginary part.
  uint64_t integer;
  double real, imaginary;
} harness_source;

// The default source of an argument: "random", "zeros", ...; NULL: a source is required.
const char *harness_source_default(const aotc_value *value);

// Parses `text` for that argument; on failure writes the reason to out_problem and returns false.
// `seed` is the default for a random source. `text` must outlive the source.
bool harness_source_parse(const char *text, const aotc_value *value, uint64_t seed,
                          harness_source *out_source, char out_problem[HARNESS_PROBLEM_TEXT]);

// A source text that gives the same values again: "random:seed=0".
const char *harness_source_text(const harness_source *source, const char *given,
                                char out[HARNESS_PROBLEM_TEXT]);

// Generates the packed values of any source except a file and a field of the state. Random values
// depend on `name`.
void harness_source_fill(const harness_source *source, const char *name, aotc_dtype dtype,
                         void *data, uint64_t count);

#endif
