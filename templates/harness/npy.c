#include "npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipes.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
// How .npz files begin.
#define ZIP_MAGIC "PK\x03\x04"
// NumPy does not accept headers of more than 10000 characters, either.
#define LONGEST_HEADER 65536
// NumPy aligns the data to a multiple of this.
#define DATA_ALIGNMENT 64

// --- the header, a Python literal ---

typedef struct cursor {
  const char *at, *end;
  bool allows_long; // 3L, as Python 2 writes long integers
} cursor;

static void skip_spaces(cursor *text) {
  while (text->at < text->end && strchr(" \t\r\n\f", *text->at) != NULL && *text->at != '\0') {
    ++text->at;
  }
}

// Consumes that character, after any spaces.
static bool take(cursor *text, char wanted) {
  skip_spaces(text);
  if (text->at < text->end && *text->at == wanted) {
    ++text->at;
    return true;
  }
  return false;
}

static bool take_word(cursor *text, const char *word) {
  size_t length = strlen(word);
  skip_spaces(text);
  if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0) {
    return false;
  }
  text->at += length;
  return true;
}

// Parses a quoted string without escapes, which no header needs.
static bool take_string(cursor *text, char *out, size_t capacity) {
  skip_spaces(text);
  if (text->at == text->end || (*text->at != '\'' && *text->at != '"')) {
    return false;
  }
  char quote = *text->at++;
  size_t length = 0;
  while (text->at < text->end && *text->at != quote) {
    char c = *text->at++;
    if (c == '\\' || c < ' ' || c > '~' || length + 1 >= capacity) {
      return false;
    }
    out[length++] = c;
  }
  out[length] = '\0';
  return take(text, quote);
}

static bool take_size(cursor *text, int64_t *out_size) {
  skip_spaces(text);
  const char *start = text->at;
  int64_t size = 0;
  while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
    if (__builtin_mul_overflow(size, (int64_t)10, &size) ||
        __builtin_add_overflow(size, (int64_t)(*text->at - '0'), &size)) {
      return false;
    }
    ++text->at;
  }
  *out_size = size;
  if (text->at == start) {
    return false;
  }
  if (text->allows_long) {
    take(text, 'L');
  }
  return true;
}

static bool take_shape(cursor *text, harness_npy_header *header) {
  if (!take(text, '(')) {
    return false;
  }
  header->rank = 0;
  while (!take(text, ')')) {
    if (header->rank == HARNESS_MAX_RANK || !take_size(text, &header->shape[header->rank])) {
      return false;
    }
    ++header->rank;
    bool has_comma = take(text, ',');
    if (!has_comma) {
      // (3) is a number in Python, not a tuple.
      return header->rank > 1 && take(text, ')');
    }
  }
  return true;
}

bool harness_npy_parse(const char *text, size_t length, int major_version,
                       harness_npy_header *out_header, char out_problem[HARNESS_PROBLEM_TEXT]) {
  cursor at = {.at = text, .end = text + length, .allows_long = major_version < 3};
  bool has_descr = false, has_order = false, has_shape = false, is_good = take(&at, '{');
  const char *problem = "its header is malformed";
  while (is_good && !take(&at, '}')) {
    char key[32];
    is_good = take_string(&at, key, sizeof(key)) && take(&at, ':');
    if (!is_good) {
      break;
    }
    if (strcmp(key, "descr") == 0 && !has_descr) {
      skip_spaces(&at);
      if (at.at < at.end && *at.at == '[') {
        problem = "it holds records, and an argument has one type";
      }
      has_descr = is_good = take_string(&at, out_header->descr, sizeof(out_header->descr));
    } else if (strcmp(key, "fortran_order") == 0 && !has_order) {
      out_header->is_fortran = take_word(&at, "True");
      has_order = is_good = out_header->is_fortran || take_word(&at, "False");
    } else if (strcmp(key, "shape") == 0 && !has_shape) {
      has_shape = is_good = take_shape(&at, out_header);
      problem = is_good ? problem : "the shape in its header is malformed or too large";
    } else {
      is_good = false;
    }
    if (is_good && !take(&at, ',')) {
      is_good = take(&at, '}');
      break;
    }
  }
  skip_spaces(&at);
  if (!is_good || at.at != at.end || !has_descr || !has_order || !has_shape) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "%s", problem);
    return false;
  }
  return true;
}

