// Writes JSON, one value after another, including commas, indentation and escapes.
#ifndef AOTC_HARNESS_JSON_H
#define AOTC_HARNESS_JSON_H

#include <stdio.h>

#include "array.h"

typedef struct harness_json {
  FILE *stream;
  int depth;
  bool needs_comma;
} harness_json;

// `key` is NULL inside lists, and for the outermost object.
void harness_json_open(harness_json *json, const char *key, char bracket); // '{' or '['
void harness_json_close(harness_json *json, char bracket);                 // '}' or ']'
void harness_json_null(harness_json *json, const char *key);
void harness_json_bool(harness_json *json, const char *key, bool value);
void harness_json_integer(harness_json *json, const char *key, int64_t value);
void harness_json_unsigned(harness_json *json, const char *key, uint64_t value);
// JSON has no NaN and no infinities: they become the strings "nan", "inf", "-inf", which Python's
// float() accepts. Other values read back as the same double.
void harness_json_real(harness_json *json, const char *key, double value);
// NULL becomes null. Invalid UTF-8 becomes U+FFFD.
void harness_json_string(harness_json *json, const char *key, const char *value);
// A shape: numbers, or null for AOTC_DYNAMIC.
void harness_json_shape(harness_json *json, const char *key, int32_t rank, const int64_t *shape);
// An element: a number, true or false, or [real, imaginary].
void harness_json_element(harness_json *json, const char *key, const harness_array *array,
                          uint64_t index);
// A device: kind, ordinal, name, capability, multiprocessors, memory_bytes, reason.
void harness_json_device(harness_json *json, const char *key, const aotc_device *device);
// All elements, as nested lists; an empty list if there are none.
void harness_json_array(harness_json *json, const char *key, const harness_array *array);

#endif
