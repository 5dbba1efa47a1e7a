// Sparse tensors read from files, for sparse_tensor.new.
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sparse.h"
#include "utility.h"

#define LONGEST_LINE 4096
#define MOST_DIMENSIONS 64

// Encoding of how a level's coordinate is computed from a dimension's: the kind is above
// LEVEL_KIND_SHIFT, the divisor below it, and the dimension in the lowest bits.
#define LEVEL_KIND_SHIFT 60
#define LEVEL_DIVISOR_SHIFT 20
#define LEVEL_MASK 0xfffffu
#define LEVEL_QUOTIENT 1
#define LEVEL_REMAINDER 2

typedef enum value_class { REAL, INTEGER, COMPLEX } value_class;

typedef struct sparse_reader {
  FILE *file; // NULL if it could not be opened
  const char *name;
  uint64_t line;
  uint64_t rank, count;
  uint64_t file_rank; // one less than the rank if a vector is read as a one-column matrix
  uint64_t sizes[MOST_DIMENSIONS];
  bool is_pattern; // the file has no values: each is 1
  bool has_failed;
  value_class class;
  char text[LONGEST_LINE];
} sparse_reader;

static const value_class CLASSES[] = {[0] = REAL,
#define CLASS(suffix, number, element, class) [number] = class,
                                      SPARSE_VALUES(CLASS)
#undef CLASS
};

// Records a failure and returns false. The reader then has no elements.
static bool fail(sparse_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool fail(sparse_reader *reader, const char *format, ...) {
  char reason[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof(reason), format, arguments);
  va_end(arguments);
  char message[1024];
  snprintf(message, sizeof(message), "sparse tensor from a file: %.600s:%" PRIu64 ": %s",
           reader->name, reader->line, reason);
  aotc_error_adopt(AOTC_INVALID_ARGUMENT, message);
  reader->has_failed = true;
  reader->count = 0;
  return false;
}

static bool read_line(sparse_reader *reader) {
  ++reader->line;
  if (fgets(reader->text, sizeof(reader->text), reader->file) == NULL) {
    return fail(reader, "the file ends here, before all of its elements");
  }
  if (strchr(reader->text, '\n') == NULL && !feof(reader->file)) {
    return fail(reader, "a line has more than %d characters", LONGEST_LINE - 2);
  }
  return true;
}

// Reads the next line that is neither empty nor a comment.
static bool read_content(sparse_reader *reader, char comment) {
  do {
    if (!read_line(reader)) {
      return false;
    }
  } while (reader->text[0] == comment || reader->text[strspn(reader->text, " \t\r\n")] == '\0');
  return true;
}

// Parses a nonnegative number and advances *at.
static bool parse_count(sparse_reader *reader, char **at, uint64_t *out_value) {
  char *start = *at + strspn(*at, " \t");
  errno = 0;
  unsigned long long value = strtoull(start, at, 10);
  if (!isdigit((unsigned char)*start) || errno != 0 || value > INT64_MAX) {
    return fail(reader, "expected a whole number, got '%.40s'", start);
  }
  *out_value = value;
  return true;
}

static bool parse_counts(sparse_reader *reader, char **at, uint64_t *out_values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (!parse_count(reader, at, &out_values[i])) {
      return false;
    }
  }
  return true;
}

static bool read_matrix_market_header(sparse_reader *reader) {
  char header[32], object[32], format[32], field[32], symmetry[32];
  if (!read_line(reader)) {
    return false;
  }
  if (sscanf(reader->text, "%31s %31s %31s %31s %31s", header, object, format, field, symmetry) !=
          5 ||
      strcasecmp(header, "%%MatrixMarket") != 0 || strcasecmp(object, "matrix") != 0 ||
      strcasecmp(format, "coordinate") != 0) {
    return fail(reader, "expected '%%%%MatrixMarket matrix coordinate FIELD SYMMETRY'");
  }
  // Like upstream's reader, only reads the stored elements of a symmetric matrix.
  if (strcasecmp(symmetry, "general") != 0 && strcasecmp(symmetry, "symmetric") != 0) {
    return fail(reader, "the symmetry '%s' is neither general nor symmetric", symmetry);
  }
  if (strcasecmp(field, "pattern") == 0) {
    reader->is_pattern = true;
  } else if (strcasecmp(field, "integer") == 0) {
    reader->class = INTEGER;
  } else if (strcasecmp(field, "complex") == 0) {
    reader->class = COMPLEX;
  } else if (strcasecmp(field, "real") != 0) {
    return fail(reader, "the field '%s' is none of real, integer, complex and pattern", field);
  }
  reader->rank = 2;
  char *at = reader->text;
  return read_content(reader, '%') && parse_counts(reader, &at, reader->sizes, 2) &&
         parse_count(reader, &at, &reader->count);
}

