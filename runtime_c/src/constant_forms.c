// Constants on the CPU device: a matrix may have a second copy, in the order in which kernels read
// it.
#include <stdlib.h>
#include <string.h>

#include "constants.h"
#include "cpu/level.h"

typedef aotc_rt_constant_copy constant_copy;

// Columns in groups of the vector width, as in aotc/kernels/cpu/packing.py: (group, row, column).
// Each group is padded by one row, so that two groups start in different cache sets.
static size_t packed_bytes(size_t rows, size_t row_bytes) {
  size_t groups = (row_bytes + AOTC_VECTOR_BYTES - 1) / AOTC_VECTOR_BYTES;
  return groups * (rows + 1) * AOTC_VECTOR_BYTES;
}

static void pack(void *packed, const void *matrix, size_t rows, size_t row_bytes) {
  char *to = packed;
  const char *from = matrix;
  for (size_t first = 0; first < row_bytes; first += AOTC_VECTOR_BYTES) {
    size_t left = row_bytes - first;
    size_t bytes = left < AOTC_VECTOR_BYTES ? left : AOTC_VECTOR_BYTES;
    for (size_t row = 0; row < rows; ++row) {
      memcpy(to, from + row * row_bytes + first, bytes);
      memset(to + bytes, 0, AOTC_VECTOR_BYTES - bytes);
      to += AOTC_VECTOR_BYTES;
    }
    memset(to, 0, AOTC_VECTOR_BYTES);
    to += AOTC_VECTOR_BYTES;
  }
}

const aotc_rt_constant_form aotc_rt_constant_packed = {"aotc_constant_get_packed", "pack",
                                                       packed_bytes, pack, 0};

// The same groups of the transpose of a matrix of 16-bit elements: (group, row, column), where rows
// and columns are those of the transpose, with one row of padding. A group has as many columns as a
// vector of f32, to which kernels convert it.
enum { GROUP_COLUMNS = AOTC_VECTOR_BYTES / sizeof(float) };

static size_t transposed_bytes(size_t rows, size_t row_bytes) {
  size_t columns = row_bytes / sizeof(uint16_t);
  size_t groups = (columns + GROUP_COLUMNS - 1) / GROUP_COLUMNS;
  return groups * (rows + 1) * GROUP_COLUMNS * sizeof(uint16_t);
}

// Stores the groups of the transpose of a matrix whose elements have `bytes` bytes.
static void transpose_groups(char *to, const char *from, size_t rows, size_t columns,
                             size_t bytes) {
  for (size_t first = 0; first < columns; first += GROUP_COLUMNS) {
    size_t left = columns - first;
    size_t count = left < GROUP_COLUMNS ? left : GROUP_COLUMNS;
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < count; ++i) {
        memcpy(to + i * bytes, from + ((first + i) * rows + row) * bytes, bytes);
      }
      to += GROUP_COLUMNS * bytes;
    }
    to += GROUP_COLUMNS * bytes;
  }
}

static void transpose(void *transposed, const void *matrix, size_t rows, size_t row_bytes) {
  memset(transposed, 0, transposed_bytes(rows, row_bytes));
  transpose_groups(transposed, matrix, rows, row_bytes / sizeof(uint16_t), sizeof(uint16_t));
}

const aotc_rt_constant_form aotc_rt_constant_transposed = {
    "aotc_constant_get_transposed", "transpose", transposed_bytes, transpose, 0};

// B of products of narrow elements, as aotc/kernels/matmul/cpu/grouped.py packs it: (group of
// columns, group of k, column, k in its group), with one group of k of padding. A group of k has 4
// bytes. The elements are words, which are groups of k already, or halves of them, or bytes.
enum { WORD = sizeof(uint32_t), WORDS = AOTC_VECTOR_BYTES / WORD, VNNI = 5 };

static size_t grouped_bytes(size_t groups_of_k, size_t columns) {
  return (columns + WORDS - 1) / WORDS * (groups_of_k + 1) * AOTC_VECTOR_BYTES;
}

// Of a matrix with a row for each column of B, and a word for each group of k.
static size_t grouped_words_bytes(size_t rows, size_t row_bytes) {
  return grouped_bytes(rows, row_bytes / WORD);
}

static void group_words(void *grouped, const void *matrix, size_t rows, size_t row_bytes) {
  memset(grouped, 0, grouped_words_bytes(rows, row_bytes));
  transpose_groups(grouped, matrix, rows, row_bytes / WORD, WORD);
}

const aotc_rt_constant_form aotc_rt_constant_grouped_words = {
    "aotc_constant_get_grouped_words", "pack", grouped_words_bytes, group_words, VNNI};

// Of a matrix with a row of elements of `bytes` bytes for each k, whose number is a multiple of a
// group.
static void group_rows(char *to, const char *from, size_t rows, size_t row_bytes, size_t bytes) {
  size_t in_word = WORD / bytes;
  for (size_t first = 0; first < row_bytes; first += WORDS * bytes) {
    size_t left = (row_bytes - first) / bytes;
    size_t count = left < WORDS ? left : WORDS;
    for (size_t row = 0; row < rows; ++row) {
      const char *line = from + row * row_bytes + first;
      char *group = to + row / in_word * AOTC_VECTOR_BYTES + row % in_word * bytes;
      for (size_t i = 0; i < count; ++i) {
        memcpy(group + i * WORD, line + i * bytes, bytes);
      }
    }
    to += (rows / in_word + 1) * AOTC_VECTOR_BYTES;
  }
}

