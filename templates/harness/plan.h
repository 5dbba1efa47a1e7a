// What will be called with what: every argument's shape and source, every file that was named. It
// is complete, and all its mistakes are told, before a device is touched.
#ifndef AOTC_HARNESS_PLAN_H
#define AOTC_HARNESS_PLAN_H

#include "array.h"
#include "options.h"
#include "source.h"

typedef struct harness_input {
  const aotc_value *value;
  harness_source source;
  const char *source_given; // the text that it was read from
  harness_array array;      // packed; holds its values after harness_plan_fill
} harness_input;

typedef struct harness_plan {
  const harness_options *options;
  const aotc_entry *entry;
  harness_input *inputs;   // one for each argument
  harness_array *expected; // one for each target; data is NULL where nothing is expected
} harness_plan;

// Reads and checks everything; returns the exit code, having said on stderr what is wrong.
int harness_plan_make(const harness_options *options, harness_plan *out_plan);

// Makes the values of the arguments that no file gave.
void harness_plan_fill(harness_plan *plan);

void harness_plan_free(harness_plan *plan);

#endif