// FROSTT's format with two header lines: the rank and the element count, then the sizes.
static bool read_frostt_header(sparse_reader *reader) {
  char *at = reader->text;
  if (!read_content(reader, '#') || !parse_count(reader, &at, &reader->rank) ||
      !parse_count(reader, &at, &reader->count)) {
    return false;
  }
  if (reader->rank == 0 || reader->rank > MOST_DIMENSIONS) {
    return fail(reader, "a rank of %" PRIu64 " is not from 1 to %d", reader->rank, MOST_DIMENSIONS);
  }
  // The values may have any type that is not complex.
  reader->class = INTEGER;
  at = reader->text;
  return read_content(reader, '#') && parse_counts(reader, &at, reader->sizes, reader->rank);
}

static bool has_ending(const char *name, const char *ending) {
  size_t length = strlen(name);
  return length >= strlen(ending) && strcmp(name + length - strlen(ending), ending) == 0;
}

static bool read_header(sparse_reader *reader, uint64_t rank, const uint64_t *sizes,
                        uint32_t type) {
  bool is_matrix = has_ending(reader->name, ".mtx");
  if (!is_matrix && !has_ending(reader->name, ".tns")) {
    return fail(reader, "expected a file whose name ends in .mtx or .tns");
  }
  reader->file = fopen(reader->name, "r");
  if (reader->file == NULL) {
    return fail(reader, "cannot open the file: %s", strerror(errno));
  }
  if (!(is_matrix ? read_matrix_market_header(reader) : read_frostt_header(reader))) {
    return false;
  }
  value_class class = type < sizeof(CLASSES) / sizeof(*CLASSES) ? CLASSES[type] : REAL;
  if (!reader->is_pattern && class != reader->class &&
      (class == COMPLEX || reader->class != INTEGER)) {
    return fail(reader, "the tensor's type cannot hold the file's values");
  }
  reader->file_rank = reader->rank;
  if (reader->rank == 1 && rank == 2 && sizes[1] == 1) {
    reader->rank = 2;
    reader->sizes[1] = 1;
  }
  if (reader->rank != rank) {
    return fail(reader, "the tensor has %" PRIu64 " dimensions, the file %" PRIu64, rank,
                reader->rank);
  }
  for (uint64_t i = 0; i < rank; ++i) {
    if (sizes[i] != 0 && sizes[i] != reader->sizes[i]) {
      return fail(reader,
                  "the tensor has size %" PRIu64 " in dimension %" PRIu64 ", the file %" PRIu64,
                  sizes[i], i, reader->sizes[i]);
    }
  }
  // Each element takes at least two characters for each coordinate: a larger count is invalid and
  // must not cause a huge allocation.
  long place = ftell(reader->file);
  if (place >= 0 && fseek(reader->file, 0, SEEK_END) == 0) {
    long end = ftell(reader->file);
    if (fseek(reader->file, place, SEEK_SET) != 0 ||
        reader->count > ((uint64_t)(end - place) + 1) / (2 * reader->file_rank)) {
      return fail(reader, "the file is too short for %" PRIu64 " elements", reader->count);
    }
  }
  return true;
}

UTILITY void *_mlir_ciface_createCheckedSparseTensorReader(const char *name, void *sizes,
                                                           uint32_t type) {
  sparse_reader *reader = calloc(1, sizeof(*reader));
  if (reader == NULL) {
    aotc_error_adopt(AOTC_OUT_OF_MEMORY, "sparse tensor from a file: no host memory for a reader");
    return NULL;
  }
  aotc_program_memref memref = aotc_program_memref_of(1, sizes);
  const uint64_t *expected = sparse_elements(sizes, 8);
  uint64_t rank = (uint64_t)memref.sizes[0];
  reader->name = name;
  if (aotc_is_stopped() || rank > MOST_DIMENSIONS || !read_header(reader, rank, expected, type)) {
    reader->has_failed = true;
    reader->count = 0;
    reader->rank = rank > MOST_DIMENSIONS ? MOST_DIMENSIONS : rank;
    memcpy(reader->sizes, expected, reader->rank * sizeof(*expected));
  }
  return reader;
}

