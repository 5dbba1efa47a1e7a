// Constants of generated code on devices: copied there once for each context, when first used. On
// the CPU device, matrices may have another copy, in the order in which kernels read them.
#include <stdlib.h>
#include <string.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

// Made under the lock, found without it. Copies on the CPU device have a form, and no context.
typedef struct aotc_rt_constant_copy {
  struct aotc_rt_constant_copy *next;
  aotc_rt_context *context;
  const aotc_rt_constant_form *form;
  void *address;
} constant_copy;

static _Atomic(constant_copy *) *copies_of(aotc_constant *constant) {
  return (_Atomic(constant_copy *) *)&constant->copies;
}

static const constant_copy *find_copy(aotc_constant *constant, const aotc_rt_context *context,
                                      const aotc_rt_constant_form *form) {
  const constant_copy *copy = atomic_load_explicit(copies_of(constant), memory_order_acquire);
  while (copy != NULL && (copy->context != context || copy->form != form)) {
    copy = copy->next;
  }
  return copy;
}

static bool fill(aotc_rt_scope *scope, const aotc_constant *constant, const void *data,
                 void *address, aotc_rt_stream stream) {
  return AOTC_RT_TRY(scope->driver, memory_copy(address, data, (size_t)constant->bytes, stream),
                     "a constant of %llu bytes", (unsigned long long)constant->bytes) &&
         AOTC_RT_TRY(scope->driver, stream_synchronize(stream), "copying a constant");
}

// The address of a new copy; NULL, with the failure recorded.
static void *make_copy(aotc_rt_scope *scope, const aotc_constant *constant, const void *data,
                       aotc_rt_stream stream) {
  void *address = NULL;
  aotc_rt_capture_mode mode;
  if (!aotc_rt_capture_relax(scope->driver, &mode)) {
    return NULL;
  }
  bool is_there = AOTC_RT_TRY(
      scope->driver,
      memory_allocate(scope->context, AOTC_MEMORY_DEVICE, (size_t)constant->bytes, NULL, &address),
      "a constant of %llu bytes", (unsigned long long)constant->bytes);
  bool is_filled = is_there && fill(scope, constant, data, address, stream);
  bool is_restored = aotc_rt_capture_restore(scope->driver, mode);
  if (is_there && !(is_filled && is_restored)) {
    AOTC_RT_TRY_RELEASE(scope->driver, memory_free(address, NULL), "a constant");
  }
  return is_filled && is_restored ? address : NULL;
}

static void add_copy_locked(aotc_constant *constant, constant_copy *copy) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  copy->next = atomic_load(copies_of(constant));
  if (copy->next == NULL) {
    constant->next = state->constants;
    state->constants = constant;
  }
  atomic_store_explicit(copies_of(constant), copy, memory_order_release);
}

// The copy for the scope's context, made if there is none; NULL, with the failure recorded.
static const constant_copy *provide(aotc_rt_scope *scope, aotc_constant *constant,
                                    const void *data) {
  const constant_copy *found = find_copy(constant, scope->context, NULL);
  aotc_rt_stream stream =
      found == NULL && aotc_rt_make_current(scope) ? aotc_rt_stream_take(scope) : NULL;
  if (stream == NULL) {
    return found;
  }
  constant_copy *made = malloc(sizeof(*made));
  if (made == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember a constant");
  } else {
    aotc_rt_lock();
    found = find_copy(constant, scope->context, NULL); // another thread may have made it
    void *address = found == NULL ? make_copy(scope, constant, data, stream) : NULL;
    if (address != NULL) {
      *made = (constant_copy){.context = scope->context, .address = address};
      add_copy_locked(constant, made);
      found = made;
      made = NULL;
    }
    aotc_rt_unlock();
    free(made);
  }
  aotc_rt_stream_give_back(stream);
  return found;
}

void *aotc_rt_constant_copy_of(aotc_constant *constant, const void *data) {
  void *own = (void *)(uintptr_t)data;
  aotc_rt_scope scope;
  if (constant->bytes == 0 || !aotc_rt_begin_unless_failed(&scope, "aotc_constant_get")) {
    return own;
  }
  const constant_copy *copy = scope.driver != NULL ? provide(&scope, constant, data) : NULL;
  void *result = copy != NULL ? copy->address : own;
  return aotc_rt_end(&scope) ? result : own;
}

