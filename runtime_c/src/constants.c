// Device copies of the constants of generated code: made once for each context, on first use.
#include <stdlib.h>

#include "constants.h"
#include "upload.h"

typedef aotc_rt_constant_copy constant_copy;

static _Atomic(constant_copy *) *copies_of(const aotc_constant *constant) {
  return (_Atomic(constant_copy *) *)(uintptr_t)&constant->copies;
}

const constant_copy *aotc_rt_constant_copies(const aotc_constant *constant) {
  return atomic_load_explicit(copies_of(constant), memory_order_acquire);
}

bool aotc_rt_constant_is_copied(const aotc_constant *constant) {
  const constant_copy *copy = aotc_rt_constant_copies(constant);
  while (copy != NULL && copy->context == NULL) { // in host memory, like packed matrices
    copy = copy->next;
  }
  return copy != NULL;
}

const constant_copy *aotc_rt_constant_find(const aotc_constant *constant,
                                           const aotc_rt_context *context,
                                           const aotc_rt_constant_form *form, size_t rows) {
  const constant_copy *copy = aotc_rt_constant_copies(constant);
  while (copy != NULL && (copy->context != context || copy->form != form || copy->rows != rows)) {
    copy = copy->next;
  }
  return copy;
}

// Copies in pieces: at most two pieces of a file are in memory at a time, the one that is copied
// and the one that is read ahead.
static bool fill(aotc_rt_scope *scope, const aotc_constant *constant, const char *data,
                 char *address, aotc_rt_stream stream) {
  const uint64_t most = AOTC_RT_PIECE_BYTES;
  const bool is_plain = !aotc_rt_constant_is_replaced(constant); // otherwise it may be on a device
  for (uint64_t at = 0; at < constant->bytes; at += most) {
    uint64_t left = constant->bytes - at;
    uint64_t bytes = left < most ? left : most;
    aotc_rt_weights_read_ahead_locked(data + at + bytes, left - bytes < most ? left - bytes : most);
    if (is_plain
            ? !aotc_rt_upload(scope, address + at, data + at, (size_t)bytes, stream, "a constant")
            : !AOTC_RT_TRY(scope->driver,
                           memory_copy(address + at, data + at, (size_t)bytes, stream),
                           "a constant")) {
      return false;
    }
    aotc_rt_weights_forget_locked(data + at, bytes);
  }
  return AOTC_RT_TRY(scope->driver, stream_synchronize(stream), "copying a constant of %llu bytes",
                     (unsigned long long)constant->bytes);
}

// Allocates a copy and fills it with `data` unless that is NULL; NULL, with the failure recorded.
static void *make_copy(aotc_rt_scope *scope, const aotc_constant *constant, const void *data,
                       aotc_rt_stream stream) {
  aotc_rt_capture_mode mode;
  if (!aotc_rt_capture_relax(scope->driver, &mode)) {
    return NULL;
  }
  void *address = aotc_rt_constant_memory_take_locked(scope, constant->bytes);
  bool is_filled =
      address != NULL && (data == NULL || fill(scope, constant, data, address, stream));
  bool is_restored = aotc_rt_capture_restore(scope->driver, mode);
  if (address != NULL && !(is_filled && is_restored)) {
    aotc_rt_constant_memory_give_back_locked(scope->driver, scope->context, address);
  }
  return is_filled && is_restored ? address : NULL;
}

void aotc_rt_constant_add_locked(aotc_constant *constant, constant_copy *copy) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  copy->next = atomic_load(copies_of(constant));
  if (copy->next == NULL) {
    constant->next = state->constants;
    state->constants = constant;
  }
  atomic_store_explicit(copies_of(constant), copy, memory_order_release);
}

