// The plan of a call: the shape and source of every argument, and all files. It is complete, and
// all errors in it are reported, before a device is used.
#ifndef AOTC_HARNESS_PLAN_H
#define AOTC_HARNESS_PLAN_H

#include "array.h"
#include "options.h"
#include "source.h"

typedef struct harness_input {
  const aotc_value *value;
  harness_source source;
  const char *source_given; // the text that it was parsed from
  harness_array array;      // packed; holds its values after harness_plan_fill
} harness_input;

typedef struct harness_plan {
  const harness_options *options;
  const aotc_entry *entry;
  harness_input *inputs;   // one for each argument
  harness_array *expected; // one for each target; data is NULL if nothing is expected
} harness_plan;

// Reads and checks everything; prints errors on stderr, and returns the exit code.
int harness_plan_make(const harness_options *options, harness_plan *out_plan);

// Generates the values of the arguments that are not read from files.
void harness_plan_fill(harness_plan *plan);

void harness_plan_free(harness_plan *plan);

#endif