// --- dtypes ---

// The type without its byte order: "f4" of "<f4".
static const char *descr_type(const harness_npy_header *header) {
  const char *descr = header->descr;
  return descr[0] != '\0' && strchr("<>=|", descr[0]) != NULL ? descr + 1 : descr;
}

static bool type_is(const harness_npy_header *header, aotc_dtype dtype) {
  const harness_dtype_facts *facts = harness_facts(dtype);
  // '|' means that there is no byte order, which is wrong for types of several bytes.
  bool has_order = header->descr[0] != '|';
  return strcmp(descr_type(header), facts->npy) == 0 &&
         (has_order || facts->bytes == 1 || dtype == AOTC_DTYPE_BF16);
}

const char *harness_npy_dtype_name(const harness_npy_header *header) {
  for (int dtype = AOTC_DTYPE_BOOL; dtype <= AOTC_DTYPE_C128; ++dtype) {
    if (dtype != AOTC_DTYPE_BF16 && type_is(header, (aotc_dtype)dtype)) {
      return harness_facts((aotc_dtype)dtype)->name;
    }
  }
  return header->descr;
}

// The type that other programs may have for the same bits, or the type itself. MLIR's integers
// without a sign have a signed type here: its operations decide.
static aotc_dtype type_of_same_bits(aotc_dtype dtype) {
  switch (dtype) {
  case AOTC_DTYPE_I8:
  case AOTC_DTYPE_F8E4M3FN:
  case AOTC_DTYPE_F8E5M2:
    return AOTC_DTYPE_U8;
  case AOTC_DTYPE_I16:
  case AOTC_DTYPE_BF16:
    return AOTC_DTYPE_U16;
  case AOTC_DTYPE_I32:
    return AOTC_DTYPE_U32;
  case AOTC_DTYPE_I64:
    return AOTC_DTYPE_U64;
  default:
    return dtype;
  }
}

bool harness_npy_holds(const harness_npy_header *header, aotc_dtype dtype) {
  return type_is(header, dtype) || type_is(header, type_of_same_bits(dtype));
}

// --- reading ---

static bool fail(harness_npy_file *file, const char *problem,
                 char out_problem[HARNESS_PROBLEM_TEXT]) {
  snprintf(out_problem, HARNESS_PROBLEM_TEXT, "%s", problem);
  harness_npy_close(file);
  return false;
}

static bool read_header(harness_npy_file *file, char out_problem[HARNESS_PROBLEM_TEXT]) {
  unsigned char start[MAGIC_BYTES + 2], size[4] = {0};
  size_t count = fread(start, 1, sizeof(start), file->stream);
  if (count == sizeof(start) && memcmp(start, ZIP_MAGIC, strlen(ZIP_MAGIC)) == 0) {
    return fail(file, "it is an archive (.npz): save one of its arrays as .npy, by numpy.save",
                out_problem);
  }
  if (count != sizeof(start) || memcmp(start, MAGIC, MAGIC_BYTES) != 0) {
    return fail(file, ferror(file->stream) ? strerror(errno) : "it is not a .npy file",
                out_problem);
  }
  int major = start[MAGIC_BYTES], minor = start[MAGIC_BYTES + 1];
  if (major < 1 || major > 3 || minor != 0) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT,
             "it is of .npy version %d.%d; this program reads 1.0, 2.0 and 3.0", major, minor);
    harness_npy_close(file);
    return false;
  }
  size_t size_bytes = major == 1 ? 2 : 4;
  if (fread(size, 1, size_bytes, file->stream) != size_bytes) {
    return fail(file, "it ends inside its header", out_problem);
  }
  size_t length = size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 | (size_t)size[3] << 24;
  if (length > LONGEST_HEADER) {
    return fail(file, "its header is longer than any array's", out_problem);
  }
  char *text = harness_zeroed(length, 1);
  bool is_whole = fread(text, 1, length, file->stream) == length;
  bool is_good = is_whole && harness_npy_parse(text, length, major, &file->header, out_problem);
  free(text);
  if (!is_whole) {
    return fail(file, "it ends inside its header", out_problem);
  }
  if (!is_good) {
    harness_npy_close(file);
    return false;
  }
  if (file->data_bytes >= 0) {
    file->data_bytes -= (int64_t)(sizeof(start) + size_bytes + length);
  }
  return true;
}