static size_t grouped_halves_bytes(size_t rows, size_t row_bytes) {
  return grouped_bytes(rows / 2, row_bytes / 2);
}

static void group_halves(void *grouped, const void *matrix, size_t rows, size_t row_bytes) {
  memset(grouped, 0, grouped_halves_bytes(rows, row_bytes));
  group_rows(grouped, matrix, rows, row_bytes, 2);
}

const aotc_rt_constant_form aotc_rt_constant_grouped_halves = {
    "aotc_constant_get_grouped_halves", "pack", grouped_halves_bytes, group_halves, VNNI};

static size_t grouped_bytes_bytes(size_t rows, size_t row_bytes) {
  return grouped_bytes(rows / WORD, row_bytes);
}

static void group_bytes(void *grouped, const void *matrix, size_t rows, size_t row_bytes) {
  memset(grouped, 0, grouped_bytes_bytes(rows, row_bytes));
  group_rows(grouped, matrix, rows, row_bytes, 1);
}

const aotc_rt_constant_form aotc_rt_constant_grouped_bytes = {
    "aotc_constant_get_grouped_bytes", "pack", grouped_bytes_bytes, group_bytes, VNNI};

// 3 x 3 filters transformed for Winograd's F(2x2, 3x3) (A. Lavin and S. Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016): G g G^T, laid out as in aotc/kernels/matmul/winograd:
// (position in the 4 x 4 tile, output channel, input channel).
enum { TAPS = 9, POSITIONS = 16, ROW_GAP = AOTC_VECTOR_BYTES / sizeof(float) };

static size_t channels_of(size_t row_bytes) {
  return row_bytes / (TAPS * sizeof(float));
}

static size_t transformed_bytes(size_t rows, size_t row_bytes) {
  return POSITIONS * rows * (channels_of(row_bytes) + ROW_GAP) * sizeof(float);
}

// Multiplies G by a column of a filter, the elements of which are `stride` apart.
static void transform_column(float out[4], const float *g, size_t stride) {
  float outer = g[0] + g[2 * stride];
  out[0] = g[0];
  out[1] = 0.5F * (outer + g[stride]);
  out[2] = 0.5F * (outer - g[stride]);
  out[3] = g[2 * stride];
}

static void transform(void *transformed, const void *filters, size_t rows, size_t row_bytes) {
  float *to = transformed;
  const float *from = filters;
  size_t channels = channels_of(row_bytes);
  size_t pitch = channels + ROW_GAP;
  memset(to, 0, transformed_bytes(rows, row_bytes));
  for (size_t row = 0; row < rows; ++row) {
    for (size_t channel = 0; channel < channels; ++channel) {
      float columns[3][4]; // of G g, transposed
      for (size_t x = 0; x < 3; ++x) {
        transform_column(columns[x], from + x, 3);
      }
      for (size_t y = 0; y < 4; ++y) {
        float line[4];
        transform_column(line, &columns[0][y], 4);
        for (size_t x = 0; x < 4; ++x) {
          to[((y * 4 + x) * rows + row) * pitch + channel] = line[x];
        }
      }
      from += TAPS;
    }
  }
}

const aotc_rt_constant_form aotc_rt_constant_winograd = {"aotc_constant_get_winograd", "transform",
                                                         transformed_bytes, transform, 0};

// NULL, with the failure recorded, if there is no memory.
static const constant_copy *make_form_locked(aotc_constant *constant, const void *data, size_t rows,
                                             const aotc_rt_constant_form *form) {
  size_t row_bytes = (size_t)constant->bytes / rows;
  void *address = NULL;
  constant_copy *made = malloc(sizeof(*made));
  if (made == NULL ||
      posix_memalign(&address, AOTC_VECTOR_BYTES, form->bytes(rows, row_bytes)) != 0) {
    free(made);
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to %s a constant of %llu bytes", form->what,
                 (unsigned long long)constant->bytes);
    return NULL;
  }
  form->fill(address, data, rows, row_bytes);
  *made = (constant_copy){.form = form, .rows = rows, .address = address};
  aotc_rt_constant_add_locked(constant, made);
  return made;
}

void *aotc_rt_constant_in_form(aotc_constant *constant, const void *data, uint64_t rows,
                               const aotc_rt_constant_form *form) {
  if (aotc_rt_cpu_level() < form->least_level) {
    return (void *)data; // const only for others
  }
  const constant_copy *copy = aotc_rt_constant_find(constant, NULL, form, (size_t)rows);
  if (copy != NULL) {
    return copy->address;
  }
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, form->getter)) {
    return NULL;
  }
  aotc_rt_lock();
  copy =
      aotc_rt_constant_find(constant, NULL, form, (size_t)rows); // another thread may have added it
  if (copy == NULL && scope.driver == NULL) {
    copy = make_form_locked(constant, data, (size_t)rows, form);
  }
  aotc_rt_unlock();
  return aotc_rt_end(&scope) && copy != NULL ? copy->address : NULL;
}
