#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void message(const char *kind, const char *format, va_list arguments) {
  // Flushes results that were printed before, so that the message follows them in a shared output.
  fflush(stdout);
  fprintf(stderr, "%s: %s: ", aotc_harness_program.name, kind);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}

void harness_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message("error", format, arguments);
  va_end(arguments);
}

void harness_note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message("note", format, arguments);
  va_end(arguments);
}

void *harness_zeroed(size_t count, size_t size) {
  // The +1 is to avoid zero-byte allocations, for which calloc may return NULL.
  void *memory = calloc(count + 1, size);
  if (memory == NULL) {
    harness_error("out of memory");
    exit(HARNESS_DEVICE_FAILED);
  }
  return memory;
}

void harness_out_of_memory(const char *what, uint64_t bytes) {
  harness_error("out of memory: %s takes %llu bytes", what, (unsigned long long)bytes);
  exit(HARNESS_DEVICE_FAILED);
}

char *harness_string(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = NULL;
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) {
    harness_error("out of memory");
    exit(HARNESS_DEVICE_FAILED);
  }
  return text;
}

// Writes `values` between brackets, separated by commas.
static const char *list_text(char open, char close, bool is_tuple, int32_t rank,
                             const int64_t *values, char out[HARNESS_SHAPE_TEXT]) {
  size_t used = 0;
  out[used++] = open;
  for (int32_t i = 0; i < rank && used + 32 < HARNESS_SHAPE_TEXT; ++i) {
    const char *comma = i > 0 ? ", " : "";
    int written;
    if (values[i] == AOTC_DYNAMIC) {
      written = snprintf(out + used, HARNESS_SHAPE_TEXT - used, "%s?", comma);
    } else {
      written =
          snprintf(out + used, HARNESS_SHAPE_TEXT - used, "%s%lld", comma, (long long)values[i]);
    }
    used += (size_t)written;
  }
  if (is_tuple && rank == 1) {
    out[used++] = ',';
  }
  out[used++] = close;
  out[used] = '\0';
  return out;
}

const char *harness_shape_text(int32_t rank, const int64_t *shape, char out[HARNESS_SHAPE_TEXT]) {
  return list_text('(', ')', true, rank < 0 ? 0 : rank, shape, out);
}

const char *harness_index_text(int32_t rank, const int64_t *shape, uint64_t index,
                               char out[HARNESS_SHAPE_TEXT]) {
  int64_t position[HARNESS_MAX_RANK] = {0};
  for (int32_t i = rank - 1; i >= 0; --i) {
    uint64_t size = (uint64_t)shape[i];
    position[i] = (int64_t)(index % size);
    index /= size;
  }
  return list_text('[', ']', false, rank < 0 ? 0 : rank, position, out);
}

void harness_format_real(double value, int precision, int digits, char out[HARNESS_NUMBER_TEXT]) {
  snprintf(out, HARNESS_NUMBER_TEXT, "%.*g", precision, value);
  // 100, not 1e+02: the format of %g with all digits.
  const char *exponent = strstr(out, "e+");
  if (exponent != NULL && atoi(exponent + 2) < digits) {
    snprintf(out, HARNESS_NUMBER_TEXT, "%.0f", value);
  }
}

const char *harness_real_text(double value, int digits, char out[HARNESS_NUMBER_TEXT]) {
  if (isnan(value)) {
    return strcpy(out, "nan"); // printf would write -nan for some values
  }
  for (int precision = 1; precision <= digits; ++precision) {
    harness_format_real(value, precision, digits, out);
    if (strtod(out, NULL) == value) {
      break;
    }
  }
  return out;
}

bool harness_parse_unsigned(const char *text, uint64_t *out_value) {
  if (!isdigit((unsigned char)text[0])) { // strtoull accepts leading spaces and a sign
    return false;
  }
  bool is_hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (is_hexadecimal && !isxdigit((unsigned char)text[2])) {
    return false;
  }
  char *end;
  errno = 0;
  *out_value = strtoull(text, &end, is_hexadecimal ? 16 : 10);
  return errno == 0 && *end == '\0';
}

bool harness_parse_real(const char *text, double *out_value) {
  if (text[0] == '\0' || isspace((unsigned char)text[0])) {
    return false;
  }
  char *end;
  *out_value = strtod(text, &end);
  return *end == '\0';
}

#define LONGEST_WORD 63

size_t harness_edit_distance(const char *one, const char *other) {
  size_t rows = strlen(one), columns = strlen(other);
  if (rows > LONGEST_WORD || columns > LONGEST_WORD) {
    return SIZE_MAX;
  }
  // Optimal string alignment: three rows of the table are enough.
  size_t before[LONGEST_WORD + 1], last[LONGEST_WORD + 1], now[LONGEST_WORD + 1];
  for (size_t j = 0; j <= columns; ++j) {
    before[j] = 0;
    last[j] = j;
  }
  for (size_t i = 1; i <= rows; ++i) {
    now[0] = i;
    for (size_t j = 1; j <= columns; ++j) {
      size_t best = last[j - 1] + (one[i - 1] != other[j - 1]);
      best = last[j] + 1 < best ? last[j] + 1 : best;
      best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] &&
          before[j - 2] + 1 < best) {
        best = before[j - 2] + 1;
      }
      now[j] = best;
    }
    memcpy(before, last, sizeof(before));
    memcpy(last, now, sizeof(last));
  }
  return last[columns];
}

harness_suggestion harness_suggest(const char *word) {
  return (harness_suggestion){.word = word, .nearest = NULL, .distance = SIZE_MAX};
}

void harness_suggest_try(harness_suggestion *suggestion, const char *candidate) {
  size_t distance = harness_edit_distance(suggestion->word, candidate);
  if (distance < suggestion->distance) {
    suggestion->nearest = candidate;
    suggestion->distance = distance;
  }
}

const char *harness_suggest_result(const harness_suggestion *suggestion) {
  // Up to two edits, and at most half of the word.
  bool is_near = suggestion->distance <= 2 && suggestion->distance * 2 <= strlen(suggestion->word);
  return is_near ? suggestion->nearest : NULL;
}