void *aotc_constant_get(aotc_constant *constant) {
  return aotc_rt_constant_copy_of(constant, constant->data);
}

// --- Copies on the CPU device ---

struct aotc_rt_constant_form {
  const char *getter; // the function that is asked for it
  const char *what;   // is done to the constant, for messages
  size_t (*bytes)(size_t rows, size_t row_bytes);
  void (*fill)(void *to, const void *from, size_t rows, size_t row_bytes);
};

// Columns in groups of a vector, as aotc/kernels/cpu/packing.py has them: (group, row, column).
// Each group has a row more than the matrix, so that two groups begin in different sets of a cache.
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
                                                       packed_bytes, pack};

// Filters of 3 x 3, transformed for Winograd's F(2x2, 3x3) (A. Lavin and S. Gray, "Fast Algorithms
// for Convolutional Neural Networks", 2016): G g G^T, as aotc/kernels/matmul/winograd has it:
// (position in the tile of 4 x 4, output channel, input channel).
enum { TAPS = 9, POSITIONS = 16, ROW_GAP = AOTC_VECTOR_BYTES / sizeof(float) };

static size_t channels_of(size_t row_bytes) {
  return row_bytes / (TAPS * sizeof(float));
}

static size_t transformed_bytes(size_t rows, size_t row_bytes) {
  return POSITIONS * rows * (channels_of(row_bytes) + ROW_GAP) * sizeof(float);
}

// G times a column of a filter, whose elements are `stride` apart.
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
                                                         transformed_bytes, transform};

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
  *made = (constant_copy){.form = form, .address = address};
  add_copy_locked(constant, made);
  return made;
}

void *aotc_rt_constant_in_form(aotc_constant *constant, const void *data, uint64_t rows,
                               const aotc_rt_constant_form *form) {
  const constant_copy *copy = find_copy(constant, NULL, form);
  if (copy != NULL) {
    return copy->address;
  }
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, form->getter)) {
    return NULL;
  }
  aotc_rt_lock();
  copy = find_copy(constant, NULL, form); // another thread may have made it
  if (copy == NULL && scope.driver == NULL) {
    copy = make_form_locked(constant, data, (size_t)rows, form);
  }
  aotc_rt_unlock();
  return aotc_rt_end(&scope) && copy != NULL ? copy->address : NULL;
}

void *aotc_constant_get_packed(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_packed);
}

void *aotc_constant_get_winograd(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_winograd);
}

// --- Release ---

static void free_copy(const aotc_rt_driver *driver, const constant_copy *copy) {
  if (aotc_rt_context_enter_to_release(driver, copy->context, "to free a constant")) {
    AOTC_RT_TRY_RELEASE(driver, memory_free(copy->address, NULL), "a constant");
    AOTC_RT_TRY_RELEASE(driver, context_pop(), "after a constant is freed");
  }
}

static void free_copies_locked(const aotc_rt_driver *driver, aotc_constant *constant) {
  constant_copy *copy = atomic_load(copies_of(constant));
  atomic_store(copies_of(constant), NULL);
  while (copy != NULL) {
    constant_copy *next = copy->next;
    if (copy->context == NULL) {
      free(copy->address);
    } else if (driver != NULL) {
      free_copy(driver, copy);
    }
    free(copy);
    copy = next;
  }
}

void aotc_constant_release(aotc_constant *constant) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_lock();
  for (aotc_constant **link = &state->constants; *link != NULL; link = &(*link)->next) {
    if (*link == constant) {
      *link = constant->next;
      free_copies_locked(aotc_rt_driver_to_release(state), constant);
      break;
    }
  }
  aotc_rt_unlock();
}

void aotc_rt_constants_unload_locked(aotc_rt_state *state) {
  while (state->constants != NULL) {
    aotc_constant *constant = state->constants;
    state->constants = constant->next;
    free_copies_locked(aotc_rt_driver_to_release(state), constant);
  }
}
