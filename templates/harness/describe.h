// What the table says, for people and as JSON: --help, --describe, --list-devices, --version.
#ifndef AOTC_HARNESS_DESCRIBE_H
#define AOTC_HARNESS_DESCRIBE_H

#include <stdio.h>

#include "options.h"

void harness_print_help(FILE *stream, const harness_options *options);
void harness_print_version(FILE *stream);
void harness_print_description(FILE *stream, const harness_options *options);
// Returns the exit code: asking for the devices may fail.
int harness_print_devices(FILE *stream, const harness_options *options);

// "cpu", "cuda:0".
const char *harness_device_text(const aotc_device *device, char out[32]);

// A text table: columns as wide as their widest cell, two spaces apart. Cells are owned by it.
typedef struct harness_table {
  int columns, cell_count, capacity;
  char **cells;
} harness_table;
void harness_table_add(harness_table *table, char *cell); // takes it over
// Either ends it: it may be filled anew.
void harness_table_print(harness_table *table, FILE *stream, const char *indent);
void harness_table_discard(harness_table *table);

#endif
