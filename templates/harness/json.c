#include "json.h"

#include <math.h>
#include <string.h>

// The length of the UTF-8 sequence that starts here; 0 if it is invalid.
static int utf8_length(const unsigned char *at) {
  int length = at[0] < 0x80                     ? 1
               : at[0] >= 0xc2 && at[0] <= 0xdf ? 2
               : at[0] >= 0xe0 && at[0] <= 0xef ? 3
               : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                : 0;
  for (int i = 1; i < length; ++i) {
    if ((at[i] & 0xc0) != 0x80) {
      return 0;
    }
  }
  bool is_overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
  bool is_surrogate = at[0] == 0xed && at[1] > 0x9f;
  bool is_beyond = at[0] == 0xf4 && at[1] > 0x8f;
  return is_overlong || is_surrogate || is_beyond ? 0 : length;
}

static void write_string(FILE *stream, const char *text) {
  fputc('"', stream);
  const unsigned char *at = (const unsigned char *)text;
  while (*at != '\0') {
    int length = utf8_length(at);
    if (length == 0) {
      fputs("\\ufffd", stream);
      ++at;
    } else if (*at == '"' || *at == '\\') {
      fprintf(stream, "\\%c", *at++);
    } else if (*at < 0x20) {
      fprintf(stream, "\\u%04x", *at++);
    } else {
      fwrite(at, 1, (size_t)length, stream);
      at += length;
    }
  }
  fputc('"', stream);
}

// Writes the text before a value: comma, newline, indentation, key.
static void begin_value(harness_json *json, const char *key) {
  if (json->needs_comma) {
    fputc(',', json->stream);
  }
  if (json->depth > 0) {
    fprintf(json->stream, "\n%*s", 2 * json->depth, "");
  }
  if (key != NULL) {
    write_string(json->stream, key);
    fputs(": ", json->stream);
  }
  json->needs_comma = true;
}

void harness_json_open(harness_json *json, const char *key, char bracket) {
  begin_value(json, key);
  fputc(bracket, json->stream);
  ++json->depth;
  json->needs_comma = false;
}

void harness_json_close(harness_json *json, char bracket) {
  --json->depth;
  if (json->needs_comma) { // the object or list is not empty
    fprintf(json->stream, "\n%*s", 2 * json->depth, "");
  }
  fputc(bracket, json->stream);
  json->needs_comma = true;
  if (json->depth == 0) {
    fputc('\n', json->stream);
  }
}

void harness_json_null(harness_json *json, const char *key) {
  begin_value(json, key);
  fputs("null", json->stream);
}

void harness_json_bool(harness_json *json, const char *key, bool value) {
  begin_value(json, key);
  fputs(value ? "true" : "false", json->stream);
}

void harness_json_integer(harness_json *json, const char *key, int64_t value) {
  begin_value(json, key);
  fprintf(json->stream, "%lld", (long long)value);
}

void harness_json_unsigned(harness_json *json, const char *key, uint64_t value) {
  begin_value(json, key);
  fprintf(json->stream, "%llu", (unsigned long long)value);
}

static void write_real(FILE *stream, double value, int digits) {
  char text[HARNESS_NUMBER_TEXT];
  harness_real_text(value, digits, text);
  fprintf(stream, isfinite(value) ? "%s" : "\"%s\"", text);
}

void harness_json_real(harness_json *json, const char *key, double value) {
  begin_value(json, key);
  write_real(json->stream, value, 17);
}

void harness_json_string(harness_json *json, const char *key, const char *value) {
  if (value == NULL) {
    harness_json_null(json, key);
    return;
  }
  begin_value(json, key);
  write_string(json->stream, value);
}

void harness_json_shape(harness_json *json, const char *key, int32_t rank, const int64_t *shape) {
  begin_value(json, key);
  fputc('[', json->stream);
  for (int32_t i = 0; i < rank; ++i) {
    fputs(i > 0 ? ", " : "", json->stream);
    if (shape[i] == AOTC_DYNAMIC) {
      fputs("null", json->stream);
    } else {
      fprintf(json->stream, "%lld", (long long)shape[i]);
    }
  }
  fputc(']', json->stream);
}

static void write_element(FILE *stream, const harness_array *array, uint64_t index) {
  char text[HARNESS_NUMBER_TEXT];
  const void *data = array->data;
  switch (harness_facts(array->dtype)->kind) {
  case HARNESS_KIND_BOOL: {
    uint64_t byte = harness_load_integer(array->dtype, data, index);
    if (byte > 1) {
      fprintf(stream, "%d", (int)byte);
    } else {
      fputs(byte != 0 ? "true" : "false", stream);
    }
    break;
  }
  case HARNESS_KIND_COMPLEX:
    fputc('[', stream);
    write_real(stream, harness_load_real(array->dtype, data, 2 * index), 17);
    fputs(", ", stream);
    write_real(stream, harness_load_real(array->dtype, data, 2 * index + 1), 17);
    fputc(']', stream);
    break;
  case HARNESS_KIND_REAL:
    write_real(stream, harness_load_real(array->dtype, data, index), 17);
    break;
  default:
    fputs(harness_element_text(array->dtype, data, index, 0, text), stream);
    break;
  }
}

void harness_json_element(harness_json *json, const char *key, const harness_array *array,
                          uint64_t index) {
  begin_value(json, key);
  write_element(json->stream, array, index);
}

// Writes the elements of one dimension and returns the index after the last.
static uint64_t write_dimension(FILE *stream, const harness_array *array, int32_t dimension,
                                uint64_t index) {
  if (dimension == array->rank) {
    write_element(stream, array, index);
    return index + 1;
  }
  fputc('[', stream);
  for (int64_t i = 0; i < array->shape[dimension]; ++i) {
    fputs(i > 0 ? ", " : "", stream);
    index = write_dimension(stream, array, dimension + 1, index);
  }
  fputc(']', stream);
  return index;
}

void harness_json_array(harness_json *json, const char *key, const harness_array *array) {
  begin_value(json, key);
  if (array->count == 0) {
    // The shape may have 2^62 rows without elements.
    fputs("[]", json->stream);
    return;
  }
  write_dimension(json->stream, array, 0, 0);
}

void harness_json_device(harness_json *json, const char *key, const aotc_device *device) {
  bool is_cuda = device->kind == AOTC_DEVICE_CUDA;
  harness_json_open(json, key, '{');
  harness_json_string(json, "kind", is_cuda ? "cuda" : "cpu");
  harness_json_integer(json, "ordinal", device->ordinal);
  harness_json_string(json, "name", device->name);
  if (is_cuda) {
    int64_t capability[2] = {device->capability_major, device->capability_minor};
    harness_json_shape(json, "capability", 2, capability);
  } else {
    harness_json_null(json, "capability");
  }
  harness_json_integer(json, "multiprocessors", device->multiprocessors);
  harness_json_unsigned(json, "memory_bytes", device->memory_bytes);
  harness_json_string(json, "reason", device->reason[0] != '\0' ? device->reason : NULL);
  harness_json_close(json, '}');
}
