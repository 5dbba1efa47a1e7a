// The command line, as values. The options are the same in every program; the names of arguments
// are those in the table.
#ifndef AOTC_HARNESS_OPTIONS_H
#define AOTC_HARNESS_OPTIONS_H

#include <stdio.h>

#include "harness.h"

typedef struct harness_options {
  const aotc_entry *entry; // NULL: none is named, and there are several
  bool has_entry_name;     // whether the command line names it
  bool help, version, describe, list_devices, json, quiet;
  const char *device; // NULL: AOTC_DEVICE decides, otherwise auto
  uint64_t seed, repeat, warmup;
  bool has_rtol, has_atol;
  double rtol, atol;
  // One for each argument of the entry; NULL: not given.
  const char **sources, **dimensions;
  // One for each target: arguments by their index, then the results.
  const char **outs, **expects;
  bool *prints;
} harness_options;

// Parses argv; on failure prints the reason on stderr and returns false. Keeps pointers into argv.
// Sources and dimensions are checked against their arguments later.
bool harness_options_parse(int argc, char **argv, harness_options *out_options);
void harness_options_free(harness_options *options);

int32_t harness_target_count(const aotc_entry *entry);
const aotc_value *harness_target(const aotc_entry *entry, int32_t target);

// Whether `--NAME` is an option of every program; an argument of this name then needs --arg.
bool harness_is_option_name(const char *name);

// The list of options for --help.
void harness_options_print(FILE *stream);

#endif