const constant_copy *aotc_rt_constant_provide(aotc_rt_scope *scope, aotc_constant *constant,
                                              const void *data) {
  const constant_copy *found = aotc_rt_constant_find(constant, scope->context, NULL, 0);
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
    found =
        aotc_rt_constant_find(constant, scope->context, NULL, 0); // another thread may have made it
    void *address = found == NULL ? make_copy(scope, constant, data, stream) : NULL;
    if (address != NULL) {
      *made = (constant_copy){.context = scope->context, .address = address};
      aotc_rt_constant_add_locked(constant, made);
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
  const constant_copy *copy =
      scope.driver != NULL ? aotc_rt_constant_provide(&scope, constant, data) : NULL;
  void *result = copy != NULL ? copy->address : own;
  return aotc_rt_end(&scope) ? result : own;
}

void *aotc_constant_get(aotc_constant *constant) {
  return aotc_rt_constant_copy_of(constant, constant->data);
}

// Defined here and not in constant_forms.c: generated code refers to it weakly, which does not make
// a linker extract an archive member. This member is extracted for the other functions.

void *aotc_constant_get_packed(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_packed);
}

void *aotc_constant_get_transposed(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_transposed);
}

void *aotc_constant_get_grouped_words(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_grouped_words);
}

void *aotc_constant_get_grouped_bytes(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_grouped_bytes);
}

void *aotc_constant_get_grouped_halves(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_grouped_halves);
}

void *aotc_constant_get_winograd(aotc_constant *constant, uint64_t rows) {
  return aotc_rt_constant_in_form(constant, constant->data, rows, &aotc_rt_constant_winograd);
}

// --- Release ---

// Without a driver, or after the context was destroyed, there is nothing to free.
static void free_copy(const aotc_rt_driver *driver, const constant_copy *copy) {
  bool is_there = driver != NULL &&
                  aotc_rt_context_enter_to_release(driver, copy->context, "to free a constant");
  aotc_rt_constant_memory_give_back_locked(is_there ? driver : NULL, copy->context, copy->address);
  if (is_there) {
    AOTC_RT_TRY_RELEASE(driver, context_pop(), "after a constant is freed");
  }
}

void aotc_rt_constant_free_others_locked(const aotc_rt_driver *driver, aotc_constant *constant,
                                         const constant_copy *kept) {
  constant_copy *copy = atomic_load(copies_of(constant));
  atomic_store(copies_of(constant), NULL);
  while (copy != NULL) {
    constant_copy *next = copy->next;
    if (copy == kept) {
      copy->next = NULL;
      atomic_store(copies_of(constant), copy);
    } else {
      if (copy->context == NULL) {
        free(copy->address);
      } else {
        free_copy(driver, copy);
      }
      free(copy);
    }
    copy = next;
  }
}

static void unlink_locked(const aotc_constant *constant) {
  aotc_constant **link = &aotc_rt_state_of_process.constants;
  while (*link != NULL && *link != constant) {
    link = &(*link)->next;
  }
  if (*link != NULL) {
    *link = constant->next;
  }
}

void aotc_rt_constant_move_locked(aotc_constant *from, aotc_constant *to) {
  constant_copy *copies = atomic_load(copies_of(from));
  if (copies == NULL || aotc_rt_constant_copies(to) != NULL) {
    return;
  }
  unlink_locked(from);
  atomic_store(copies_of(from), NULL);
  to->next = aotc_rt_state_of_process.constants;
  aotc_rt_state_of_process.constants = to;
  atomic_store_explicit(copies_of(to), copies, memory_order_release);
}

void aotc_rt_constant_release_locked(aotc_constant *constant) {
  if (aotc_rt_constant_copies(constant) != NULL) {
    unlink_locked(constant);
    aotc_rt_constant_free_others_locked(aotc_rt_driver_to_release(&aotc_rt_state_of_process),
                                        constant, NULL);
  }
}

void aotc_constant_release(aotc_constant *constant) {
  aotc_rt_lock();
  aotc_rt_constant_release_locked(constant);
  aotc_rt_unlock();
}

void aotc_rt_constants_unload_locked(aotc_rt_state *state) {
  while (state->constants != NULL) {
    aotc_constant *constant = state->constants;
    state->constants = constant->next;
    aotc_rt_constant_free_others_locked(aotc_rt_driver_to_release(state), constant, NULL);
  }
}
