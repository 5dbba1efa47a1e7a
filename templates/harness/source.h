// Where an argument's values come from: the SOURCE of the command line, read and checked against
// the argument that it is for.
#ifndef AOTC_HARNESS_SOURCE_H
#define AOTC_HARNESS_SOURCE_H

#include "elements.h"

typedef enum harness_source_kind {
  HARNESS_SOURCE_POISON,  // left unset: what the entry only writes
  HARNESS_SOURCE_INITIAL, // what the field of the state begins with that the argument is
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
  // RANDOM, real dtypes: values of [low, high). The texts are NULL when not given.
  double low, high;
  const char *range_text;
  // RANDOM, integer dtypes: low + (a draw modulo span).
  uint64_t integer_low, integer_span;
  // NUMBER: an integer's bits, or a real and an imaginary part.
  uint64_t integer;
  double real, imaginary;
} harness_source;

// "random", "zeros", ... what an argument gets when none is given; NULL: it must be given.
const char *harness_source_default(const aotc_value *value);

// Reads `text` for that argument; on failure writes why to out_problem and returns false. `seed` is
// for a random source that gives none. `text` must outlive the source.
bool harness_source_parse(const char *text, const aotc_value *value, uint64_t seed,
                          harness_source *out_source, char out_problem[HARNESS_PROBLEM_TEXT]);

// The source as text that gives the same values again: "random:seed=0".
const char *harness_source_text(const harness_source *source, const char *given,
                                char out[HARNESS_PROBLEM_TEXT]);

// The packed values of any source but a file and a field of the state. `name` takes part in what
// random draws.
void harness_source_fill(const harness_source *source, const char *name, aotc_dtype dtype,
                         void *data, uint64_t count);

#endif
