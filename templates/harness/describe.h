// The contents of the table, as text and as JSON: --help, --describe, --list-devices, --version.
#ifndef AOTC_HARNESS_DESCRIBE_H
#define AOTC_HARNESS_DESCRIBE_H

#include <stdio.h>

#include "options.h"

void harness_print_help(FILE *stream, const harness_options *options);
void harness_print_version(FILE *stream);
void harness_print_description(FILE *stream, const harness_options *options);
// Returns the exit code: listing the devices may fail.
int harness_print_devices(FILE *stream, const harness_options *options);

// "cpu", "cuda:0".
const char *harness_device_text(const aotc_device *device, char out[32]);

// A text table: columns are as wide as their widest cell, two spaces apart. The table owns its
// cells.
typedef struct harness_table {
  int columns, cell_count, capacity;
  char **cells;
} harness_table;
void harness_table_add(harness_table *table, char *cell); // takes ownership of the cell
// Each of these empties the table, which may be filled again.
void harness_table_print(harness_table *table, FILE *stream, const char *indent);
void harness_table_discard(harness_table *table);

#endif
