// Weights in a separate file, which is opened when the first of them is used.
#include <sys/mman.h>

#include "weight_pages.h"
#include "weights_file.h"

// Zeros as a stand-in for the weights, so that host code can continue. Pages are allocated lazily,
// so they take no memory.
static void provide_stand_in_locked(aotc_weights *weights) {
  if (weights->stand_in != NULL) {
    return;
  }
  uint64_t largest = 1;
  for (uint64_t i = 0; i < weights->count; ++i) {
    uint64_t bytes = weights->weights[i]->constant.bytes;
    largest = bytes > largest ? bytes : largest;
  }
  void *zeros =
      mmap(NULL, (size_t)largest, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (zeros != MAP_FAILED) {
    weights->stand_in = zeros;
    weights->stand_in_bytes = largest;
  }
}

// Written once, under the lock, and read without it.
static _Atomic(aotc_rt_weights_file *) *file_of(aotc_weights *weights) {
  return (_Atomic(aotc_rt_weights_file *) *)&weights->opened;
}

// The weight in the file; NULL, with the failure recorded, and then the stand-in is used.
static aotc_rt_shared_weight *provide(aotc_weight *weight) {
  aotc_weights *weights = weight->weights;
  aotc_rt_weights_file *file = atomic_load_explicit(file_of(weights), memory_order_acquire);
  if (file == NULL) {
    aotc_rt_lock();
    file = atomic_load(file_of(weights)); // another thread may have opened it
    if (file == NULL && !aotc_is_stopped()) {
      file = aotc_rt_weights_open_locked(weights);
      atomic_store_explicit(file_of(weights), file, memory_order_release);
    }
    if (file == NULL) {
      provide_stand_in_locked(weights);
    }
    aotc_rt_unlock();
  }
  return file != NULL ? weight->shared : NULL;
}

const void *aotc_rt_weight_in_file(aotc_weight *weight) {
  const aotc_rt_shared_weight *shared = provide(weight);
  return shared != NULL ? shared->constant.data : weight->weights->stand_in;
}

// The constant that holds the weight's copies, and its data, which may be on a device.
static aotc_constant *find_constant(aotc_weight *weight, const void **out_data) {
  *out_data = aotc_rt_constant_source(&weight->constant);
  if (*out_data != NULL) {
    return &weight->constant;
  }
  aotc_rt_shared_weight *shared = provide(weight);
  *out_data = shared != NULL ? shared->constant.data : weight->weights->stand_in;
  return shared != NULL ? &shared->constant : &weight->constant;
}

const void *aotc_weight_get(aotc_weight *weight) {
  const void *data = NULL;
  if (aotc_rt_constant_is_replaced(&weight->constant)) {
    data = aotc_rt_constant_in_host_memory(&weight->constant);
  }
  return data != NULL ? data : aotc_rt_weight_in_file(weight);
}

// A copy of the weight, or its address in a partially resident copy of the file.
static void *get_within_budget(const aotc_rt_weights_file *file, aotc_constant *constant,
                               const void *data) {
  aotc_rt_scope scope;
  if (constant->bytes == 0 || !aotc_rt_begin_unless_failed(&scope, "aotc_weight_get_on_device")) {
    return (void *)(uintptr_t)data;
  }
  bool is_whole = true;
  void *place = NULL;
  if (scope.driver != NULL && aotc_rt_state_of_process.weights_budget != 0) {
    place = aotc_rt_weight_pages_get(&scope, file, data, &is_whole);
  }
  aotc_rt_end(&scope);
  if (is_whole) {
    return aotc_rt_constant_copy_of(constant, data);
  }
  return place != NULL ? place : (void *)(uintptr_t)data;
}

void *aotc_weight_get_on_device(aotc_weight *weight) {
  const void *data = NULL;
  aotc_constant *constant = find_constant(weight, &data);
  aotc_rt_weights_file *file =
      constant != &weight->constant
          ? atomic_load_explicit(file_of(weight->weights), memory_order_acquire)
          : NULL;
  return file != NULL ? get_within_budget(file, constant, data)
                      : aotc_rt_constant_copy_of(constant, data);
}

void *aotc_weight_get_packed(aotc_weight *weight, uint64_t rows) {
  const void *data = NULL;
  aotc_constant *constant = find_constant(weight, &data);
  return aotc_rt_constant_in_form(constant, data, rows, &aotc_rt_constant_packed);
}

void *aotc_weight_get_transposed(aotc_weight *weight, uint64_t rows) {
  const void *data = NULL;
  aotc_constant *constant = find_constant(weight, &data);
  return aotc_rt_constant_in_form(constant, data, rows, &aotc_rt_constant_transposed);
}

void *aotc_weight_get_grouped_words(aotc_weight *weight, uint64_t rows) {
  const void *data = NULL;
  aotc_constant *constant = find_constant(weight, &data);
  return aotc_rt_constant_in_form(constant, data, rows, &aotc_rt_constant_grouped_words);
}

void *aotc_weight_get_grouped_bytes(aotc_weight *weight, uint64_t rows) {
  const void *data = NULL;
  aotc_constant *constant = find_constant(weight, &data);
  return aotc_rt_constant_in_form(constant, data, rows, &aotc_rt_constant_grouped_bytes);
}

void *aotc_weight_get_grouped_halves(aotc_weight *weight, uint64_t rows) {
  const void *data = NULL;
  aotc_constant *constant = find_constant(weight, &data);
  return aotc_rt_constant_in_form(constant, data, rows, &aotc_rt_constant_grouped_halves);
}

void *aotc_weight_get_winograd(aotc_weight *weight, uint64_t rows) {
  const void *data = NULL;
  aotc_constant *constant = find_constant(weight, &data);
  return aotc_rt_constant_in_form(constant, data, rows, &aotc_rt_constant_winograd);
}

aotc_status aotc_rt_weight_replace(aotc_weight *weight, const void *data) {
  aotc_rt_lock();
  if (atomic_load(file_of(weight->weights)) != NULL) {
    aotc_rt_shared_weight *shared = weight->shared;
    if (shared->users == 1) {
      // There are no other users, so the copies stay at their addresses.
      aotc_rt_constant_move_locked(&shared->constant, &weight->constant);
    }
  }
  aotc_rt_unlock();
  return aotc_rt_constant_replace(&weight->constant, data);
}

void aotc_weights_release(aotc_weights *weights) {
  aotc_rt_lock();
  for (uint64_t i = 0; i < weights->count; ++i) {
    aotc_rt_constant_release_locked(&weights->weights[i]->constant);
  }
  aotc_rt_weights_file *file = atomic_exchange(file_of(weights), NULL);
  bool is_last = file != NULL && aotc_rt_weights_close_locked(file, weights);
  const void *stand_in = weights->stand_in;
  weights->stand_in = NULL;
  aotc_rt_unlock();
  if (is_last) {
    aotc_rt_weights_file_free(file);
  }
  if (stand_in != NULL) {
    munmap((void *)(uintptr_t)stand_in, (size_t)weights->stand_in_bytes);
  }
}
