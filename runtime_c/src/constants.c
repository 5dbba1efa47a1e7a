// Constants of generated code on devices: copied there once for each context, when first used.
#include <stdlib.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

// Made under the lock, found without it.
typedef struct aotc_rt_constant_copy {
  struct aotc_rt_constant_copy *next;
  aotc_rt_context *context;
  CUdeviceptr address;
} constant_copy;

static _Atomic(constant_copy *) *copies_of(aotc_constant *constant) {
  return (_Atomic(constant_copy *) *)&constant->copies;
}

static const constant_copy *find_copy(aotc_constant *constant, const aotc_rt_context *context) {
  const constant_copy *copy = atomic_load_explicit(copies_of(constant), memory_order_acquire);
  while (copy != NULL && copy->context != context) {
    copy = copy->next;
  }
  return copy;
}

static bool fill(aotc_rt_scope *scope, const aotc_constant *constant, const void *data,
                 CUdeviceptr address, CUstream stream) {
  return AOTC_RT_TRY(scope->driver, memcpy_async,
                     (address, aotc_rt_address_of(data), (size_t)constant->bytes, stream),
                     "a constant of %llu bytes", (unsigned long long)constant->bytes) &&
         AOTC_RT_TRY(scope->driver, stream_synchronize, (stream), "copying a constant");
}

// The address of a new copy; 0, with the failure recorded.
static CUdeviceptr make_copy(aotc_rt_scope *scope, const aotc_constant *constant, const void *data,
                             CUstream stream) {
  CUdeviceptr address = 0;
  CUstreamCaptureMode mode;
  if (!aotc_rt_capture_relax(scope->driver, &mode)) {
    return 0;
  }
  bool is_there = AOTC_RT_TRY(scope->driver, mem_alloc, (&address, (size_t)constant->bytes),
                              "a constant of %llu bytes", (unsigned long long)constant->bytes);
  bool is_filled = is_there && fill(scope, constant, data, address, stream);
  bool is_restored = aotc_rt_capture_restore(scope->driver, mode);
  if (is_there && !(is_filled && is_restored)) {
    aotc_rt_check_release(scope->driver, scope->driver->mem_free(address), AOTC_RT_CALL_mem_free,
                          "a constant");
  }
  return is_filled && is_restored ? address : 0;
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
  const constant_copy *found = find_copy(constant, scope->context);
  CUstream stream =
      found == NULL && aotc_rt_make_current(scope) ? aotc_rt_stream_take(scope) : NULL;
  if (stream == NULL) {
    return found;
  }
  constant_copy *made = malloc(sizeof(*made));
  if (made == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember a constant");
  } else {
    aotc_rt_lock();
    found = find_copy(constant, scope->context); // another thread may have made it
    CUdeviceptr address = found == NULL ? make_copy(scope, constant, data, stream) : 0;
    if (address != 0) {
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
  void *result = copy != NULL ? aotc_rt_pointer_to(copy->address) : own;
  return aotc_rt_end(&scope) ? result : own;
}

void *aotc_constant_get(aotc_constant *constant) {
  return aotc_rt_constant_copy_of(constant, constant->data);
}

static void free_copy(const aotc_rt_driver *driver, const constant_copy *copy) {
  if (!aotc_rt_context_is_alive(driver, copy->context)) {
    return;
  }
  CUresult result = driver->ctx_push_current(copy->context->handle);
  // Drivers older than CUDA 12 do not tell a context that was destroyed in another way.
  if (result != CUDA_ERROR_INVALID_CONTEXT &&
      aotc_rt_check_release(driver, result, AOTC_RT_CALL_ctx_push_current, "to free a constant")) {
    aotc_rt_check_release(driver, driver->mem_free(copy->address), AOTC_RT_CALL_mem_free,
                          "a constant");
    CUcontext popped = NULL;
    aotc_rt_check_release(driver, driver->ctx_pop_current(&popped), AOTC_RT_CALL_ctx_pop_current,
                          "after a constant is freed");
  }
}

static void free_copies_locked(const aotc_rt_driver *driver, aotc_constant *constant) {
  constant_copy *copy = atomic_load(copies_of(constant));
  atomic_store(copies_of(constant), NULL);
  while (copy != NULL) {
    constant_copy *next = copy->next;
    if (driver != NULL) {
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
      const bool has_driver = state->has_driver && !state->is_driver_lost;
      free_copies_locked(has_driver ? &state->driver : NULL, constant);
      break;
    }
  }
  aotc_rt_unlock();
}

void aotc_rt_constants_unload_locked(aotc_rt_state *state) {
  while (state->constants != NULL) {
    aotc_constant *constant = state->constants;
    state->constants = constant->next;
    free_copies_locked(state->is_driver_lost ? NULL : &state->driver, constant);
  }
}