// The memref is owned by the reader; the host code must not free it.
UTILITY void _mlir_ciface_getSparseTensorReaderDimSizes(void *out_descriptor, void *reader_) {
  static uint64_t none[MOST_DIMENSIONS];
  sparse_reader *reader = reader_;
  struct {
    uint64_t *allocated, *aligned;
    int64_t offset, size, stride;
  } memref = {NULL, none, 0, MOST_DIMENSIONS, 1};
  if (reader != NULL) {
    memref.aligned = reader->sizes;
    memref.size = (int64_t)reader->rank;
  }
  memcpy(out_descriptor, &memref, sizeof(memref));
}

UTILITY uint64_t getSparseTensorReaderNSE(void *reader) {
  return reader == NULL ? 0 : ((sparse_reader *)reader)->count;
}

UTILITY void delSparseTensorReader(void *reader_) {
  sparse_reader *reader = reader_;
  if (reader != NULL && reader->file != NULL) {
    fclose(reader->file);
  }
  free(reader);
}

// -------------------------------------------------------------------------------------------------
// Elements

static bool parse_real(sparse_reader *reader, char **at, double *out_value) {
  char *start = *at;
  *out_value = strtod(start, at);
  return *at != start || fail(reader, "expected a number, got '%.40s'", start);
}

// Parses an integer of `bytes` bytes, which may be written with a fraction of zeros.
static bool parse_integer(sparse_reader *reader, char **at, int64_t bytes, void *out_value) {
  char *start = *at;
  errno = 0;
  long long value = strtoll(start, at, 10);
  bool is_out = errno != 0;
  if (**at == '.' || **at == 'e' || **at == 'E') {
    double real = strtod(start, at);
    is_out = !(real >= -0x1p63 && real < 0x1p63);
    value = is_out ? 0 : (long long)real;
  }
  if (*at == start) {
    return fail(reader, "expected a number, got '%.40s'", start);
  }
  int unused = 64 - 8 * (int)bytes;
  if (is_out || value < INT64_MIN >> unused || value > INT64_MAX >> unused) {
    return fail(reader, "%.40s is no number of %d bits", start, 8 * (int)bytes);
  }
  memcpy(out_value, &value, (size_t)bytes); // little-endian
  return true;
}

static bool parse_value(sparse_reader *reader, char *at, uint32_t type, int64_t bytes,
                        void *out_value) {
  if (CLASSES[type] == INTEGER) {
    char one[] = "1";
    char *text = reader->is_pattern ? one : at;
    return parse_integer(reader, &text, bytes, out_value);
  }
  double parts[2] = {1, 1};
  int count = CLASSES[type] == COMPLEX ? 2 : 1;
  for (int i = 0; i < count && !reader->is_pattern; ++i) {
    if (!parse_real(reader, &at, &parts[i])) {
      return false;
    }
  }
  if (bytes == 2) {
    bool is_f16 = type == 3;
    uint16_t bits = aotc_program_small_float(parts[0], is_f16 ? 10 : 7, is_f16 ? 15 : 127);
    memcpy(out_value, &bits, sizeof(bits));
  } else if (bytes == 4 * count) {
    float narrow[2] = {(float)parts[0], (float)parts[1]};
    memcpy(out_value, narrow, (size_t)bytes);
  } else {
    memcpy(out_value, parts, (size_t)bytes);
  }
  return true;
}

static uint64_t level_coordinate(uint64_t map, const uint64_t *dimensions) {
  uint64_t kind = map >> LEVEL_KIND_SHIFT;
  if (kind != LEVEL_QUOTIENT && kind != LEVEL_REMAINDER) {
    return dimensions[map];
  }
  uint64_t divisor = map >> LEVEL_DIVISOR_SHIFT & LEVEL_MASK;
  uint64_t coordinate = dimensions[map & LEVEL_MASK];
  return kind == LEVEL_QUOTIENT ? coordinate / divisor : coordinate % divisor;
}