bool harness_npy_open(const char *path, harness_npy_file *out_file,
                      char out_problem[HARNESS_PROBLEM_TEXT]) {
  *out_file = (harness_npy_file){
      .stream = harness_open_to_read(path, out_problem), .data_bytes = -1, .parts = 1};
  if (out_file->stream == NULL) {
    return false;
  }
  struct stat status;
  if (fstat(fileno(out_file->stream), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      return fail(out_file, strerror(EISDIR), out_problem);
    }
    if (S_ISREG(status.st_mode)) {
      out_file->data_bytes = (int64_t)status.st_size;
    }
  }
  return read_header(out_file, out_problem);
}

void harness_npy_close(harness_npy_file *file) {
  if (file->stream != NULL) {
    fclose(file->stream); // opened for reading: no data can be lost
    file->stream = NULL;
  }
}

bool harness_npy_check_size(const harness_npy_file *file, uint64_t bytes,
                            char out_problem[HARNESS_PROBLEM_TEXT]) {
  bytes *= (uint64_t)file->parts;
  if (file->data_bytes < 0 || (uint64_t)file->data_bytes == bytes) {
    return true;
  }
  snprintf(out_problem, HARNESS_PROBLEM_TEXT,
           "its shape and dtype take %llu bytes, and %lld follow its header",
           (unsigned long long)bytes, (long long)file->data_bytes);
  return false;
}

bool harness_npy_take_part(harness_npy_file *file, int64_t axis, int64_t part, int64_t parts,
                           char out_problem[HARNESS_PROBLEM_TEXT]) {
  harness_npy_header *header = &file->header;
  if (axis < 0 || axis >= header->rank) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "it has no dimension %lld", (long long)axis);
    return false;
  }
  if (header->shape[axis] % parts != 0) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT,
             "dimension %lld, of size %lld, has no %lld equal parts", (long long)axis,
             (long long)header->shape[axis], (long long)parts);
    return false;
  }
  if (file->data_bytes < 0 && parts > 1) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "a part is read from a regular file alone");
    return false;
  }
  header->shape[axis] /= parts;
  file->axis = (int32_t)axis;
  file->part = part;
  file->parts = parts;
  return true;
}

// Reads a part: for each index of the dimensions before the axis, consecutive elements of the file.
// In Fortran order, the dimensions that vary more slowly are those after the axis.
static bool read_part(harness_npy_file *file, uint32_t element_bytes, void *elements) {
  const harness_npy_header *header = &file->header;
  uint64_t outer = 1, run = element_bytes;
  for (int32_t i = 0; i < header->rank; ++i) {
    bool is_outer = header->is_fortran ? i > file->axis : i < file->axis;
    *(is_outer ? &outer : &run) *= (uint64_t)header->shape[i];
  }
  if (fseeko(file->stream, (off_t)(run * (uint64_t)file->part), SEEK_CUR) != 0) {
    return false;
  }
  for (uint64_t i = 0; i < outer; ++i) {
    bool is_last = i + 1 == outer;
    if (fread((char *)elements + i * run, 1, run, file->stream) != run ||
        (!is_last && fseeko(file->stream, (off_t)(run * (uint64_t)(file->parts - 1)), SEEK_CUR))) {
      return false;
    }
  }
  return fseeko(file->stream, 0, SEEK_END) == 0;
}

static void swap_bytes(unsigned char *data, uint64_t count, uint32_t bytes) {
  for (uint64_t i = 0; i < count; ++i, data += bytes) {
    for (uint32_t j = 0; j < bytes / 2; ++j) {
      unsigned char byte = data[j];
      data[j] = data[bytes - 1 - j];
      data[bytes - 1 - j] = byte;
    }
  }
}

