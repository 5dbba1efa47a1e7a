// Sparse tensors written to files, for sparse_tensor.out.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sparse.h"
#include "utility.h"

typedef struct sparse_writer {
  FILE *file; // NULL after a failure
  char *name;
} sparse_writer;

static void fail(const char *name) {
  char message[1024];
  snprintf(message, sizeof(message), "sparse tensor to a file: cannot write %.600s: %s", name,
           strerror(errno));
  aotc_error_adopt(AOTC_INVALID_ARGUMENT, message);
}

UTILITY void *createSparseTensorWriter(const char *name) {
  sparse_writer *writer = calloc(1, sizeof(*writer));
  if (writer == NULL || (writer->name = strdup(name)) == NULL) {
    aotc_error_adopt(AOTC_OUT_OF_MEMORY, "sparse tensor to a file: no host memory for a writer");
    return writer;
  }
  if (aotc_is_stopped()) {
    return writer;
  }
  writer->file = name[0] == '\0' ? stdout : fopen(name, "w");
  if (writer->file == NULL) {
    fail(name);
    return writer;
  }
  fputs("# extended FROSTT format\n", writer->file);
  return writer;
}

// NULL if nothing is to be written.
static FILE *file_of(const sparse_writer *writer) {
  return writer == NULL || aotc_is_stopped() ? NULL : writer->file;
}

UTILITY void _mlir_ciface_outSparseTensorWriterMetaData(void *writer, uint64_t rank, uint64_t count,
                                                        void *sizes_) {
  FILE *file = file_of(writer);
  if (file == NULL) {
    return;
  }
  const uint64_t *sizes = sparse_elements(sizes_, 8);
  fprintf(file, "%" PRIu64 " %" PRIu64 "\n", rank, count);
  for (uint64_t i = 0; i < rank; ++i) {
    fprintf(file, "%" PRIu64 "%c", sizes[i], i + 1 == rank ? '\n' : ' ');
  }
}

static void write_number(FILE *file, const void *value) {
  fprintf(file, "%d", *(const int8_t *)value);
}

static void write_element(void *writer, uint64_t rank, void *coordinates_, void *value,
                          const aotc_program_element *element) {
  FILE *file = file_of(writer);
  if (file == NULL) {
    return;
  }
  const uint64_t *coordinates = sparse_elements(coordinates_, 8);
  for (uint64_t i = 0; i < rank; ++i) {
    fprintf(file, "%" PRIu64 " ", coordinates[i] + 1);
  }
  aotc_program_memref memref = aotc_program_memref_of(0, value);
  const char *at = memref.data + memref.offset * element->bytes;
  // An i8 is written as a number here; printMemref prints it as a character.
  (element == &aotc_program_i8 ? write_number : element->write)(file, at);
  fputc('\n', file);
}

#define DEFINE_WRITE(suffix, number, element, class)                                               \
  UTILITY void _mlir_ciface_outSparseTensorWriterNext##suffix(void *writer, uint64_t rank,         \
                                                              void *coordinates, void *value) {    \
    write_element(writer, rank, coordinates, value, &aotc_program_##element);                      \
  }

SPARSE_VALUES(DEFINE_WRITE)

UTILITY void delSparseTensorWriter(void *writer_) {
  sparse_writer *writer = writer_;
  if (writer == NULL) {
    return;
  }
  if (writer->file == stdout) {
    fflush(stdout);
  } else if (writer->file != NULL) {
    bool has_failed = ferror(writer->file) != 0;
    if (fclose(writer->file) != 0 || has_failed) {
      fail(writer->name);
    }
  }
  free(writer->name);
  free(writer);
}