// Parses the coordinates of the next line, counted from 0; *out_at is set to the text after them.
static bool read_coordinates(sparse_reader *reader, uint64_t *out_dimensions, char **out_at) {
  if (!read_line(reader)) {
    return false;
  }
  *out_at = reader->text;
  if (!parse_counts(reader, out_at, out_dimensions, reader->file_rank)) {
    return false;
  }
  if (reader->file_rank < reader->rank) {
    out_dimensions[reader->file_rank] = 1;
  }
  for (uint64_t i = 0; i < reader->rank; ++i) {
    if (out_dimensions[i] == 0 || out_dimensions[i] > reader->sizes[i]) {
      return fail(reader,
                  "the coordinate %" PRIu64 " of dimension %" PRIu64 " is not from 1 to %" PRIu64,
                  out_dimensions[i], i, reader->sizes[i]);
    }
    --out_dimensions[i];
  }
  return true;
}

// Reads the elements and returns whether they are in the order of their level coordinates. After a
// failure the remaining elements are zeros.
static bool read_elements(sparse_reader *reader, void *maps, void *coordinates_,
                          int64_t coordinate_bytes, void *values_, uint32_t type,
                          int64_t value_bytes) {
  if (reader == NULL || reader->has_failed) {
    return true;
  }
  const uint64_t *map = sparse_elements(maps, 8);
  uint64_t level_count = (uint64_t)aotc_program_memref_of(1, maps).sizes[0];
  char *coordinates = sparse_elements(coordinates_, coordinate_bytes);
  char *values = sparse_elements(values_, value_bytes);
  uint64_t count = reader->count;
  memset(coordinates, 0, count * level_count * (size_t)coordinate_bytes);
  memset(values, 0, count * (size_t)value_bytes);
  uint64_t dimensions[MOST_DIMENSIONS];
  uint64_t before[2 * MOST_DIMENSIONS] = {0};
  bool is_sorted = true;
  for (uint64_t i = 0; i < count; ++i, values += value_bytes) {
    char *at = NULL;
    if (!read_coordinates(reader, dimensions, &at) ||
        !parse_value(reader, at, type, value_bytes, values)) {
      return true;
    }
    bool is_equal = true; // to the previous element, in the levels so far
    for (uint64_t k = 0; k < level_count; ++k, coordinates += coordinate_bytes) {
      uint64_t coordinate = level_coordinate(map[k], dimensions);
      if (coordinate_bytes < 8 && coordinate >> (8 * coordinate_bytes) != 0) {
        return fail(reader, "the coordinate %" PRIu64 " has more than %d bits", coordinate,
                    8 * (int)coordinate_bytes);
      }
      is_sorted = is_sorted && !(is_equal && coordinate < before[k]);
      is_equal = is_equal && coordinate == before[k];
      before[k] = coordinate;
      memcpy(coordinates, &coordinate, (size_t)coordinate_bytes); // little-endian
    }
  }
  return is_sorted;
}

#define DEFINE_READ(width, coordinate_bytes, suffix, number, element)                              \
  UTILITY bool _mlir_ciface_getSparseTensorReaderReadToBuffers##width##suffix(                     \
      void *reader, void *levels, void *dimensions, void *coordinates, void *values) {             \
    (void)dimensions;                                                                              \
    return read_elements(reader, levels, coordinates, coordinate_bytes, values, number,            \
                         aotc_program_##element.bytes);                                            \
  }
#define DEFINE_READS(suffix, number, element, class)                                               \
  DEFINE_READ(0, 8, suffix, number, element)                                                       \
  DEFINE_READ(8, 1, suffix, number, element)                                                       \
  DEFINE_READ(16, 2, suffix, number, element)                                                      \
  DEFINE_READ(32, 4, suffix, number, element)                                                      \
  DEFINE_READ(64, 8, suffix, number, element)

SPARSE_VALUES(DEFINE_READS)

UTILITY const char *getTensorFilename(uint64_t number) {
  char variable[32];
  snprintf(variable, sizeof(variable), "TENSOR%" PRIu64, number);
  const char *name = getenv(variable);
  if (name == NULL) {
    char message[128];
    snprintf(message, sizeof(message), "getTensorFilename: the environment has no variable %s",
             variable);
    aotc_error_adopt(AOTC_INVALID_ARGUMENT, message);
    return "";
  }
  return name;
}
