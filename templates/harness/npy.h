// NumPy's .npy files. Reads versions 1.0, 2.0 and 3.0, both byte orders, C and Fortran order;
// writes version 1.0, little-endian, C order.
#ifndef AOTC_HARNESS_NPY_H
#define AOTC_HARNESS_NPY_H

#include <stddef.h>
#include <stdio.h>

#include "array.h"
#include "output.h"

typedef struct harness_npy_header {
  char descr[32]; // "<f4"
  bool is_fortran;
  int32_t rank;
  int64_t shape[HARNESS_MAX_RANK];
} harness_npy_header;

// Parses a header, which is a Python literal: {'descr': '<f4', 'fortran_order': False,
// 'shape': (2, 3), }, and nothing else. On failure writes the reason and returns false.
bool harness_npy_parse(const char *text, size_t length, int major_version,
                       harness_npy_header *out_header, char out_problem[HARNESS_PROBLEM_TEXT]);

// "float32", or the descr itself if it is not a supported dtype.
const char *harness_npy_dtype_name(const harness_npy_header *header);

// Whether the elements of such a file are of that dtype. bfloat16, which NumPy lacks, may be stored
// as V2 (by ml_dtypes) or as u2 (its bits), and a signed integer as an unsigned one of its bits.
bool harness_npy_holds(const harness_npy_header *header, aotc_dtype dtype);

typedef struct harness_npy_file {
  FILE *stream;
  harness_npy_header header;
  int64_t data_bytes; // the size of the data after the header; -1 if the file is not regular
  // If one of `parts` equal parts along `axis` is read, the header has the shape of the part.
  int32_t axis;
  int64_t part, parts;
} harness_npy_file;

// Opens a file and reads its header. On failure writes the reason (without the path) and closes it.
bool harness_npy_open(const char *path, harness_npy_file *out_file,
                      char out_problem[HARNESS_PROBLEM_TEXT]);
// Selects one of several equal parts of the array to be read. On failure writes the reason.
bool harness_npy_take_part(harness_npy_file *file, int64_t axis, int64_t part, int64_t parts,
                           char out_problem[HARNESS_PROBLEM_TEXT]);
// Reads the elements into `array`, which has the header's shape, a dtype that matches the file, and
// allocated data.
bool harness_npy_read(harness_npy_file *file, harness_array *array,
                      char out_problem[HARNESS_PROBLEM_TEXT]);
// Whether the data after the header can have that many bytes, without reading it.
bool harness_npy_check_size(const harness_npy_file *file, uint64_t bytes,
                            char out_problem[HARNESS_PROBLEM_TEXT]);
void harness_npy_close(harness_npy_file *file);

// Writes an array to a stream; false if a write failed (errno has the reason).
bool harness_npy_write(FILE *stream, const harness_array *array);

#endif