// Converts elements in Fortran order to row-major order.
static bool reorder(const harness_array *array, void *elements) {
  uint32_t bytes = harness_facts(array->dtype)->bytes;
  harness_layout layout = {.rank = array->rank};
  int64_t stride = 1;
  for (int32_t i = 0; i < array->rank; ++i) {
    layout.sizes[i] = array->shape[i];
    layout.strides[i] = stride;
    stride *= array->shape[i] > 0 ? array->shape[i] : 1;
  }
  if (!harness_layout_derive(&layout, bytes)) {
    return false;
  }
  harness_layout_gather(&layout, bytes, elements, array->data);
  return true;
}

// A bool must be 0 or 1; the behaviour of compiled code for other values is undefined.
static bool are_bools(const uint8_t *bytes, uint64_t count) {
  uint8_t all = 0;
  for (uint64_t i = 0; i < count; ++i) {
    all |= bytes[i];
  }
  return all <= 1;
}

bool harness_npy_read(harness_npy_file *file, harness_array *array,
                      char out_problem[HARNESS_PROBLEM_TEXT]) {
  uint64_t bytes = harness_array_bytes(array);
  if (!harness_npy_check_size(file, bytes, out_problem)) {
    return false;
  }
  bool must_reorder = file->header.is_fortran && array->rank > 1;
  void *elements = must_reorder ? malloc(bytes + 1) : array->data;
  if (elements == NULL) {
    harness_out_of_memory("an array in Fortran order", bytes);
  }
  bool is_good = file->parts > 1 ? read_part(file, harness_facts(array->dtype)->bytes, elements)
                                 : fread(elements, 1, bytes, file->stream) == bytes;
  if (!is_good) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "%s",
             ferror(file->stream) ? strerror(errno) : "it ends inside its data");
  } else if (fgetc(file->stream) != EOF) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "it goes on after the data of its shape");
    is_good = false;
  } else if (array->dtype == AOTC_DTYPE_BOOL && !are_bools(elements, bytes)) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "it holds a bool that is neither 0 nor 1");
    is_good = false;
  }
  // In NumPy, V2 is two bytes without a byte order.
  bool has_order = strcmp(descr_type(&file->header), "V2") != 0;
  if (is_good && has_order && file->header.descr[0] == '>') {
    const harness_dtype_facts *facts = harness_facts(array->dtype);
    uint32_t part_bytes = harness_facts(facts->part)->bytes;
    swap_bytes(elements, bytes / part_bytes, part_bytes);
  }
  if (is_good && must_reorder && !reorder(array, elements)) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "its shape is too large");
    is_good = false;
  }
  if (must_reorder) {
    free(elements);
  }
  return is_good;
}

// --- writing ---

bool harness_npy_write(FILE *stream, const harness_array *array) {
  char shape[HARNESS_SHAPE_TEXT], header[HARNESS_SHAPE_TEXT + 256];
  const harness_dtype_facts *facts = harness_facts(array->dtype);
  int length =
      snprintf(header, sizeof(header), "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }",
               facts->bytes == 1 ? '|' : '<', facts->npy,
               harness_shape_text(array->rank, array->shape, shape));
  // Pads the header with spaces and a newline, to align the data.
  size_t before = MAGIC_BYTES + 4;
  size_t padded = (before + (size_t)length + 1 + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT;
  size_t header_bytes = padded * DATA_ALIGNMENT - before;
  memset(header + length, ' ', header_bytes - (size_t)length);
  header[header_bytes - 1] = '\n';
  unsigned char start[MAGIC_BYTES + 4] = MAGIC;
  start[MAGIC_BYTES] = 1;
  start[MAGIC_BYTES + 1] = 0;
  start[MAGIC_BYTES + 2] = (unsigned char)(header_bytes & 0xff);
  start[MAGIC_BYTES + 3] = (unsigned char)(header_bytes >> 8);
  uint64_t bytes = harness_array_bytes(array);
  return fwrite(start, 1, sizeof(start), stream) == sizeof(start) &&
         fwrite(header, 1, header_bytes, stream) == header_bytes &&
         fwrite(array->data, 1, bytes, stream) == bytes;
}
