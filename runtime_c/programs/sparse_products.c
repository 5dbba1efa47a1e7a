// Products of sparse matrices on the CPU device, element by element, for every format.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memref.h"
#include "sparse_matrix.h"

// A number of any type, as real and imaginary part.
typedef struct number {
  double re, im;
} number;

static number multiply(number a, number b) {
  return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static number add(number a, number b) {
  return (number){a.re + b.re, a.im + b.im};
}

static number conjugate(number a) {
  return (number){a.re, -a.im};
}

void aotc_program_sparse_fail(aotc_status status, const char *call, const char *why) {
  char message[512];
  snprintf(message, sizeof(message), "%s: %s", call, why);
  aotc_error_adopt(status, message);
}

// -------------------------------------------------------------------------------------------------
// Elements

static int64_t bytes_of(int32_t type) {
  switch (type) {
  case TYPE_I8:
    return 1;
  case TYPE_F16:
  case TYPE_BF16:
    return 2;
  case TYPE_F32:
  case TYPE_I32:
    return 4;
  case TYPE_F64:
  case TYPE_C32:
    return 8;
  case TYPE_C64:
    return 16;
  default:
    return 0;
  }
}

static number load(const aotc_program_matrix *m, int64_t place) {
  const char *at = (const char *)m->values + place * bytes_of(m->type);
  union {
    int8_t i8;
    uint16_t bits;
    int32_t i32;
    float f32[2];
    double f64[2];
  } value;
  memcpy(&value, at, (size_t)bytes_of(m->type));
  switch (m->type) {
  case TYPE_I8:
    return (number){value.i8, 0};
  case TYPE_I32:
    return (number){value.i32, 0};
  case TYPE_F16:
    return (number){(double)aotc_program_f16_value(value.bits), 0};
  case TYPE_BF16:
    return (number){(double)aotc_program_bf16_value(value.bits), 0};
  case TYPE_F32:
    return (number){(double)value.f32[0], 0};
  case TYPE_C32:
    return (number){(double)value.f32[0], (double)value.f32[1]};
  case TYPE_C64:
    return (number){value.f64[0], value.f64[1]};
  default:
    return (number){value.f64[0], 0};
  }
}

static void store(const aotc_program_matrix *m, int64_t place, number n) {
  char *at = (char *)m->values + place * bytes_of(m->type);
  union {
    int8_t i8;
    uint16_t bits;
    int32_t i32;
    float f32[2];
    double f64[2];
  } value;
  switch (m->type) {
  case TYPE_I8:
    value.i8 = (int8_t)(n.re < -128 ? -128 : n.re > 127 ? 127 : n.re);
    break;
  case TYPE_I32:
    value.i32 = (int32_t)(uint32_t)(uint64_t)(int64_t)n.re;
    break;
  case TYPE_F16:
    value.bits = aotc_program_small_float(n.re, 10, 15);
    break;
  case TYPE_BF16:
    value.bits = aotc_program_small_float(n.re, 7, 127);
    break;
  case TYPE_F32:
  case TYPE_C32:
    value.f32[0] = (float)n.re;
    value.f32[1] = (float)n.im;
    break;
  default:
    value.f64[0] = n.re;
    value.f64[1] = n.im;
    break;
  }
  memcpy(at, &value, (size_t)bytes_of(m->type));
}

static int64_t index_at(const void *indices, int32_t type, int64_t place) {
  switch (type) {
  case INDEX_U16:
    return ((const uint16_t *)indices)[place];
  case INDEX_I32:
    return ((const int32_t *)indices)[place];
  default:
    return ((const int64_t *)indices)[place];
  }
}

static void set_index(void *indices, int32_t type, int64_t place, int64_t value) {
  switch (type) {
  case INDEX_U16:
    ((uint16_t *)indices)[place] = (uint16_t)value;
    break;
  case INDEX_I32:
    ((int32_t *)indices)[place] = (int32_t)value;
    break;
  default:
    ((int64_t *)indices)[place] = value;
    break;
  }
}

// -------------------------------------------------------------------------------------------------
// Every element that a matrix stores

typedef void visitor(void *context, int64_t row, int64_t column, int64_t place);

static void visit_compressed(const aotc_program_matrix *m, visitor *visit, void *context) {
  bool is_rows = m->format != FORMAT_CSC;
  int64_t height = m->block_rows, width = m->block_columns;
  int64_t outer = is_rows ? m->rows / height : m->columns;
  for (int64_t i = 0; i < outer; ++i) {
    int64_t end = index_at(m->positions, m->position_type, i + 1);
    for (int64_t k = index_at(m->positions, m->position_type, i); k < end; ++k) {
      int64_t j = index_at(m->indices, m->index_type, k);
      for (int64_t inner = 0; inner < height * width; ++inner) {
        int64_t row = i * height + inner / width, column = j * width + inner % width;
        visit(context, is_rows ? row : j, is_rows ? column : i, k * height * width + inner);
      }
    }
  }
}

static void visit_elements(const aotc_program_matrix *m, visitor *visit, void *context) {
  if (m->format == FORMAT_DENSE) {
    for (int64_t place = 0; place < m->rows * m->columns; ++place) {
      visit(context, place / m->columns, place % m->columns, place);
    }
    return;
  }
  if (m->format != FORMAT_COO && m->format != FORMAT_COO_AOS) {
    visit_compressed(m, visit, context);
    return;
  }
  bool has_pairs = m->format == FORMAT_COO_AOS;
  for (int64_t k = 0; k < m->count; ++k) {
    int64_t row = has_pairs ? index_at(m->indices, m->index_type, 2 * k)
                            : index_at(m->positions, m->index_type, k);
    visit(context, row, index_at(m->indices, m->index_type, has_pairs ? 2 * k + 1 : k), k);
  }
}

typedef struct bounds {
  int64_t rows, columns;
  bool is_in;
} bounds;

static void check_element(void *context, int64_t row, int64_t column, int64_t place) {
  (void)place;
  bounds *b = context;
  b->is_in = b->is_in && row >= 0 && row < b->rows && column >= 0 && column < b->columns;
}

static bool is_known(const aotc_program_matrix *m) {
  return m != NULL && bytes_of(m->type) != 0;
}

// Whether all indices of a sparse matrix are in range.
static bool is_inside(const char *call, const aotc_program_matrix *m) {
  bounds b = {m->rows, m->columns, true};
  visit_elements(m, check_element, &b);
  if (!b.is_in) {
    aotc_program_sparse_fail(AOTC_INVALID_ARGUMENT, call, "an index is outside of its matrix");
  }
  return b.is_in;
}

static int64_t rows_of(const aotc_program_matrix *m, int32_t mode) {
  return mode == 0 ? m->rows : m->columns;
}

// Whether C has the shape of op(A) op(B), and all element types are known.
static bool fits(const char *call, int32_t mode_a, int32_t mode_b, const aotc_program_matrix *a,
                 const aotc_program_matrix *b, const aotc_program_matrix *c) {
  if (!is_known(a) || !is_known(b) || !is_known(c)) {
    aotc_program_sparse_fail(AOTC_UNSUPPORTED, call, "the CPU device has no such type of values");
    return false;
  }
  if (rows_of(a, mode_a) != c->rows || rows_of(b, !mode_b) != c->columns ||
      rows_of(a, !mode_a) != rows_of(b, mode_b)) {
    aotc_program_sparse_fail(AOTC_INVALID_ARGUMENT, call, "the matrices' sizes do not fit");
    return false;
  }
  return true;
}

static number dense_at(const aotc_program_matrix *m, int32_t mode, int64_t row, int64_t column) {
  number n = load(m, mode == 0 ? row * m->columns + column : column * m->columns + row);
  return mode == 2 ? conjugate(n) : n;
}

// -------------------------------------------------------------------------------------------------
// Products

typedef struct product {
  const aotc_program_matrix *a, *b, *c;
  int32_t mode_a, mode_b;
  number *sums; // accumulators for the elements of a dense C
} product;

static void add_products(void *context, int64_t row, int64_t column, int64_t place) {
  product *p = context;
  number value = load(p->a, place);
  if (p->mode_a == 2) {
    value = conjugate(value);
  }
  int64_t i = p->mode_a == 0 ? row : column, k = p->mode_a == 0 ? column : row;
  for (int64_t j = 0; j < p->c->columns; ++j) {
    number *sum = &p->sums[i * p->c->columns + j];
    *sum = add(*sum, multiply(value, dense_at(p->b, p->mode_b, k, j)));
  }
}

void aotc_program_spmm(const char *call, int32_t mode_a, int32_t mode_b,
                       const aotc_program_matrix *a, const aotc_program_matrix *b,
                       const aotc_program_matrix *c) {
  if (!fits(call, mode_a, mode_b, a, b, c) || !is_inside(call, a)) {
    return;
  }
  size_t count = (size_t)(c->rows * c->columns);
  number *sums = calloc(count + 1, sizeof(*sums));
  if (sums == NULL) {
    aotc_program_sparse_fail(AOTC_OUT_OF_MEMORY, call, "no host memory for the sums");
    return;
  }
  product p = {a, b, c, mode_a, mode_b, sums};
  visit_elements(a, add_products, &p);
  for (int64_t i = 0; i < (int64_t)count; ++i) {
    store(c, i, add(load(c, i), sums[i]));
  }
  free(sums);
}

static void add_sampled(void *context, int64_t row, int64_t column, int64_t place) {
  product *p = context;
  number sum = {0, 0};
  int64_t depth = rows_of(p->b, p->mode_b);
  for (int64_t k = 0; k < depth; ++k) {
    sum =
        add(sum, multiply(dense_at(p->a, p->mode_a, row, k), dense_at(p->b, p->mode_b, k, column)));
  }
  store(p->c, place, add(load(p->c, place), sum));
}

void aotc_program_sddmm(const char *call, int32_t mode_a, int32_t mode_b,
                        const aotc_program_matrix *a, const aotc_program_matrix *b,
                        const aotc_program_matrix *c) {
  if (fits(call, mode_a, mode_b, a, b, c) && is_inside(call, c)) {
    product p = {a, b, c, mode_a, mode_b, NULL};
    visit_elements(c, add_sampled, &p);
  }
}

static int compare_indices(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

// Appends row `i` of A B to the rows before it, in column order, and returns its number of
// elements. Only counts them if the product has no memory yet. `sums` and `is_there` have one
// element for each column and are all zeros on return.
static int64_t multiply_row(const aotc_program_matrix *a, const aotc_program_matrix *b, int64_t i,
                            number *sums, bool *is_there, int64_t *columns,
                            aotc_program_product *out) {
  int64_t count = 0;
  int64_t end = index_at(a->positions, a->position_type, i + 1);
  for (int64_t k = index_at(a->positions, a->position_type, i); k < end; ++k) {
    int64_t row = index_at(a->indices, a->index_type, k);
    int64_t last = index_at(b->positions, b->position_type, row + 1);
    for (int64_t l = index_at(b->positions, b->position_type, row); l < last; ++l) {
      int64_t j = index_at(b->indices, b->index_type, l);
      if (!is_there[j]) {
        is_there[j] = true;
        columns[count++] = j;
      }
      sums[j] = add(sums[j], multiply(load(a, k), load(b, l)));
    }
  }
  qsort(columns, (size_t)count, sizeof(*columns), compare_indices);
  for (int64_t k = 0; k < count; ++k) {
    int64_t j = columns[k];
    if (out->indices != NULL) {
      out->indices[out->positions[i] + k] = j;
      out->values[out->positions[i] + k][0] = sums[j].re;
      out->values[out->positions[i] + k][1] = sums[j].im;
    }
    sums[j] = (number){0, 0};
    is_there[j] = false;
  }
  return count;
}

void aotc_program_product_empty(aotc_program_product *product) {
  free(product->positions);
  free(product->indices);
  free(product->values);
  product->positions = product->indices = NULL;
  product->values = NULL;
}

void aotc_program_spgemm(const char *call, const aotc_program_matrix *a,
                         const aotc_program_matrix *b, aotc_program_matrix *c,
                         aotc_program_product *product) {
  if (!fits(call, 0, 0, a, b, c)) {
    return;
  }
  if (a->format != FORMAT_CSR || b->format != FORMAT_CSR || c->format != FORMAT_CSR) {
    aotc_program_sparse_fail(AOTC_UNSUPPORTED, call, "the product of two matrices is of CSR alone");
    return;
  }
  if (!is_inside(call, a) || !is_inside(call, b)) {
    return;
  }
  aotc_program_product_empty(product);
  size_t width = (size_t)c->columns + 1;
  number *sums = calloc(width, sizeof(*sums));
  bool *is_there = calloc(width, sizeof(*is_there));
  int64_t *columns = calloc(width, sizeof(*columns));
  product->positions = calloc((size_t)c->rows + 1, sizeof(*product->positions));
  bool has_memory =
      sums != NULL && is_there != NULL && columns != NULL && product->positions != NULL;
  for (int pass = 0; pass < 2 && has_memory; ++pass) {
    for (int64_t i = 0; i < c->rows; ++i) {
      int64_t count = multiply_row(a, b, i, sums, is_there, columns, product);
      product->positions[i + 1] = product->positions[i] + count;
    }
    if (pass == 0) {
      size_t total = (size_t)product->positions[c->rows] + 1;
      product->indices = calloc(total, sizeof(*product->indices));
      product->values = calloc(total, sizeof(*product->values));
      has_memory = product->indices != NULL && product->values != NULL;
    }
  }
  free(sums);
  free(is_there);
  free(columns);
  if (!has_memory) {
    aotc_program_sparse_fail(AOTC_OUT_OF_MEMORY, call, "no host memory for the product");
    aotc_program_product_empty(product);
    return;
  }
  c->count = product->positions[c->rows];
}

void aotc_program_spgemm_copy(const char *call, const aotc_program_product *product,
                              const aotc_program_matrix *c) {
  if (product->positions == NULL) {
    aotc_program_sparse_fail(AOTC_INVALID_ARGUMENT, call, "the product was not computed");
    return;
  }
  for (int64_t i = 0; i <= c->rows; ++i) {
    set_index(c->positions, c->position_type, i, product->positions[i]);
  }
  for (int64_t i = 0; i < c->count; ++i) {
    set_index(c->indices, c->index_type, i, product->indices[i]);
    store(c, i, (number){product->values[i][0], product->values[i][1]});
  }
}

// -------------------------------------------------------------------------------------------------
// Two of four

static double magnitude_at(const aotc_program_matrix *a, int64_t place) {
  number n = load(a, place);
  return hypot(n.re, n.im);
}

// The index of the smallest nonzero element of four; -1 if at most two are nonzero.
static int64_t find_excess(const aotc_program_matrix *a, int64_t first) {
  int64_t smallest = -1, count = 0;
  for (int64_t i = first; i < first + 4; ++i) {
    double magnitude = magnitude_at(a, i);
    count += magnitude != 0;
    if (magnitude != 0 && (smallest < 0 || magnitude < magnitude_at(a, smallest))) {
      smallest = i;
    }
  }
  return count > 2 ? smallest : -1;
}

void aotc_program_prune(const aotc_program_matrix *a) {
  for (int64_t first = 0; first + 3 < a->rows * a->columns; first += 4) {
    for (int64_t excess = find_excess(a, first); excess >= 0; excess = find_excess(a, first)) {
      store(a, excess, (number){0, 0});
    }
  }
}

bool aotc_program_is_pruned(const aotc_program_matrix *a) {
  for (int64_t first = 0; first + 3 < a->rows * a->columns; first += 4) {
    if (find_excess(a, first) >= 0) {
      return false;
    }
  }
  return true;
}
