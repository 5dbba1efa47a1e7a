// Messages on stderr, numbers and shapes as text, and parsing of numbers.
#ifndef AOTC_HARNESS_TEXT_H
#define AOTC_HARNESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The exit codes of every executable that aotc makes.
enum {
  HARNESS_OK = 0,
  HARNESS_MISMATCH = 1,      // a result differs from what --expect gave
  HARNESS_USAGE = 2,         // the command line, an input file or an output path is invalid
  HARNESS_NO_DEVICE = 3,     // no available device can run the kernels
  HARNESS_DEVICE_FAILED = 4, // the device failed, or this machine's memory is exhausted
};

// Large enough for the text of any shape or index.
#define HARNESS_SHAPE_TEXT 1536
// Large enough for the text of any one element.
#define HARNESS_NUMBER_TEXT 96
// Large enough for a sentence about a file or a source.
#define HARNESS_PROBLEM_TEXT 2048

// Prints "NAME: error: ..." and a newline on stderr; NAME is the program's.
void harness_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints "NAME: note: ..." and a newline on stderr.
void harness_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Zeroed memory for small data; never NULL: if the allocation fails, ends with exit code 4.
void *harness_zeroed(size_t count, size_t size);

// Prints that this much memory for `what` is not available, and ends the process with exit code 4.
void harness_out_of_memory(const char *what, uint64_t bytes) __attribute__((noreturn));

// A new string, formatted as printf does.
char *harness_string(const char *format, ...) __attribute__((format(printf, 1, 2)));

// "(128, 64)", "(5,)", "()" as NumPy writes a shape; '?' for AOTC_DYNAMIC.
const char *harness_shape_text(int32_t rank, const int64_t *shape, char out[HARNESS_SHAPE_TEXT]);

// "[3, 5]": the position of the row-major element `index` of an array of that shape.
const char *harness_index_text(int32_t rank, const int64_t *shape, uint64_t index,
                               char out[HARNESS_SHAPE_TEXT]);

// The shortest decimal text that reads back as the same double, of at most `digits` digits.
const char *harness_real_text(double value, int digits, char out[HARNESS_NUMBER_TEXT]);

// The value with `precision` digits; without an exponent if it has fewer than `digits` digits.
void harness_format_real(double value, int precision, int digits, char out[HARNESS_NUMBER_TEXT]);

// Parse whole texts, without trailing characters. Integers are decimal, or hexadecimal with 0x.
bool harness_parse_unsigned(const char *text, uint64_t *out_value);
// A double in strtod's syntax, including "inf" and "nan".
bool harness_parse_real(const char *text, double *out_value);

// The edit distance of two words (insertions, deletions, replacements, swaps of neighbours).
size_t harness_edit_distance(const char *one, const char *other);

// Keeps the word with the smallest distance among those it is given.
typedef struct harness_suggestion {
  const char *word, *nearest;
  size_t distance;
} harness_suggestion;
harness_suggestion harness_suggest(const char *word);
void harness_suggest_try(harness_suggestion *suggestion, const char *candidate);
// The nearest word if it is similar enough to be a typing error, otherwise NULL.
const char *harness_suggest_result(const harness_suggestion *suggestion);

#endif
