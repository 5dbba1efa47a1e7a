// Words for people: messages on stderr, numbers and shapes as text, and numbers read from text.
#ifndef AOTC_HARNESS_TEXT_H
#define AOTC_HARNESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The exit codes of every executable that aotc makes.
enum {
  HARNESS_OK = 0,
  HARNESS_MISMATCH = 1,      // a result differs from what --expect gave
  HARNESS_USAGE = 2,         // the command line, an input file or an output place
  HARNESS_NO_DEVICE = 3,     // nothing here can run the kernels
  HARNESS_DEVICE_FAILED = 4, // the device, or the memory of this machine, gave out
};

// Large enough for the text of any shape or index.
#define HARNESS_SHAPE_TEXT 1536
// Large enough for the text of any one element.
#define HARNESS_NUMBER_TEXT 96
// Large enough for a sentence about a file or a source.
#define HARNESS_PROBLEM_TEXT 2048

// Prints "NAME: error: ..." and a line end on stderr; NAME is the program's.
void harness_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints "NAME: note: ..." and a line end on stderr.
void harness_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Zeroed memory for small bookkeeping; never NULL: without it the process ends, with exit code 4.
void *harness_zeroed(size_t count, size_t size);

// Says that this much memory is not there for `what`, and ends the process with exit code 4.
void harness_out_of_memory(const char *what, uint64_t bytes) __attribute__((noreturn));

// A new string, printed as printf does.
char *harness_string(const char *format, ...) __attribute__((format(printf, 1, 2)));

// "(128, 64)", "(5,)", "()" as NumPy writes a shape; '?' where it is AOTC_DYNAMIC.
const char *harness_shape_text(int32_t rank, const int64_t *shape, char out[HARNESS_SHAPE_TEXT]);

// "[3, 5]": the position of the row-major element `index` of an array of that shape.
const char *harness_index_text(int32_t rank, const int64_t *shape, uint64_t index,
                               char out[HARNESS_SHAPE_TEXT]);

// The shortest decimal text that reads back as the same double, of at most `digits` digits.
const char *harness_real_text(double value, int digits, char out[HARNESS_NUMBER_TEXT]);

// The value to `precision` digits; without an exponent where it has less than `digits` digits.
void harness_format_real(double value, int precision, int digits, char out[HARNESS_NUMBER_TEXT]);

// Whole texts only: the number must be all there is. Decimal, or hexadecimal with 0x.
bool harness_parse_unsigned(const char *text, uint64_t *out_value);
// A double as strtod reads it, "inf" and "nan" too.
bool harness_parse_real(const char *text, double *out_value);

// How many edits (insert, delete, replace, swap neighbours) lead from one word to the other.
size_t harness_edit_distance(const char *one, const char *other);

// Keeps the nearest of the words it is shown.
typedef struct harness_suggestion {
  const char *word, *nearest;
  size_t distance;
} harness_suggestion;
harness_suggestion harness_suggest(const char *word);
void harness_suggest_try(harness_suggestion *suggestion, const char *candidate);
// The nearest word when it is near enough to be a slip of the finger, else NULL.
const char *harness_suggest_result(const harness_suggestion *suggestion);

#endif
